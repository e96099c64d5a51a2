"""One database for the tests of this folder: each has a target of its own, so that they do not meet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from press import Press
from sqlalchemy import Engine

from infra.database import engine as make_engine


@pytest.fixture(scope="session")
def shared_engine(servers: Any) -> Iterator[Engine]:
    server = servers.migrated(18)
    server.create_database("publish_tests", template="migrated")
    made = make_engine(server.url("publish_tests"))
    yield made
    made.dispose()
    server.drop_database("publish_tests")


@pytest.fixture
def press(shared_engine: Engine, tmp_path: Path) -> Press:
    return Press(shared_engine, tmp_path)
