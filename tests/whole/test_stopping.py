"""A run that is stopped publishes what is done, charges nobody, and a later run goes on from there."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Zarrmill, finish
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import StateType
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling
from served_dataset import Served
from small_dataset import write_recording, write_root
from sqlalchemy import Engine, text

COUNT = 120  # more than one slot converts while Prefect is asked, every two seconds, whether to go on


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "xx000055"
    write_root(folder)
    for number in range(COUNT):
        write_recording(folder, f"{number:02d}")
    return folder


def _ask(engine: Engine, sql: str) -> int:
    with engine.connect() as c:
        return int(c.execute(text(sql)).scalar_one())


def _until(process: subprocess.Popen[str], true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert process.poll() is None, f"ended before: {what}\n{process.communicate()}"
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _served(engine: Engine) -> int:
    return _ask(engine, "SELECT count(*) FROM stores")


def _start(zarrmill: Zarrmill, dataset: Path, engine: Engine, more: int) -> subprocess.Popen[str]:
    """A run with one slot, once it has made a few stores."""
    before = _served(engine)
    process = zarrmill.start("convert", dataset, "--workers", "1", "--json")
    _until(process, lambda: _served(engine) >= before + more, f"{more} stores more")
    return process


def _assert_balanced(engine: Engine, served: Served) -> int:
    index = served.index
    assert index["discovered_count"] == COUNT == index["store_count"] + index["pending_count"]
    assert index["store_count"] == _served(engine)
    assert {entry["reason"] for entry in index["pending"]} <= {"not_attempted"}
    assert _ask(engine, "SELECT count(*) FROM attempts WHERE counted") == 0
    assert _ask(engine, "SELECT count(*) FROM recordings WHERE due = 'converting'") == 0
    return int(index["store_count"])


def _cancel(prefect_url: str) -> None:
    with temporary_settings({PREFECT_API_URL: prefect_url}), get_client(sync_client=True) as client:
        running = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])))
        # runs of other tests that were killed stand there as running for ever
        ours = [
            run for run in client.read_flow_runs(flow_run_filter=running) if run.parameters["dataset_id"] == "xx000055"
        ]
        (run,) = ours
        client.set_flow_run_state(run.id, Cancelling())


def test_each_way_of_stopping_publishes_what_is_done_and_the_last_run_finishes(
    zarrmill: Zarrmill, dataset: Path, engine: Engine, prefect_url: str, tmp_path: Path
) -> None:
    served = Served(tmp_path / "served", "xx000055")

    # a second command on the same dataset is told which run holds it; a signal finishes what runs
    process = _start(zarrmill, dataset, engine, 2)
    busy = zarrmill.run("convert", dataset, code=4)
    assert "run 1 of xx000055" in busy.stderr
    assert f"pid {process.pid}" in busy.stderr
    process.send_signal(signal.SIGTERM)
    stopped = finish(process, code=143).summary
    first = _assert_balanced(engine, served)
    assert 0 < first < COUNT
    assert (stopped["stopped"], stopped["stores"], stopped["pending"]) == ("SIGTERM", first, COUNT - first)

    # two signals: what runs is let go, uncounted
    process = _start(zarrmill, dataset, engine, 2)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert finish(process, code=130).summary["stopped"] == "SIGINT"
    second = _assert_balanced(engine, served)
    assert first < second < COUNT

    # cancelled in Prefect, which sends no signal to a run that a command does itself
    process = _start(zarrmill, dataset, engine, 2)
    _cancel(prefect_url)
    finish(process, code=143)
    third = _assert_balanced(engine, served)
    assert second < third < COUNT
    states = "SELECT count(*) FROM runs WHERE state = 'cancelled'"
    assert _ask(engine, states) == 3

    assert zarrmill.run("convert", dataset, "--json").summary["stores"] == COUNT
    assert _assert_balanced(engine, served) == COUNT
    told = "SELECT count(*) FROM callbacks WHERE status = 'ready'"
    assert _ask(engine, told) == _ask(engine, "SELECT count(*) FROM runs") == 4
