"""What tests of the fan-out share: one database, and one small cluster of our own, for all of them.

``bench_database``, ``bench_engine``  a migrated database for these tests
``small_settings``, ``small_client``  a cluster of one worker with three slots and 1 GiB that knows the format that misbehaves
``shop``                              an empty dataset in that database
``served``                            a folder that serves the scene of the exports
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from distributed import Client
from export_scene import put_scene
from fan_out_bench import MB, Shop, bench_cluster
from sqlalchemy import Engine

from infra.database import engine as make_engine
from infra.settings import Settings, load_settings
from infra.storage.folder import FolderTarget


@pytest.fixture(scope="package")
def bench_database(servers: Any) -> Iterator[str]:
    server = servers.migrated(18)
    name = f"fan_out_{uuid4().hex[:8]}"
    server.create_database(name, template="migrated")
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture(scope="package")
def bench_engine(bench_database: str) -> Iterator[Engine]:
    made = make_engine(bench_database)
    yield made
    made.dispose()


@pytest.fixture(scope="package")
def small_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="package")
def small_client(small_settings: Settings, bench_database: str) -> Iterator[Client]:
    with bench_cluster(small_settings, bench_database, slots=3, memory_bytes=1024 * MB) as client:
        yield client


@pytest.fixture
def shop(bench_engine: Engine, tmp_path: Path) -> Shop:
    return Shop.open(bench_engine, tmp_path / "dataset")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exported")
    put_scene(FolderTarget(root / "served", port=8321), root)
    return root / "served"
