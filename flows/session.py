"""One run's hold on one dataset: opened with a plan, kept alive while it works, ended in the database on every exit."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from contract.errors import Busy, LostLease, ZarrmillError
from contract.redact import error_line
from db import datasets, leases, runs
from db.recordings import apply_plan
from flows.ownership import is_gone, owning, workers_ended
from flows.request import Note
from flows.run_report import leave_reports
from flows.survey import current_versions, make_plan
from flows.trigger import claim_for_run, end_without_publishing
from infra.home import Home
from infra.processes import user_name
from infra.sizes import format_bytes
from tasks.callback import RunReport, enqueue, enqueue_converting, failed_body
from tasks.publish.repair import repair_intents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from sqlalchemy import Engine
    from sqlalchemy.exc import SQLAlchemyError

    from db.datasets import Dataset
    from db.leases import Owner
    from db.runs import Run
    from flows.ownership import Ownership
    from flows.request import ProgressEvent, ReconvertRequest
    from flows.stop import StopSignal
    from flows.survey import Survey
    from infra.settings import Settings
    from tasks.plan.planned import Plan
    from tasks.publish.live import LostStore

__all__ = ["Opening", "Session", "hold"]

log = logging.getLogger("zarrmill.flows.session")

_RENEW_EVERY_S = leases.LEASE_S / 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a run is opened with.

    ``called`` names the run in the history where that is no request's mode. ``find_lost`` is asked, once the dataset is held, which of its stores do not stand as they should; they are due again.
    ``is_open`` is what an unsigned request just saw of the target; None where it saw nothing.
    """

    settings: Settings
    engine: Engine
    request: ReconvertRequest
    survey: Survey
    on_event: Callable[[ProgressEvent], None]
    stop: StopSignal
    called: runs.Mode | None = None
    find_lost: Callable[[Dataset], Collection[LostStore]] = lambda _dataset: ()
    is_open: bool | None = None


@dataclass(slots=True, kw_only=True)
class Session:
    """What one run works with. ``ended`` is set by whoever wrote the run's terminal state."""

    settings: Settings
    engine: Engine
    request: ReconvertRequest
    survey: Survey
    on_event: Callable[[ProgressEvent], None]
    stop: StopSignal
    dataset: Dataset
    run: Run
    plan: Plan
    ownership: Ownership
    ended: bool = False
    lost: threading.Event = field(default_factory=threading.Event)

    def check_lease(self) -> None:
        """Raise LostLease when another run has taken the dataset over."""
        if self.lost.is_set():
            raise LostLease("another run has taken over this dataset", detail=f"run {self.run.number}")


@contextmanager
def hold(opening: Opening) -> Iterator[Session]:
    """The dataset, held by a new run whose plan is in the database, until the block ends.

    Whatever ends the block, the run is ended in the database, its unfinished attempts are released uncounted, and a
    terminal callback is written.

    Raises
    ------
    Busy
        Another run holds the dataset.
    """
    with owning(Home(opening.settings.home)) as ownership:
        dataset = _register(opening.engine, opening.survey, is_open=opening.is_open)
        run = _acquire(opening, dataset, ownership)
        session: Session | None = None
        try:
            session = _prepare(opening, dataset, run, ownership)
            with _renewed(session):
                yield session
        except BaseException as error:
            if not isinstance(error, LostLease) and not (session is not None and session.ended):
                _end_badly(opening, dataset, run, error)
            raise
        finally:
            _release(opening.engine, run)


def _register(engine: Engine, surveyed: Survey, *, is_open: bool | None) -> Dataset:
    with engine.begin() as c:
        dataset = datasets.register(
            c,
            dataset_id=surveyed.choice.dataset_id,
            target=surveyed.target.url,
            source=surveyed.source.url,
            annex=surveyed.source.address.annex,
        )
        datasets.set_facts(c, dataset=dataset, facts=surveyed.facts)
        anonymous = dataset.anonymous if is_open is None else is_open
        if anonymous != dataset.anonymous:
            datasets.set_anonymous(c, dataset=dataset, anonymous=anonymous)
    return replace(dataset, facts=surveyed.facts, anonymous=anonymous)


def _acquire(opening: Opening, dataset: Dataset, ownership: Ownership) -> Run:
    holders: list[Owner] = []

    def gone(owner: Owner) -> bool:
        holders.append(owner)
        return is_gone(owner)

    def once() -> Run:
        with opening.engine.begin() as c:
            run = leases.acquire(
                c,
                dataset=dataset,
                owner=ownership.owner,
                mode=opening.called or opening.request.mode,
                versions=current_versions(),
                owner_is_gone=gone,
            )
            claim_for_run(c, run=run, commits=(opening.request.commit, opening.survey.commit))
            return run

    try:
        return once()
    except Busy:
        # its command may have been killed a moment ago, with its workers still on their way out
        if not holders:
            raise
        workers_ended(holders[-1])
        return once()


def _prepare(opening: Opening, dataset: Dataset, run: Run, ownership: Ownership) -> Session:
    engine = opening.engine
    untrusted = (*repair_intents(engine, opening.survey.target, dataset), *opening.find_lost(dataset))
    # again, now that nobody else changes anything
    planned = make_plan(engine, opening.survey, dataset, opening.request, opening.settings, untrusted=untrusted)
    with engine.begin() as c:
        apply_plan(c, dataset=dataset, run=run, rows=planned.rows())
        datasets.note_converting(c, run=run)
        enqueue_converting(c, run=run, dataset=dataset)
        runs.note_asked(c, run=run, source_commit=opening.survey.commit, asked=_asked(opening.request))
    for sentence in opening.survey.notes:
        opening.on_event(Note(sentence=sentence))
    given = {
        each.name: getattr(opening, each.name)
        for each in fields(opening)
        if each.name not in {"called", "find_lost", "is_open"}
    }
    return Session(**given, dataset=dataset, run=run, plan=planned, ownership=ownership)


def _asked(request: ReconvertRequest) -> dict[str, object]:
    """What history keeps of a request; the user whose command this is stands for who asked, where no request of theirs does."""
    said: dict[str, object] = {
        "by": user_name(),
        "commit": request.commit,
        "rebuild_on": ", ".join(sorted(request.rebuild_on)),
        "priority": request.priority,
        "workers": request.workers,
        "memory": request.memory_bytes and format_bytes(request.memory_bytes),
        "hash_signals": request.hash_signals,
        "allow_dirty": request.allow_dirty,
        "at": request.at,
        "public": request.public,
    }
    return {name: value for name, value in said.items() if value}


@contextmanager
def _renewed(session: Session) -> Iterator[None]:
    """Keep the dataset lease while inside; on its loss ``session.lost`` is set and the run is asked to stop."""
    left = threading.Event()
    thread = threading.Thread(target=_renew, args=(session, left), name="zarrmill-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _renew(session: Session, left: threading.Event) -> None:
    from sqlalchemy.exc import SQLAlchemyError

    while not left.wait(_RENEW_EVERY_S):
        try:
            with session.engine.begin() as c:
                leases.renew(c, run=session.run)
        except LostLease:
            log.warning("run %d has lost its dataset to another run", session.run.number)
            session.lost.set()
            return
        except SQLAlchemyError as error:
            log.warning("the dataset lease could not be renewed: %s", error_line(error))


def _end_badly(opening: Opening, dataset: Dataset, run: Run, error: BaseException) -> None:
    """Write the terminal state of a run that raised. Nothing here may hide ``error``."""
    from sqlalchemy.exc import SQLAlchemyError

    sentence = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    found = opening.survey
    report = RunReport(
        commit=found.commit,
        discovered_count=len(found.discovery.recordings),
        provenance_fetch_failed=found.provenance_fetch_failed,
    )
    try:
        with opening.engine.begin() as c:
            datasets.note_failed(c, run=run, errors=0, error=sentence)
            enqueue(c, run=run, body=failed_body(dataset, report, error))
            runs.finish(c, run=run, state="failed", error=sentence)
            end_without_publishing(
                c, run=run, error=sentence, counts=isinstance(error, Exception), stopped=opening.stop.goes_on_later
            )
    except (SQLAlchemyError, ZarrmillError) as another:
        _cannot("note the end of run %d: %s", run, another)
        return
    if isinstance(error, Exception):  # who presses Ctrl-C twice does not wait; upkeep or the next run writes it
        leave_reports(opening.engine, opening.survey.target, dataset)


def _release(engine: Engine, run: Run) -> None:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with engine.begin() as c:
            leases.release(c, run=run)
    except (SQLAlchemyError, ZarrmillError) as another:
        _cannot("release the dataset of run %d: %s", run, another)


def _cannot(what: str, run: Run, error: SQLAlchemyError | ZarrmillError) -> None:
    log.warning("could not " + what, run.number, error_line(error))
