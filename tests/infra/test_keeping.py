"""A part that ends is started again, later and later, and ended with whoever keeps it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.stand import Wanted, differing, read_workers
from contract.errors import Refused
from infra.kept_parts import Kept, KeptCommand
from infra.processes import is_running, wait_gone
from infra.standing import Standing, StandingPlan, WorkerSize, kept_port

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    log = tmp_path / "part.log"
    return Kept(name="part", part=KeptCommand(SLEEPS, {}, log), log=log, patience_s=10)


def test_a_part_that_is_killed_is_started_again_as_another_process(kept: Kept) -> None:
    try:
        assert kept.look()
        first = kept.part.pid
        assert first is not None
        assert not kept.look(), "nothing changes while it runs"
        os.kill(first, signal.SIGKILL)
        eventually(kept.look, "its end is seen")
        assert (kept.state().pid, kept.state().last_exit, kept.state().restarts) == (None, "signal SIGKILL", 1)
        eventually(kept.look, "it is started again")
        second = kept.state().pid
        assert second not in {None, first}
    finally:
        kept.part.stop(5)
    assert second is not None
    assert not is_running(second)


def test_the_delay_doubles_up_to_half_a_minute(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    quick = Kept(name="part", part=KeptCommand([sys.executable, "-c", ""], {}, log), log=log, patience_s=1)
    delays = []
    for _ in range(9):
        quick._not_before = 0
        assert quick.look()
        eventually(quick.look, "it ended")
        delays.append(round(quick._not_before - time.monotonic(), 0))
    assert delays == sorted(delays)
    assert 29 <= delays[-1] <= 30


def test_a_part_ends_with_its_keeper_however_that_ends(tmp_path: Path) -> None:
    keeps = (
        "import sys, time; from pathlib import Path; from infra.kept_parts import KeptCommand\n"
        f"part = KeptCommand({SLEEPS!r}, {{}}, Path({str(tmp_path / 'log')!r}))\n"
        "part.launch(); print(part.pid, flush=True); time.sleep(600)"
    )
    keeper = subprocess.Popen([sys.executable, "-c", keeps], stdout=subprocess.PIPE, text=True)
    assert keeper.stdout is not None
    pid = int(keeper.stdout.readline())
    assert is_running(pid)
    keeper.kill()
    keeper.communicate()
    assert wait_gone(pid, 60)


def test_a_long_log_is_put_aside(kept: Kept) -> None:
    kept.log.write_bytes(b"x" * (17 << 20))
    kept.trim_log()
    assert kept.log.stat().st_size == 0
    assert kept.log.with_name("part.log.1").stat().st_size == 17 << 20


def test_what_is_asked_and_what_stands_survive_a_file(tmp_path: Path, kept: Kept) -> None:
    plan = StandingPlan(target="/served", api_port=8321, workers=read_workers("2x4GiB,1"), dask_port=8786)
    assert StandingPlan.from_json(plan.to_json()) == plan
    standing = Standing(keeper_pid=1, target="/served", addresses={"api": "http://x"}, parts=(kept.state(),))
    standing.write(tmp_path / "state.json")
    assert standing.part("part") is not None
    assert standing.part("other") is None


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("2", (WorkerSize(count=2),)),
        ("0", ()),
        ("2x4GiB, 1x500MB", (WorkerSize(count=2, memory_bytes=4 << 30), WorkerSize(memory_bytes=500_000_000))),
    ],
)
def test_workers_are_read_as_they_are_typed(text: str, sizes: tuple[WorkerSize, ...]) -> None:
    assert read_workers(text) == sizes


@pytest.mark.parametrize("text", ["", "x4GiB", "2x", "-1", "2x4G", "0x4GiB", "1,,2"])
def test_workers_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises((Refused, ValueError)):
        read_workers(text)


def test_a_port_is_remembered_and_neither_taken_nor_promised_twice(tmp_path: Path) -> None:
    remembered = tmp_path / "port"
    port = kept_port(remembered)
    assert kept_port(remembered) == port
    assert kept_port(remembered, avoid=[port]) != port
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Refused, match="is taken"):
            kept_port(remembered, taken.getsockname()[1])


def test_options_that_differ_from_what_stands_are_told() -> None:
    plan = StandingPlan(target="/served", api_port=8321, workers=read_workers("2x4GiB"), slots=2)
    addresses = {"prefect": "http://127.0.0.1:21000/api", "dask": "tcp://127.0.0.1:21001"}
    same = {"slots": 2, "datasets": None, "port": 8321, "prefect_port": 21000, "dask_port": 21001}
    nothing = dict.fromkeys(same)
    assert differing(Wanted(to="/served", workers=None, **nothing), plan, addresses) == []
    assert differing(Wanted(to="/served", workers="2x4GiB", **same), plan, addresses) == []
    other = {"slots": 3, "datasets": 4, "port": 8322, "prefect_port": 5, "dask_port": 6}
    told = differing(Wanted(to="/served", workers="3", **other), plan, addresses)
    assert [one.partition(" ")[0] for one in told] == [
        "--workers",
        "--slots",
        "--datasets",
        "--port",
        "--prefect-port",
        "--dask-port",
    ]
    assert told[0] == "--workers 3 (2x4GiB now)"
    assert told[3] == "--port 8322 (8321 now)"
