"""The API over a target and a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from filled_state import Kept, put
from sqlalchemy import Engine
from starlette.testclient import TestClient

from api.app import create_app
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

CODES = ("not_continuous", "corrupt_or_truncated")


@contextmanager
def made_database(servers: Any) -> Iterator[Engine]:
    """An engine on a database of its own."""
    server = servers.migrated(18)
    name = f"api_{uuid4().hex[:12]}"
    server.create_database(name, template="migrated")
    made = make_engine(server.url(name), pool_size=4)
    try:
        yield made
    finally:
        made.dispose()
        server.drop_database(name)


@dataclass
class Api:
    """The application over a target of its own, in a database that others use too."""

    client: TestClient
    engine: Engine
    target: FolderTarget

    def put(self, *kept: Kept) -> None:
        with self.engine.begin() as c:
            for one in kept:
                put(c, one, target=self.target.url)

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        answer = self.client.get(path, params=query)
        assert answer.status_code == status, answer.text
        return answer.json()

    def ids(self, **query: Any) -> list[str]:
        return [row["dataset_id"] for row in self.get("/datasets", **query)["datasets"]]


def make_api(engine: Engine, folder: Path) -> Api:
    target = FolderTarget(folder, port=8321)
    return Api(TestClient(create_app(target, Settings(), engine)), engine, target)
