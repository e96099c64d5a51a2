"""Processes that a runner leaves behind: found by what is recorded of them, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.children import Children
from infra.home import Home
from infra.processes import begun, is_running

# a runner that starts one child, says its number and is killed; the child does not heed SIGTERM
_RUNNER = """
import os, signal, sys
from pathlib import Path
from infra.children import Children
from infra.home import Home
print(Children(Home(Path(sys.argv[1]))).start("dataset-xx000001-1", "stubborn"), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
_CHILD = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


def _ignores(pid: int, number: signal.Signals) -> bool:
    told = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:"))
    return bool(int(told.split()[1], 16) >> (number - 1) & 1)


@pytest.fixture
def left(tmp_path: Path, home: Path) -> Iterator[int]:
    """A child whose runner was killed before the child took any lock."""
    (tmp_path / "stubborn.py").write_text(_CHILD)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    told = subprocess.run(
        [sys.executable, "-P", "-c", _RUNNER, str(home)], env=environment, capture_output=True, text=True, check=False
    )
    pid = int(told.stdout)
    deadline = time.monotonic() + 60
    while not _ignores(pid, signal.SIGTERM):  # until then a SIGTERM would end it
        assert time.monotonic() < deadline, "the child has begun"
        time.sleep(0.01)
    yield pid
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)


def test_a_child_whose_runner_was_killed_is_found_and_killed(home: Path, left: int) -> None:
    children = Children(Home(home))
    assert children.orphans() == {"dataset-xx000001-1"}
    assert children.pid("dataset-xx000001-1") == left
    assert children.end(0.0, orphans=True) == {"dataset-xx000001-1": True}
    assert children.gone(60)
    assert not is_running(left)


def test_hurry_ends_the_patience(home: Path, left: int) -> None:
    children = Children(Home(home))
    assert children.end(3600.0, orphans=True, hurried=lambda: True) == {"dataset-xx000001-1": True}
    assert children.gone(60)
    assert not is_running(left)


def test_a_child_whose_runner_lives_is_no_orphan(home: Path, left: int) -> None:
    record = home / "run/children/dataset-xx000001-1.json"
    record.write_text(json.dumps({"child": begun(left), "starter": begun(os.getpid())}))
    children = Children(Home(home))
    assert children.running() == {"dataset-xx000001-1"}
    assert children.orphans() == set()
    assert children.end(0.0, orphans=True) == {}
    assert is_running(left)


def test_a_number_that_was_given_again_is_a_stranger(home: Path, left: int) -> None:
    record = home / "run/children/dataset-xx000001-1.json"
    record.write_text(record.read_text().replace(f'"{left} ', f'"{os.getpid()} '))
    children = Children(Home(home))
    assert children.running() == set()
    assert children.end(0.0, orphans=True) == {}
    assert is_running(left)


def test_a_process_without_its_database_ends(tmp_path: Path) -> None:
    code = f"""
import time
from sqlalchemy import create_engine
from flows.database_gone import ending_without_database
with ending_without_database(create_engine("postgresql+psycopg://x@/x?host={tmp_path}"), patience_s=0.2, look_s=0.1):
    time.sleep(600)
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=120, cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
