"""One database a version for the tests of this folder, a dataset of its own for each test: a database each would cost most of their time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine
from state_bench import Bench, planned

from db.runs import Run
from infra.database import engine as make_engine


@pytest.fixture(scope="session")
def shared_engines(servers: Any) -> Iterator[Callable[[int], Engine]]:
    made: dict[int, Engine] = {}

    def get(version: int) -> Engine:
        if version not in made:
            server = servers.migrated(version)
            server.create_database("db_tests", template="migrated")
            made[version] = make_engine(server.url("db_tests"))
        return made[version]

    yield get
    for version, engine in made.items():
        engine.dispose()
        servers.get(version).drop_database("db_tests")


@pytest.fixture
def bench(shared_engines: Callable[[int], Engine], postgres_version: int) -> Bench:
    return Bench(shared_engines(postgres_version))


@pytest.fixture
def run(bench: Bench) -> Run:
    started = bench.start()
    bench.apply(started, planned("01"), planned("02"))
    return started
