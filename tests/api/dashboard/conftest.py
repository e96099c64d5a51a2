"""A server over a fabricated archive of 25,000 recordings, and a browser that looks at its pages.

Fixtures
--------
archive       the engine of a database with ``large_archive.build`` in it; made once, shared: tests that change it make their own
site_url      the address of a server over it, with the tokens ``looked_at.OPERATOR`` and ``READER``
serve         the function that serves another engine or other settings until the test ends: ``serve(engine, **settings) -> url``
browser       chromium, once a module
visit         a fresh light window at ``site_url`` in which nothing may go wrong (``looked_at.Visit``)
window        the function that makes others: ``with window(color_scheme="dark", viewport=PHONE) as visit``
axe           the script of axe-core, for ``check_accessible(page, axe)``
desk          the function that makes a browser's worth of requests: ``desk(token) -> Desk``
looked        the dataset of the viewer, converted and served; with ``--write-pictures`` one recording has its forty minutes
snap          ``snap(page, "overview-light", whole=False)`` keeps a picture when pytest has ``--write-pictures``
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import uvicorn
from command import Zarrmill
from desk import Desk
from large_archive import build
from looked_at import OPERATOR, READER, Visit, launch, picture, visiting
from playwright.sync_api import Browser, Page, sync_playwright
from product import ROOT
from served_dataset import Served
from sqlalchemy import Engine
from viewer_dataset import write_viewer_dataset
from viewer_looks import DATASET, LONG_TEST_S, Looked

from api.app import create_app
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget

FRONT = ROOT / "api" / "dashboard" / "front"


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the target of ``archive`` is; empty, unless tests of the viewer put stores there."""
    return tmp_path_factory.mktemp("dashboard") / "served"


@pytest.fixture(scope="session")
def archive(servers: Any, served_folder: Path) -> Iterator[Engine]:
    server = servers.migrated(18)
    name = f"dashboard_{uuid.uuid4().hex[:8]}"
    server.create_database(name, template="migrated")
    engine = make_engine(server.url(name), pool_size=8)
    build(engine, target=FolderTarget(served_folder, port=8321).url)
    yield engine
    engine.dispose()
    server.drop_database(name)


@contextmanager
def serving(engine: Engine | None, folder: Path, **settings: Any) -> Iterator[str]:
    """The application in a thread of this process, at a free port."""
    given = {"admin_tokens": f"ada:operate:{OPERATOR},viewer:read:{READER}", **settings}
    folder.mkdir(parents=True, exist_ok=True)
    app = create_app(FolderTarget(folder, port=8321), Settings(**given), engine)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            server.force_exit = True  # live streams would be waited for
            thread.join(60)


@pytest.fixture(scope="session")
def site_url(archive: Engine, served_folder: Path) -> Iterator[str]:
    with serving(archive, served_folder) as url:
        yield url


@pytest.fixture
def serve(served_folder: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    def start(engine: Engine | None, folder: Path | None = None, **settings: Any) -> str:
        running = serving(engine, folder or served_folder, **settings)
        url = running.__enter__()
        request.addfinalizer(partial(running.__exit__, None, None, None))
        return url

    return start


@pytest.fixture(scope="module")
def browser(require: Callable[[str, str], NoReturn]) -> Iterator[Browser]:
    # once a module and no longer: while it lives, this thread has a loop, and tests elsewhere run loops of their own
    if shutil.which("chromium") is None:
        require("chromium", "Debian's chromium is not installed")
    with sync_playwright() as playwright:
        started = launch(playwright)
        yield started
        started.close()


@pytest.fixture
def window(browser: Browser, site_url: str) -> Callable[..., AbstractContextManager[Visit]]:
    def open_window(url: str = site_url, **given: Any) -> AbstractContextManager[Visit]:
        return visiting(browser, url, **given)

    return open_window


@pytest.fixture
def visit(browser: Browser, site_url: str) -> Iterator[Visit]:
    with visiting(browser, site_url) as made:
        yield made


@pytest.fixture(scope="session")
def front(require: Callable[[str, str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources of the scripts with their packages installed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        require("node", "node and npm are not installed")
    folder = tmp_path_factory.mktemp("front")
    shutil.copytree(FRONT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    cache = Path(os.environ.get("VIRTUAL_ENV", ROOT / ".venv")) / "npm-cache"
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--cache", str(cache)]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if installed.returncode:
        require("node", f"npm ci failed: {installed.stderr[-500:]}")
    return folder


@pytest.fixture(scope="session")
def axe(front: Path) -> Path:
    return front / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def snap(request: pytest.FixtureRequest) -> Callable[..., None]:
    wanted = bool(request.config.getoption("--write-pictures"))

    def take(page: Page, name: str, *, whole: bool = False) -> None:
        picture(page, name, wanted=wanted, whole=whole)

    return take


@pytest.fixture
def desk(archive: Engine, served_folder: Path) -> Callable[..., Desk]:
    return lambda token=None, **settings: Desk(archive, served_folder, token, **settings)


@pytest.fixture(scope="session")
def looked(
    servers: Any,
    prefect_url: str,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Looked]:
    root = tmp_path_factory.mktemp("looked")
    (root / "home").mkdir(mode=0o700)
    postgres = servers.migrated(18)
    postgres.create_database("looked", template="migrated")
    settings = {"ZARRMILL_DATABASE_URL": postgres.url("looked"), "PREFECT_API_URL": prefect_url}
    seconds = 2400 if request.config.getoption("--write-pictures") else LONG_TEST_S
    write_viewer_dataset(root / DATASET, long_s=seconds)
    Zarrmill(root / "home", root, settings).run("convert", root / DATASET, "--to", root / "served")
    engine = make_engine(postgres.url("looked"), pool_size=4)
    with serving(engine, root / "served") as url:
        yield Looked(Served(root / "served", DATASET), url)
    engine.dispose()
