"""Requests of one browser to the application itself, and what they cost the database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

from large_archive import LARGE
from looked_at import OPERATOR, READER
from sqlalchemy import Engine, event
from starlette.testclient import TestClient

from api.app import create_app
from api.dashboard import addresses
from infra.settings import Settings
from infra.storage.folder import FolderTarget

HTML = {"accept": "text/html", "sec-fetch-site": "same-origin"}


class Desk:
    """One browser's worth of requests to the application itself."""

    def __init__(self, engine: Engine, folder: Path, token: str | None = None, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.engine = engine
        self.target = FolderTarget(folder, port=8321)
        given = Settings(admin_tokens=f"ada:operate:{OPERATOR},viewer:read:{READER}", **settings)
        self.client = TestClient(create_app(self.target, given, engine), headers=HTML)
        if token is not None:
            self.client.post("/dashboard/sign-in", data={"token": token})

    def get(self, path: str, status: int = 200, **given: Any) -> str:
        answer = self.client.get(path, **given)
        assert answer.status_code == status, answer.text[:2000]
        return answer.text

    def csrf(self, path: str = f"/dashboard/datasets/{LARGE}") -> str:
        return re.findall(r'name="csrf" value="([^"]+)"', self.get(path))[-1]

    def act(self, dataset_id: str, verb: str, **fields: str) -> Any:
        if "csrf" not in fields:
            fields["csrf"] = self.csrf(f"/dashboard/datasets/{dataset_id}")
        return self.client.post(addresses.dataset_action(dataset_id, verb), data=fields, follow_redirects=False)

    def proposed(self, dataset_id: str, verb: str, **fields: str) -> str:
        """The digest of what the first press shows."""
        answer = self.act(dataset_id, verb, **fields)
        assert answer.status_code == 200, answer.text[:2000]
        found = re.findall(r'name="seen" value="([0-9a-f]{64})"', answer.text)
        assert len(found) == 1, "a button that does it"
        return found[0]


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    found: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def words(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))
