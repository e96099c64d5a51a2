"""What a run does once it holds its dataset: convert what is due, publish, and say how it went."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from contract.codes import FAILURE_SENTENCES
from contract.errors import PublishError, ZarrmillError
from contract.index import FailureEntry
from contract.redact import error_line
from contract.times import utc_stamp
from db import recordings, retention, runs, tallies
from db.measurements import kinds_measured
from flows.fan_out import fan_out
from flows.interim import InterimPublisher
from flows.orders import durations, learnt_kinds, orders
from flows.renames import copy_renamed_stores
from flows.request import GaveUp, RecordingEnded, StageChanged, Started
from flows.request import Published as PublishedEvent
from flows.run_report import leave_reports, remove_old_reports
from flows.summary import summarise
from flows.trigger import settle_run
from infra.home import private_folder
from tasks.callback import RunReport, calibration_of, deliver_due, enqueue, ready_body
from tasks.catalog import publish_catalog
from tasks.plan.planned import PlannedAction
from tasks.publish.dataset import publish
from tasks.publish.edition import Edition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from distributed import Client

    from flows.request import ProgressEvent, RunSummary
    from flows.session import Session
    from flows.trigger import LeftBecause
    from tasks.convert.order import AttemptReport
    from tasks.plan.planned import PlannedRecording
    from tasks.publish.dataset import Published

__all__ = ["Instead", "Tally", "carry_out"]

log = logging.getLogger("zarrmill.flows.conversion")


@dataclass(frozen=True, slots=True)
class Instead:
    """Work on a dataset that is held, other than converting: the stage's name, and what says whether it wrote anything."""

    stage: str
    work: Callable[[Session], bool]


@dataclass(slots=True)
class Tally:
    """How the attempts of one run ended."""

    converted: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    failed: dict[str, AttemptReport] = field(default_factory=dict)
    pending: dict[str, AttemptReport] = field(default_factory=dict)
    workers_lost: int = 0
    measured: int = 0
    events_unusable: int = 0
    gave_up: str | None = None
    zarrs: dict[str, str] = field(default_factory=dict)

    def add(self, report: AttemptReport, zarr: str) -> None:
        """Count one attempt. What is tried again in the same run counts by how it ended last."""
        self.zarrs[report.path] = zarr
        self.failed.pop(report.path, None)
        self.pending.pop(report.path, None)
        self.measured += report.measured_bytes is not None
        self.events_unusable += report.events_unusable
        match report.outcome:
            case "done":
                self.converted.append(zarr)
            case "failed":
                self.failed[report.path] = report
            case "pending":
                self.pending[report.path] = report
            case "lost":
                self.workers_lost += 1

    @property
    def unsuccessful(self) -> tuple[str, ...]:
        """Paths of recordings that this run tried and did not convert, sorted."""
        return tuple(sorted({*self.failed, *self.pending}))

    def unserved(self, due_count: int) -> str | None:
        """Why no machine took what was due, when the run ended early for that or made nothing and found nothing out."""
        if self.gave_up is not None:
            return self.gave_up
        if not due_count or self.converted or self.copied or self.failed:
            return None
        return f"all that was due waits for a machine: {due_count}"

    @property
    def deterministic(self) -> bool:
        """Whether something failed, and nothing of it because of a machine."""
        return bool(self.failed) and not self.pending


def carry_out(
    session: Session,
    client: Callable[[], Client],
    *,
    stage: Callable[[str, Callable[[], None]], None],
    instead: Instead | None = None,
) -> RunSummary:
    """Convert, publish and end the run; how the dataset then stands.

    Parameters
    ----------
    client
        Gives the cluster when the first conversion needs it.
    stage
        Runs one named part of the work; a Prefect task run where there is Prefect.
    instead
        Is done in the place of converting; what is due stays due.

    Raises
    ------
    ZarrmillError
        Nothing could be published, or another run has taken the dataset over.
    """
    began = time.monotonic()
    tally, to_convert = Tally(), session.plan.of(PlannedAction.CONVERT)
    session.on_event(_started(session, to_convert))
    deliver_due(session.engine, session.settings)
    done_instead = instead is not None and _do_instead(session, instead)
    if instead is None and to_convert and session.stop.state == "go":
        _copy_and_convert(session, client, stage, tally)
    session.check_lease()
    done: list[Published] = []
    _note_stage(session, "publishing")
    stage("publish-dataset", lambda: done.append(_publish(session, _edition(session, tally))))
    (published,) = done
    session.on_event(PublishedEvent(kind="final"))
    _end(session, tally, published)
    catalog_changed, notes = _catalog(session)
    deliver_due(session.engine, session.settings)
    unreported = leave_reports(session.engine, session.survey.target, session.dataset)
    written = tally.converted or tally.copied or published.removed or done_instead
    return summarise(
        session,
        converted=len(tally.converted),
        changed=published.changed or bool(written) or catalog_changed,
        notes=(*_copies(tally), *_disclosures(published), *notes, *unreported),
        seconds=time.monotonic() - began,
        unserved=tally.unserved(len(to_convert)) if instead is None else None,
    )


def _do_instead(session: Session, instead: Instead) -> bool:
    _note_stage(session, instead.stage)
    return instead.work(session)


def _copy_and_convert(
    session: Session,
    client: Callable[[], Client],
    stage: Callable[[str, Callable[[], None]], None],
    tally: Tally,
) -> None:
    """Copy the stores of what was only renamed, and convert the rest; no cluster where nothing is left."""
    _note_stage(session, "converting")
    tally.copied.extend(copy_renamed_stores(session))
    left = len(session.plan.of(PlannedAction.CONVERT)) - len(tally.copied)
    if left and session.stop.state == "go":
        stage("convert-recordings", lambda: _convert(session, client(), tally))


def _started(session: Session, to_convert: tuple[PlannedRecording, ...]) -> Started:
    return Started(
        dataset_id=session.dataset.dataset_id,
        run_number=session.run.number,
        discovered=len(session.plan.recordings),
        to_convert=sum(planned.copy_of is None for planned in to_convert),
        bytes=sum(planned.recording.size_bytes for planned in to_convert if planned.copy_of is None),
    )


def _catalog(session: Session) -> tuple[bool, tuple[str, ...]]:
    """Bring the catalog up to date; whether it changed. The dataset is published already, so trouble is a note only."""
    session.on_event(StageChanged(stage="publishing the catalog"))
    try:
        catalog = publish_catalog(session.engine, session.survey.target)
    except (OSError, ZarrmillError) as error:
        log.warning("the catalog was not published: %s", error_line(error))
        return False, ("the catalog could not be brought up to date; the next run tries again",)
    if catalog.changed:
        session.on_event(PublishedEvent(kind="catalog"))
    return catalog.changed, ()


def _note_stage(session: Session, what: str) -> None:
    session.on_event(StageChanged(stage=what))
    with session.engine.begin() as c:
        runs.note_stage(c, run=session.run, stage=what)


def _convert(session: Session, client: Client, tally: Tally) -> None:
    """Run the attempts; publish in between when the run is long and stores have changed."""
    planned = session.plan.of(PlannedAction.CONVERT)
    zarrs = {one.recording.path: one.recording.zarr for one in planned}
    with session.engine.connect() as c:
        due = recordings.due(c, dataset=session.dataset)
        learnt, took = learnt_kinds(c), durations(c)
    work = orders(
        session.settings,
        session.engine,
        session.survey,
        session.run,
        dataset=session.dataset,
        planned=planned,
        due=due,
        learnt=learnt,
        took=took,
        enough=lambda: _stop_word(session) is not None,
    )

    def tell(event: ProgressEvent) -> None:
        if isinstance(event, GaveUp):
            tally.gave_up = event.sentence
        session.on_event(event)

    reports = fan_out(
        client,
        session.engine,
        session.run,
        work,
        on_progress=tell,
        should_stop=lambda: _stop_word(session),
        owner=session.ownership.owner,
        priority=session.request.priority,
        largest_worker_bytes=session.settings.largest_worker_bytes,
        grace_s=session.settings.stop_grace_s,
    )
    with closing(reports):
        _follow(session, reports, zarrs, tally)


def _follow(session: Session, reports: Iterable[AttemptReport], zarrs: dict[str, str], tally: Tally) -> None:
    interim = InterimPublisher(session.settings.publish_every_s)

    def prepare() -> Callable[[], None]:
        edition = _edition(session, tally)

        def publish_now() -> None:
            _publish(session, edition)
            session.on_event(PublishedEvent(kind="interim"))

        return publish_now

    try:
        for report in reports:
            tally.add(report, zarrs[report.path])
            session.on_event(RecordingEnded(report=report))
            interim.consider(len(tally.converted), prepare)
    finally:
        interim.wait()


def _stop_word(session: Session) -> str | None:
    if session.lost.is_set():
        return "now"
    return None if session.stop.state == "go" else session.stop.state


def _edition(session: Session, tally: Tally) -> Edition:
    """What a publication at this moment of the run says about itself."""
    return Edition(
        dataset=session.dataset,
        source_commit=session.survey.commit,
        updated_utc=utc_stamp(session.run.started_at),
        errors=len(tally.unsuccessful),
        deterministic=tally.deterministic,
    )


def _publish(session: Session, edition: Edition) -> Published:
    scratch = private_folder(session.settings.scratch)
    target = session.survey.target
    with session.engine.begin() as c:
        tallies.fold(c)
    try:
        return publish(session.engine, target, session.run, edition, scratch=scratch)
    except OSError as error:
        raise PublishError(
            f"The target {target.url} cannot be written: {error.strerror or error}. What it served before is served still.",
            detail=error_line(error),
        ) from error


def _end(session: Session, tally: Tally, published: Published) -> None:
    """Write the run's terminal state and its callback in one transaction."""
    with session.engine.connect() as c:
        calibration = calibration_of(kinds_measured(c, target=session.survey.target.url, run=session.run))
    report = RunReport(
        commit=session.survey.commit,
        discovered_count=len(session.plan.recordings),
        converted=tuple(sorted((*tally.converted, *tally.copied))),
        failed=tally.unsuccessful,
        data_failures=tuple(_failure(tally.failed[path], tally.zarrs[path]) for path in sorted(tally.failed)),
        pending_count=published.coverage.pending,
        not_attempted_count=published.not_attempted_count,
        deterministic=tally.deterministic,
        pool_breaks=tally.workers_lost,
        measured_count=tally.measured,
        calibration=calibration,
        retryable_failures=len(tally.pending),
        provenance_fetch_failed=session.survey.provenance_fetch_failed,
        events_stores_without_rows=tally.events_unusable,
    )
    counts = {
        "discovered": published.coverage.discovered,
        "stores": published.coverage.stores,
        "failures": published.coverage.failures,
        "pending": published.coverage.pending,
        "converted": len(tally.converted),
        "removed": len(published.removed),
        "errors": len(tally.unsuccessful),
    }
    state: runs.EndState = "completed" if session.stop.state == "go" else "cancelled"
    with session.engine.begin() as c:
        enqueue(c, run=session.run, body=ready_body(session.dataset, published, report))
        runs.finish(c, run=session.run, state=state, counts=counts)
        settle_run(
            c,
            run=session.run,
            rebuilt=session.request.rebuild_on,
            stopped=state == "cancelled",
            left=_left(session, tally),
        )
    session.ended = True
    _trim(session)


def _left(session: Session, tally: Tally) -> LeftBecause | None:
    """Why the run ended before its work; None when it tried everything, or nobody wants the rest."""
    tried = len(tally.converted) + len(tally.copied) + len(tally.unsuccessful)
    if tried >= len(session.plan.of(PlannedAction.CONVERT)):
        return None
    if session.stop.state != "go":
        return "stopped" if session.stop.goes_on_later else None
    return None if tally.gave_up is None else "unserved"


def _trim(session: Session) -> None:
    """Remove old history of the dataset; the run has ended already, so trouble is logged only."""
    keep_days = session.settings.keep_history_days
    try:
        remove_old_reports(session.engine, session.survey.target, session.dataset, keep_days=keep_days)
        with session.engine.begin() as c:
            retention.trim(c, dataset=session.dataset, keep_days=keep_days)
    except DBAPIError as error:
        log.warning("old history was not removed: %s", error_line(error))


def _failure(report: AttemptReport, zarr: str) -> FailureEntry:
    assert report.code is not None, "a failed attempt has a code"
    return FailureEntry(
        path=report.path,
        zarr=zarr,
        code=report.code,
        reason=FAILURE_SENTENCES[report.code],
        detail=report.error,
        attempts=0,
    )


def _copies(tally: Tally) -> tuple[str, ...]:
    if not tally.copied:
        return ()
    some = "recording was" if len(tally.copied) == 1 else "recordings were"
    return (f"{len(tally.copied)} {some} only renamed; their stores were copied within the target",)


def _disclosures(published: Published) -> tuple[str, ...]:
    """Sentences about what was left for the next run."""
    left = {
        "events.parquet could not be published; the index names none until the next run": published.events_upload_failed,
        "manifest.json could not be published; the next run tries again": published.manifest_upload_failed,
        "some stores that nothing names any more could not be removed; the next run tries again": published.removal_failed,
    }
    return tuple(sentence for sentence, applies in left.items() if applies)
