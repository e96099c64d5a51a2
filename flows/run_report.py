"""The report that each run leaves beside its target: best effort, its trouble is disclosed and stops nothing."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from contract.layout import run_report_key
from contract.redact import error_line
from db import datasets, run_reports
from db.run_list import find_head
from infra.storage import open_target
from infra.storage.private import delete_private, put_private

if TYPE_CHECKING:
    from uuid import UUID

    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.runs import Run
    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["leave_owed_reports", "leave_reports", "made_report", "remove_old_reports"]

log = logging.getLogger("zarrmill.flows.run_report")


def made_report(c: Connection, *, run_id: UUID) -> bytes | None:
    """The report of a run as Postgres knows it now, one HTML file; None for a run that is not known."""
    # the template engine takes 50 ms to import, and a run with nothing to do has no report
    from tasks.run_report.page import report_page
    from tasks.run_report.story import story_of

    head = find_head(c, run_id=run_id)
    return None if head is None else report_page(story_of(c, head), made_at=datetime.now(UTC))


def leave_reports(engine: Engine, target: Target, dataset: Dataset) -> tuple[str, ...]:
    """Write the report of each run of the dataset that has ended and left none; a sentence when one could not be written.

    That is the run which just ended, and any before it that were killed.
    """
    with engine.connect() as c:
        owed = run_reports.owed(c, dataset=dataset)
    return tuple(trouble for run in owed if (trouble := _leave(engine, target, run)) is not None)


def leave_owed_reports(settings: Settings, engine: Engine) -> int:
    """Write reports of runs that were killed and that no run of their dataset follows, or that could not be written; how many."""
    with engine.connect() as c:
        owed = [(run, datasets.by_pk(c, pk=run.dataset_pk)) for run in run_reports.owed(c)]
    written = 0
    for run, dataset in owed:
        if dataset is None:
            continue
        try:
            target = open_target(dataset.target, settings)
        except ZarrmillError as error:
            log.warning(
                "the report of run %d of %s was not written: %s", run.number, dataset.dataset_id, error.sentence
            )
            continue
        written += _leave(engine, target, run) is None
    return written


def _leave(engine: Engine, target: Target, run: Run) -> str | None:
    try:
        with engine.connect() as c:
            page = made_report(c, run_id=run.id)
        if page is None:
            return None
        put_private(target, run_report_key(run.id), page)
        with engine.begin() as c:
            run_reports.note(c, run_id=run.id, size_bytes=len(page))
    except Exception as error:  # noqa: BLE001 - the run has ended: nothing about its report may undo that
        return _note_trouble(engine, run, error)
    return None


def _note_trouble(engine: Engine, run: Run, error: Exception) -> str:
    sentence = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    log.warning("the report of run %d was not written: %s", run.number, error_line(error))
    try:
        with engine.begin() as c:
            run_reports.note(c, run_id=run.id, trouble=sentence)
    except Exception as another:  # noqa: BLE001 - nor may it be undone by what cannot be noted
        log.warning("that was not noted: %s", error_line(another))
    return f"the report of run {run.number} could not be written: {sentence}"


def remove_old_reports(engine: Engine, target: Target, dataset: Dataset, *, keep_days: int) -> int:
    """Remove the reports of runs that ended more than ``keep_days`` days ago; how many. Trouble is logged, and met again next time."""
    with engine.connect() as c:
        old = run_reports.old(c, dataset=dataset, keep_days=keep_days)
    removed = 0
    for run_id in old:
        try:
            delete_private(target, run_report_key(run_id))
        except (OSError, ZarrmillError) as error:
            log.warning("old reports of %s were not removed: %s", dataset.dataset_id, error_line(error))
            break
        with engine.begin() as c:
            run_reports.forget(c, run_id=run_id)
        removed += 1
    return removed
