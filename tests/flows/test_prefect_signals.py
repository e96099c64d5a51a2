"""A SIGTERM that Prefect's own handler hears, before or after ours stands, is a word to finish like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.exceptions import TerminationSignal
from small_dataset import write_recording, write_root
from sqlalchemy import Engine

from flows.prefect_run import run_as_flow
from flows.request import ReconvertRequest, RunSummary, StopSignal
from flows.session import Opening, Session, hold
from flows.stop import listening
from flows.summary import summarise
from flows.survey import survey
from infra.settings import load_settings


@pytest.fixture
def held(engine: Engine, database_url: str, home: Path, tmp_path: Path) -> Iterator[Session]:
    """A run that holds a dataset of one recording. The work is the test's."""
    folder = tmp_path / "xx000001"
    write_root(folder)
    write_recording(folder, "01")
    settings = load_settings(database_url=database_url)
    request = ReconvertRequest(source=str(folder), target=str(tmp_path / "served"))
    found = survey(settings, engine, request)
    found.target.prepare()
    opening = Opening(
        settings=settings,
        engine=engine,
        request=request,
        survey=found,
        on_event=lambda _event: None,
        stop=StopSignal(),
    )
    with hold(opening) as session:
        yield session


def summary(session: Session) -> RunSummary:
    return summarise(session, converted=0, changed=False, notes=(), seconds=0.0)


def test_work_that_it_breaks_off_is_finished_without_prefect(prefect_url: str, held: Session) -> None:
    calls: list[Any] = []

    def work(stage: Any) -> RunSummary:
        calls.append(stage)
        if len(calls) == 1:
            raise TerminationSignal(15)
        stage("publish", lambda: None)
        return summary(held)

    # as a command does: Prefect hands the signal on to the handler that stood before its own
    with listening(held.stop):
        told = run_as_flow(held, prefect_url, work)
    assert (told.discovered, told.pending, told.stopped) == (1, 1, "SIGTERM")
    assert len(calls) == 2
    assert (held.stop.state == "go", held.stop.kind) == (False, "SIGTERM"), "nothing new starts in the second go"


def test_any_other_error_is_told_as_it_is(prefect_url: str, held: Session) -> None:
    def work(_stage: Any) -> RunSummary:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_as_flow(held, prefect_url, work)
