"""A SIGTERM that Prefect's own handler hears, before or after ours stands, is a word to finish like any other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from prefect.exceptions import TerminationSignal

from flows.prefect_run import run_as_flow
from flows.request import StopSignal
from flows.stop import listening
from infra.settings import load_settings


def session() -> Any:
    """What ``run_as_flow`` reads of a session; the work itself is the test's."""
    return SimpleNamespace(
        stop=StopSignal(),
        settings=load_settings(),
        dataset=SimpleNamespace(dataset_id="xx000001", target="/served"),
        request=SimpleNamespace(mode="auto"),
        survey=SimpleNamespace(commit="ab" * 20),
    )


def summary() -> Any:
    return SimpleNamespace(discovered=1, stores=1, failures=0, pending=0, stopped=None)


def test_work_that_it_breaks_off_is_finished_without_prefect(prefect_url: str, home: Any) -> None:
    held, calls = session(), []

    def work(stage: Any) -> Any:
        calls.append(stage)
        if len(calls) == 1:
            raise TerminationSignal(15)
        stage("publish", lambda: None)
        return summary()

    # as a command does: Prefect hands the signal on to the handler that stood before its own
    with listening(held.stop):
        assert run_as_flow(held, prefect_url, work).stores == 1
    assert len(calls) == 2
    assert (held.stop.state == "go", held.stop.kind) == (False, "SIGTERM"), "nothing new starts in the second go"


def test_any_other_error_is_told_as_it_is(prefect_url: str, home: Any) -> None:
    def work(_stage: Any) -> Any:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_as_flow(session(), prefect_url, work)
