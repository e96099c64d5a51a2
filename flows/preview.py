"""What the next run over a dataset would do, without doing it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contract.times import utc_stamp
from db import leases, recordings
from db.migrate import upgrade
from flows.headers import headers
from flows.orders import learnt_kinds, projection_of
from flows.request import Preview, PreviewRow
from flows.survey import make_plan, survey
from infra import services
from infra.database import engine as open_engine
from tasks.plan.planned import PlannedAction
from tasks.publish.dataset import is_current
from tasks.publish.edition import Edition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from flows.request import ReconvertRequest
    from flows.survey import Survey
    from infra.settings import Settings
    from tasks.plan.planned import Plan, PlannedRecording
    from tasks.plan.projection import Projection

__all__ = ["documents_are_current", "opened_database", "preview"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a moment that is not looked at: an index that differs in nothing but ``updated_utc`` is current."""


@contextmanager
def opened_database(settings: Settings) -> Iterator[tuple[Engine, str]]:
    """The database, brought to this version's tables, and its address."""
    with services.database(settings) as url:
        upgrade(url)
        engine = open_engine(url)
        try:
            yield engine, url
        finally:
            engine.dispose()


def preview(settings: Settings, request: ReconvertRequest) -> Preview:
    """What ``reconvert`` would do, and why. Writes nothing to the target and nothing about the dataset.

    Raises
    ------
    Refused
        The source, the target or the dataset id cannot be used.
    """
    with opened_database(settings) as (engine, _url):
        surveyed = survey(settings, engine, request)
        planned = make_plan(engine, surveyed, surveyed.choice.registered, request, settings)
        standing = _standing(engine, surveyed)
        with engine.connect() as c:
            learnt = learnt_kinds(c)
        due = (one.recording for one in planned.of(PlannedAction.CONVERT))
        needs = {
            recording.path: projection_of(surveyed, recording, header, learnt)
            for recording, header in headers(engine, surveyed.source, due)
        }
        return Preview(
            dataset_id=surveyed.choice.dataset_id,
            is_new=surveyed.choice.registered is None,
            source=surveyed.source.url,
            target=surveyed.target.url,
            source_commit=surveyed.commit,
            rows=tuple(_preview_row(one, standing, needs.get(one.recording.path)) for one in planned.recordings),
            dropped=planned.dropped,
            documents_current=documents_are_current(engine, surveyed, planned),
            notes=surveyed.notes,
        )


def _standing(engine: Engine, surveyed: Survey) -> dict[str, str]:
    """By path, the code of a verdict that stands and the reason of what waits."""
    dataset = surveyed.choice.registered
    if dataset is None:
        return {}
    with engine.connect() as c:
        states = recordings.snapshot(c, dataset=dataset)
    return {state.path: word.value for state in states if (word := state.code or state.reason) is not None}


def _preview_row(one: PlannedRecording, standing: dict[str, str], needs: Projection | None) -> PreviewRow:
    return PreviewRow(
        path=one.recording.path,
        action=one.action.value,
        why=_why(one, standing),
        changed=tuple(str(change) for change in one.changed),
        copy_of=one.copy_of.path if one.copy_of is not None else None,
        size_bytes=one.recording.size_bytes,
        projected_bytes=needs.projected_bytes if needs else None,
        scratch_bytes=needs.scratch_bytes if needs else None,
        floor_bytes=(needs.floor_bytes or None) if needs else None,
        kind=f"{one.recording.format}, {needs.route.value}" if needs else None,
        basis=needs.basis.value if needs else None,
        learnt_factor=needs.learnt.factor if needs and needs.learnt else None,
        learnt_attempts=needs.learnt.attempts if needs and needs.learnt else None,
    )


def _why(one: PlannedRecording, standing: dict[str, str]) -> str | None:
    match one.action:
        case PlannedAction.CONVERT:
            return one.why.value if one.why else None
        case PlannedAction.FAIL:
            return one.failure[0].value if one.failure else None
        case PlannedAction.KEEP_FAILED | PlannedAction.WAIT:
            return standing.get(one.recording.path)
        case PlannedAction.CARRY:
            return None


def documents_are_current(engine: Engine, surveyed: Survey, planned: Plan) -> bool:
    """Whether there is nothing to do and publishing would write nothing."""
    dataset = surveyed.choice.registered
    if dataset is None or not planned.nothing_to_do or dataset.facts != surveyed.facts:
        return False
    with engine.connect() as c:
        if leases.is_held(c, dataset=dataset):
            return False  # a run that was killed after its last document still owes its end and its callback
    edition = Edition(dataset=dataset, source_commit=surveyed.commit, updated_utc=utc_stamp(_EPOCH))
    return is_current(engine, surveyed.target, edition)
