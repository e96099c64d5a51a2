"""The HTTP application over a fabricated state, asked by a client in the same process: no network is timed."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Engine
    from starlette.testclient import TestClient

__all__ = ["application", "first_answer"]


@contextmanager
def application(fill: Callable[[Engine, str], None], **settings: Any) -> Iterator[tuple[TestClient, Engine]]:
    """A client and the engine of a Postgres of its own, after ``fill`` put datasets of a target's address into it."""
    from starlette.testclient import TestClient

    from api.app import create_app
    from db.migrate import upgrade
    from infra.database import engine as make_engine
    from infra.home import Home
    from infra.services import database, stopped
    from infra.settings import Settings
    from infra.storage.folder import FolderTarget

    with tempfile.TemporaryDirectory(prefix="zarrmill-asked-") as folder:
        given = Settings(home=Path(folder) / "home", requests_per_minute=10_000_000, **settings)
        target = FolderTarget(Path(folder) / "served", port=8321)
        with database(given) as url:
            upgrade(url)
            engine = make_engine(url)
            began = time.perf_counter()
            fill(engine, target.url)
            print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            yield TestClient(create_app(target, given, engine), base_url="https://testserver"), engine
            engine.dispose()
        with stopped(Home(given.home)):
            pass


def first_answer(client: TestClient, engine: Engine, address: str) -> tuple[int, int]:
    """SQL statements and bytes of an answer, which is not timed."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    answer = client.get(address)
    event.remove(engine, "before_cursor_execute", note)
    return len(seen), len(answer.content)
