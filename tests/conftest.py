"""Real parts for every test: a Postgres of its own, an empty database each, a private home, recordings.

Fixtures
--------
home            a fresh, private ``ZARRMILL_HOME``, set in the environment
postgres_server the session's Postgres 18 (the wheel's), fsync off
postgres15      the session's Debian Postgres 15; skipped when it is not installed
database_url    the address of a database of this test alone, migrated
engine          an engine on ``database_url``
prefect_url     the address of the session's Prefect server; a start costs 8 s, so tests share it
s3_server       the session's S3 endpoint over HTTP, a process of its own
s3              a bucket of this test alone behind a fault proxy (``tests/support/s3_server.py``, ``fault_proxy.py``)
recordings      the folder with real recordings; skipped when it is absent
vneurotk        a reader of VneuroTK files by its own package; skipped when that cannot be installed

A test runs on both versions of Postgres when its module or function is marked ``@pytest.mark.postgres_versions``.
``ZARRMILL_REQUIRE=recordings,postgres15,...`` makes what is named there fail instead of skip.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from fault_proxy import FaultProxy
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from s3_server import S3Place, S3Server, s3_server_process
from sqlalchemy import Engine
from vneurotk_reader import Reader, install

from infra.database import engine as make_engine
from infra.home import Home
from infra.postgres import PostgresServer, debian_binaries, embedded_binaries
from infra.postgres_place import place, socket_folder
from infra.prefect_server import PrefectServer

_ROOT = Path(__file__).resolve().parents[1]
_RECORDINGS = Path(os.environ.get("ZARRMILL_RECORDINGS") or _ROOT.parent / "shared" / "recordings")
_REQUIRED = frozenset(name.strip() for name in os.environ.get("ZARRMILL_REQUIRE", "").split(",") if name.strip())
_OPTIONAL = frozenset({"recordings", "chromium", "node", "git-annex", "postgres15", "vneurotk"})
_TEMPLATE = "migrated"

# a test must not depend on the settings of whoever runs it; processes that tests start inherit this
for _name in [name for name in os.environ if name.startswith(("ZARRMILL_", "PREFECT_", "DASK_", "AWS_"))]:
    del os.environ[_name]

hypothesis_settings.register_profile(
    "zarrmill", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.register_profile("search", deadline=None, max_examples=2000)
hypothesis_settings.load_profile("zarrmill")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-tables", action="store_true", help="write the measured tables of docs/ instead of comparing"
    )
    parser.addoption("--write-pictures", action="store_true", help="write the pictures of pages in docs/images again")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "postgres_versions: run on each Postgres version that is tested")
    unknown = _REQUIRED - _OPTIONAL
    if unknown:
        raise pytest.UsageError(
            f"ZARRMILL_REQUIRE names {', '.join(sorted(unknown))}; it knows {', '.join(sorted(_OPTIONAL))}"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "postgres_version" in metafunc.fixturenames and metafunc.definition.get_closest_marker("postgres_versions"):
        metafunc.parametrize("postgres_version", [18, 15], indirect=True)


def missing(name: str, reason: str) -> NoReturn:
    """Skip the test, or fail it when ``ZARRMILL_REQUIRE`` names what is missing."""
    if name in _REQUIRED:
        pytest.fail(f"{name} is required and missing: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require() -> object:
    """The function ``require(name, reason)`` that skips, or fails when ``ZARRMILL_REQUIRE`` holds the name."""
    return missing


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("ZARRMILL_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    if not _RECORDINGS.is_dir():
        missing("recordings", f"no folder of real recordings at {_RECORDINGS}; name one in ZARRMILL_RECORDINGS")
    return _RECORDINGS


@pytest.fixture(scope="session")
def vneurotk(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Vneurotk 0.0.1 as it is published, without what it declares and does not need to read a file."""
    folder = tmp_path_factory.mktemp("vneurotk")
    trouble = install(folder)
    if trouble is not None:
        missing("vneurotk", f"vneurotk 0.0.1 could not be installed: {trouble}")
    return Reader(folder)


@contextmanager
def _server(bin_dir: Path, folder: Path) -> Iterator[PostgresServer]:
    home = Home(folder)
    sockets = socket_folder(home)
    server = PostgresServer(bin_dir, place(home), sockets, fsync=False, die_with_parent=True)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.stop(patience_s=5)
        for left in (server.data_dir, sockets):
            shutil.rmtree(left, ignore_errors=True)


def _template(server: PostgresServer) -> None:
    # imported here: tests of lower floors must not need the migrations
    from db.migrate import upgrade

    server.create_database(_TEMPLATE)
    upgrade(server.url(_TEMPLATE))


class Servers:
    """The servers of this session by version, each begun when first asked for, each with its migrated template."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._running: dict[int, PostgresServer] = {}
        self._migrated: set[int] = set()

    def get(self, version: int) -> PostgresServer:
        if version not in self._running:
            bin_dir = embedded_binaries() if version == 18 else debian_binaries(version)
            if not (bin_dir / "postgres").exists():
                missing(f"postgres{version}", f"no Postgres {version} in {bin_dir}")
            self._running[version] = self._stack.enter_context(_server(bin_dir, self._folder / str(version)))
        return self._running[version]

    def migrated(self, version: int) -> PostgresServer:
        server = self.get(version)
        if version not in self._migrated:
            _template(server)
            self._migrated.add(version)
        return server


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp("postgres"), stack)


@pytest.fixture(scope="session")
def postgres_server(servers: Servers) -> PostgresServer:
    return servers.get(18)


@pytest.fixture(scope="session")
def postgres15(servers: Servers) -> PostgresServer:
    return servers.get(15)


@pytest.fixture
def postgres_version(request: pytest.FixtureRequest) -> int:
    """The major version that ``database_url`` is on: 18, or each in turn under ``postgres_versions``."""
    return int(getattr(request, "param", 18))


@pytest.fixture
def database_url(servers: Servers, postgres_version: int) -> Iterator[str]:
    server = servers.migrated(postgres_version)
    name = f"test_{uuid.uuid4().hex[:16]}"
    server.create_database(name, template=_TEMPLATE)
    try:
        yield server.url(name)
    finally:
        server.drop_database(name)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = make_engine(database_url)
    try:
        yield made
    finally:
        made.dispose()


@pytest.fixture(scope="session")
def prefect_url(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    postgres = servers.get(18)
    postgres.create_database("prefect")
    folder = tmp_path_factory.mktemp("prefect")
    server = PrefectServer(folder, postgres.socket_dir, port_file=folder / "port", log_path=folder / "server.log")
    try:
        server.start()
        yield server.url
    finally:
        server.close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with s3_server_process() as server:
        yield server


@pytest.fixture(scope="session")
def s3_proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    # one address for the session: clients are kept by address, and each costs half a second
    proxy = FaultProxy(s3_server.port)
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture
def s3(s3_server: S3Server, s3_proxy: FaultProxy) -> Iterator[S3Place]:
    s3_proxy.forget()
    yield S3Place(s3_server, s3_proxy)
    s3_proxy.forget()
