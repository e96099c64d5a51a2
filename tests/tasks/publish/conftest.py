"""One database for the tests of this folder: each has a target of its own, so that they do not meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from press import Press
from sqlalchemy import Engine

from infra.database import engine as make_engine


@pytest.fixture(scope="module")
def shared_engine(servers: Any, request: pytest.FixtureRequest) -> Iterator[Engine]:
    server = servers.migrated(18)
    name = request.module.__name__.rpartition(".")[2].rpartition("/")[2]
    server.create_database(name, template="migrated")
    made = make_engine(server.url(name))
    yield made
    made.dispose()
    server.drop_database(name)


@pytest.fixture
def press(shared_engine: Engine, tmp_path: Path) -> Press:
    return Press(shared_engine, tmp_path)
