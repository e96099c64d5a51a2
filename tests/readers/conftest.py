"""Fixtures for tests of readers: one dataset, converted once and served by a process for all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from command import Zarrmill
from demo_server import DATASET, Demo, free_port, serving, write_dataset
from product import ROOT
from served_dataset import Served

_PACKAGES = ROOT / "tests" / "node"


@pytest.fixture(scope="session")
def demo(servers: Any, prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The dataset ``xx000001``, converted and served."""
    root = tmp_path_factory.mktemp("demo")
    home = root / "home"
    home.mkdir(mode=0o700)
    postgres = servers.migrated(18)
    postgres.create_database("demo", template="migrated")
    port = free_port()
    zarrmill = Zarrmill(
        home,
        root,
        {
            "ZARRMILL_DATABASE_URL": postgres.url("demo"),
            "PREFECT_API_URL": prefect_url,
            "ZARRMILL_PORT": str(port),
        },
    )
    write_dataset(root / DATASET)
    zarrmill.run("convert", root / DATASET, "--to", root / "served")
    url = f"http://127.0.0.1:{port}"
    with serving(zarrmill, root / "served", url):
        yield Demo(Served(root / "served", DATASET), zarrmill, url)


@pytest.fixture(scope="session")
def node(require: Callable[[str, str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a JavaScript module where zarrita is installed; what it prints."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        require("node", "node and npm are not installed")
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_PACKAGES / name, folder / name)
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", str(_npm_cache())]
    installed = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if installed.returncode:
        require("node", f"npm ci failed: {installed.stderr[-500:]}")

    def run(program: str) -> str:
        (folder / "program.mjs").write_text(program, encoding="utf-8")
        ran = subprocess.run(
            ["node", "program.mjs"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run


def _npm_cache() -> Path:
    """Below the environment that tests run in, so that packages are fetched once for it."""
    return Path(os.environ.get("VIRTUAL_ENV", ROOT / ".venv")) / "npm-cache"
