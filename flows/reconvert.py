"""The flow ``reconvert_dataset``: by a command of its own, or by whoever triggers its deployment."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.errors import Refused
from db import datasets
from flows.preview import documents_are_current, opened_database, preview
from flows.request import RunSummary, StageChanged
from flows.session import Opening, hold
from flows.side_by_side import side_by_side
from flows.standing import check_standing
from flows.summary import documents_of, standing
from flows.survey import current_versions, make_plan, survey
from flows.trigger import settle_unchanged
from infra import services
from infra.home import private_folder
from tasks.catalog import publish_catalog
from tasks.plan.planned import PlannedAction

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from sqlalchemy import Engine

    from flows.request import ProgressEvent, ReconvertRequest
    from flows.session import Session
    from flows.stop import StopSignal
    from flows.survey import Survey
    from infra.settings import Settings

__all__ = ["Recorded", "preview", "reconvert"]

log = logging.getLogger("zarrmill.flows.reconvert")

_SCHEDULER_S = (
    180.0  # in the service a scheduler that ended is started again within seconds, on a busy machine a minute
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Where a run is recorded: the Prefect API, None for nowhere, and the flow run that asked for it, if one did."""

    api_url: str | None
    flow_run_id: UUID | None = None


def reconvert(
    settings: Settings,
    request: ReconvertRequest,
    on_event: Callable[[ProgressEvent], None],
    stop: StopSignal,
    *,
    recorded: Recorded | None = None,
) -> RunSummary:
    """Bring the served copy of a dataset to its source; how it then stands.

    Nothing is written, and neither Prefect nor Dask starts, when there is nothing to do and the documents are current.
    ``recorded`` says where the run is recorded; None: at the Prefect of the settings, which must then answer.

    Raises
    ------
    ZarrmillError
        Refused, Busy, or nothing could be published; what was served before is served still.
    """
    began = time.monotonic()
    with opened_database(settings) as (engine, url):
        surveyed = survey(settings, engine, request)
        check_standing(surveyed.choice.registered, is_open=request.public)
        _refuse_empty(surveyed)
        if request.public:
            surveyed = _opened(engine, surveyed)
        planned = make_plan(engine, surveyed, surveyed.choice.registered, request, settings)
        if documents_are_current(engine, surveyed, planned):
            return _unchanged(engine, surveyed, request, began)
        is_open = _check_machine(settings, surveyed)
        check_standing(surveyed.choice.registered, is_open=is_open)
        if recorded is None:
            services.check_prefect(settings)
        opening = Opening(
            settings=settings,
            engine=engine,
            request=request,
            survey=surveyed,
            on_event=on_event,
            stop=stop,
            is_open=is_open,
        )
        with hold(opening) as session:
            summary = _with_servers(session, url, recorded)
    return replace(summary, seconds=time.monotonic() - began)


def _refuse_empty(surveyed: Survey) -> None:
    """Refuse to publish an index of nothing for a dataset that has published none; one whose recordings went is brought up to date."""
    registered = surveyed.choice.registered
    if not surveyed.discovery.recordings and (registered is None or registered.published is None):
        raise Refused(f"SOURCE {surveyed.source.url} holds no recording, so there is nothing to serve.")


def _opened(engine: Engine, surveyed: Survey) -> Survey:
    """The survey of a dataset that is published openly from now on.

    Raises
    ------
    Refused
        Not everybody can read the target.
    """
    surveyed.target.prepare(public=True)
    registered = surveyed.choice.registered
    if registered is None or registered.anonymous:
        return surveyed
    with engine.begin() as c:
        datasets.set_anonymous(c, dataset=registered, anonymous=True)
    return replace(surveyed, choice=replace(surveyed.choice, registered=replace(registered, anonymous=True)))


def _check_machine(settings: Settings, surveyed: Survey) -> bool | None:
    """Refuse what would stop the run half way, before it has begun. Whether anybody reads the target, as ``Target.prepare`` says."""
    is_open = surveyed.target.prepare()
    try:
        private_folder(settings.scratch)
    except Refused as error:
        raise Refused(f"ZARRMILL_SCRATCH cannot be used: {error.sentence}", detail=error.detail) from error
    return is_open


def _with_servers(session: Session, database_url: str, recorded: Recorded | None) -> RunSummary:
    """Start what the run needs side by side, and carry it out as a flow run."""
    from infra.cluster import cluster

    settings, request = session.settings, session.request
    session.on_event(StageChanged(stage="starting the servers"))
    workers = cluster(
        settings,
        database_url=database_url,
        workers=request.workers,
        memory_bytes=request.memory_bytes,
        workers_lock=session.ownership.workers_lock,
        patience_s=0.0 if recorded is None else _SCHEDULER_S,
    )
    needs_workers = bool(session.plan.of(PlannedAction.CONVERT))
    record = services.prefect_api(settings) if recorded is None else nullcontext(recorded.api_url)
    with side_by_side(record, *([workers] if needs_workers else [])) as (prefect, *rest):
        # their import takes as long as a server's start, so it runs beside that too
        from flows.conversion import carry_out
        from flows.prefect_run import run_as_flow

        return run_as_flow(
            session,
            prefect.result(),
            lambda stage: carry_out(session, lambda: rest[0].result(), stage=stage),  # noqa: PLW0108  # there may be none
            None if recorded is None else recorded.flow_run_id,
        )


def _unchanged(engine: Engine, surveyed: Survey, request: ReconvertRequest, began: float) -> RunSummary:
    """The last word of a run that had nothing to do; the catalog is written only if it had gone missing."""
    dataset = surveyed.choice.registered
    assert dataset is not None, "documents are current only for a dataset that is known"
    with engine.begin() as c:
        settle_unchanged(c, dataset=dataset, asked=request, commit=surveyed.commit, versions=current_versions())
    catalog = publish_catalog(engine, surveyed.target)
    now = standing(engine, dataset)
    return RunSummary(
        dataset_id=dataset.dataset_id,
        target=surveyed.target.url,
        run_number=None,
        discovered=now.counts.discovered,
        stores=now.counts.stores,
        failures=now.counts.failures,
        pending=now.counts.pending,
        converted=0,
        carried=now.counts.stores,
        failed_by_code=now.failed_by_code,
        pending_by_reason=now.pending_by_reason,
        changed=catalog.changed,
        published=True,
        documents=documents_of(surveyed.target, dataset.dataset_id, has_events=now.has_events),
        notes=surveyed.notes,
        seconds=time.monotonic() - began,
    )
