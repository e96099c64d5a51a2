"""The three stages of one attempt, as Dask tasks pinned to one worker: fetch, convert, upload.

A stage returns what the next one takes, or the ``AttemptReport`` of an attempt that has ended, which the following stages pass
through. However an attempt ends, its edge is written, its lease dropped and its scratch folder removed by the stage in which
it ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from contract.codes import FailureCode, PendingReason
from contract.errors import LostLease, NotNow, StorageError
from db import recordings
from db.attempts import Ended
from db.recordings import Measured
from infra.storage.opening import open_target
from tasks.convert.child import ChildLostError, ChildRaisedError
from tasks.convert.child_process import Raised
from tasks.convert.leases import HeldAttempt
from tasks.convert.order import AttemptReport, ConversionOrder, ConvertedStore
from tasks.convert.publish_store import publish_store
from tasks.convert.verdict import Verdict, VerdictKind, classify, classify_exit
from tasks.convert.worker_room import WorkerRoom, stage_key, worker_room
from tasks.events.rows import have_a_sample
from tasks.formats.protocol import Route
from tasks.sources.protocol import SourceChanged

__all__ = ["Assignment", "Converted", "Fetched", "Outcome", "abandon", "convert", "fetch", "upload"]

_LOG = logging.getLogger("zarrmill.worker")
_CONVERT: Final = "tasks.convert.recording:convert"
_CLASSIFY: Final = "tasks.convert.verdict:classify"
_DATABASE_PATIENCE_S: Final = 60.0  # a restart of Postgres takes seconds; the attempt's lease bounds it too
_T = TypeVar("_T")


class Outcome:
    """Values of ``AttemptReport.outcome``."""

    DONE: Final = "done"
    FAILED: Final = "failed"
    PENDING: Final = "pending"
    RELEASED: Final = "released"
    LOST: Final = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One attempt for one worker.

    ``memory_counts``: whether running out of memory costs an attempt; not when the flow will try again with more.
    """

    order: ConversionOrder
    memory_counts: bool = True


@dataclass(slots=True, kw_only=True)
class Fetched:
    """An attempt whose inputs are in its scratch folder."""

    assignment: Assignment
    primary_bytes: int
    measured_bytes: int | None = None
    stage_seconds: dict[str, float] = field(default_factory=dict)
    stage_bytes: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    quantisation: bytes | None = None

    @property
    def order(self) -> ConversionOrder:
        """The order it carries out."""
        return self.assignment.order

    def measured(self, traceback: str | None = None) -> Measured:
        """What it took so far, for the history."""
        return Measured(
            measured_bytes=self.measured_bytes,
            stage_seconds=self.stage_seconds,
            stage_bytes=self.stage_bytes,
            traceback=traceback,
            notes=self.notes,
            quantisation=self.quantisation,
        )


@dataclass(frozen=True, slots=True)
class Converted:
    """An attempt whose store is finished in its scratch folder."""

    fetched: Fetched
    store: ConvertedStore


def fetch(assignment: Assignment) -> Fetched | AttemptReport:
    """The attempt with its inputs in scratch, or its report."""
    order = assignment.order
    room = worker_room()
    fetched = Fetched(assignment=assignment, primary_bytes=order.recording.size_bytes)

    def work(held: HeldAttempt) -> Fetched:
        scratch = room.scratch.make(order.attempt_id)
        room.source(order.source).fetch(order.present(), scratch / "source", before=lambda: _go_on(held))
        primary = scratch / "source" / order.recording.members[0]
        if primary.is_file():
            fetched.primary_bytes = primary.stat().st_size
        return fetched

    return _stage(room, "fetch", fetched, work)


def convert(before: Assignment | Fetched | AttemptReport) -> Converted | AttemptReport:
    """The attempt with its finished store in scratch, or its report. The work is done in a child process.

    Takes an assignment as it is where the files are near: bringing them is then a matter of links, and no task of its own.
    """
    fetched = fetch(before) if isinstance(before, Assignment) else before
    if isinstance(fetched, AttemptReport):
        return fetched
    order = fetched.order
    room = worker_room()
    key = stage_key("convert", order.attempt_id)

    def work(held: HeldAttempt) -> Converted:
        try:
            result = room.pool.run(
                _CONVERT,
                order,
                room.scratch.of(order.attempt_id),
                permitted_bytes=order.permitted_bytes,
                timeout_s=order.timeout_s,
                in_memory=order.route is Route.IN_MEMORY,
                explain=_CLASSIFY,
                cancelled=lambda: held.must_stop or room.is_cancelled(key),
            )
        except (ChildLostError, ChildRaisedError) as error:
            fetched.measured_bytes = error.measured_bytes
            raise
        except OSError as error:
            # too many processes, or no memory for one more: this recording has not even begun
            detail = f"no process could be started for it: {error.strerror or error}"
            raise NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False) from error
        fetched.measured_bytes = result.measured_bytes
        fetched.stage_seconds.update(result.value.stage_seconds)
        fetched.notes = result.value.notes
        fetched.quantisation = result.value.quantisation
        return Converted(fetched, result.value)

    return _stage(room, "child", fetched, work)


def upload(converted: Converted | AttemptReport) -> AttemptReport:
    """The report of the attempt, whose store is served when its outcome is ``done``."""
    if isinstance(converted, AttemptReport):
        return converted
    fetched, order = converted.fetched, converted.fetched.order
    room = worker_room()

    def work(held: HeldAttempt) -> AttemptReport:
        if not room.source(order.source).unchanged(order.present()):
            raise SourceChanged
        try:
            row = publish_store(
                lambda statement: _edge(held, room, statement),
                open_target(order.target, room.settings),
                order,
                converted.store,
                room.scratch.of(order.attempt_id),
                primary_bytes=fetched.primary_bytes,
                may_write=held.may_write,
            )
        except StorageError as error:
            detail = f"its store could not be written to the target: {error.sentence}"
            raise NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False) from error
        except OSError as error:
            # a full or broken target is nothing that a recording should pay for
            detail = f"its store could not be written to the target: {error.strerror or error}"
            raise NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False) from error
        fetched.stage_seconds["upload"] = time.monotonic() - begun
        fetched.stage_bytes["upload"] = sum(one.size_bytes for one in converted.store.objects.values())
        _edge(
            held,
            room,
            lambda c: recordings.done(
                c, attempt_id=order.attempt_id, run_number=order.run_number, store=row, report=fetched.measured()
            ),
        )
        room.end_attempt(order.attempt_id)
        events = converted.store.events
        unusable = events is not None and not have_a_sample(events)
        return replace(_report(fetched, Outcome.DONE), events_unusable=unusable)

    begun = time.monotonic()
    return _stage(room, "upload", fetched, work)


def abandon(attempt_ids: Collection[UUID] | None = None, *, unbegun_only: bool = False) -> None:
    """Ask this worker process to end these attempts, or all; each ends as released. For ``Client.run``; returns at once.

    ``unbegun_only`` leaves alone those whose conversion has begun.
    """
    worker_room().leases.stop(attempt_ids, unbegun_only=unbegun_only)


def _stage(room: WorkerRoom, name: str, fetched: Fetched, work: Callable[[HeldAttempt], _T]) -> _T | AttemptReport:
    begun = time.monotonic()
    order = fetched.order
    held: HeldAttempt | None = None
    try:
        held = room.leases.hold(order.attempt_id, order.run_number)
        with _working(held):
            if room.is_leaving and name != "upload":
                held.stop_asked.set()
            _go_on(held)
            held.has_begun = held.has_begun or name == "child"
            result = work(held)
    except BaseException as error:  # noqa: BLE001 - the process boundary: every end of an attempt has its edge
        fetched.stage_seconds[name] = time.monotonic() - begun
        return _end(room, held, fetched, error)
    fetched.stage_seconds.setdefault(name, time.monotonic() - begun)
    return result


def _go_on(held: HeldAttempt) -> None:
    """Raise LostLease when the attempt is to end; it ends by the same edge as every other."""
    if held.must_stop:
        raise LostLease("the attempt was stopped")


@contextmanager
def _working(held: HeldAttempt) -> Iterator[None]:
    held.is_working = True
    try:
        yield
    finally:
        held.is_working = False


def _end(room: WorkerRoom, held: HeldAttempt | None, fetched: Fetched, error: BaseException) -> AttemptReport:
    """Write the edge that ``error`` means for the recording, and clean up."""
    order = fetched.order
    verdict = _verdict_of(error)
    # SIGBUS may have other causes than a full disk
    was_full = not isinstance(error, ChildLostError)
    if verdict.disk_full and room.scratch.was_filled_by_others(
        order.attempt_id, order.scratch_bytes, was_full=was_full
    ):
        verdict = verdict.of_a_neighbour()
    try:
        if held is None or held.lost:
            return _report(fetched, Outcome.LOST, verdict)
        return _take_edge(room, held, fetched, verdict)
    except LostLease:
        return _report(fetched, Outcome.LOST, verdict)
    except SQLAlchemyError as trouble:
        # The lease runs out by itself, and the flow finds it.
        _LOG.warning("the end of attempt %s could not be written: %s", order.attempt_id, type(trouble).__name__)
        return _report(fetched, Outcome.LOST, verdict)
    finally:
        room.end_attempt(order.attempt_id)


def _verdict_of(error: BaseException) -> Verdict:
    if isinstance(error, ChildLostError):
        return classify_exit(error.exit)
    if isinstance(error, SourceChanged):
        return Verdict(kind=VerdictKind.RELEASED, error="the source changed while it was converted")
    if isinstance(error, ChildRaisedError):
        explained = error.explained
        if isinstance(explained, Verdict):
            return explained
        assert isinstance(explained, Raised)
        line = f"{explained.class_name}: {explained.line}"
        return classify(NotNow(PendingReason.INFRA_FAILURE, detail=line))
    return classify(error)


def _take_edge(room: WorkerRoom, held: HeldAttempt, fetched: Fetched, verdict: Verdict) -> AttemptReport:
    order, measured = fetched.order, fetched.measured(verdict.traceback)
    key: dict[str, Any] = {"attempt_id": order.attempt_id, "run_number": order.run_number, "report": measured}
    if verdict.kind is VerdictKind.FAILED:
        assert verdict.code is not None
        code = verdict.code
        _edge(held, room, lambda c: recordings.fail(c, code=code, detail=verdict.error, **key))
        return _report(fetched, Outcome.FAILED, verdict)
    if verdict.kind is VerdictKind.RELEASED:
        why = verdict.error or "stopped"
        _edge(held, room, lambda c: recordings.release(c, why=why, **key))
        return _report(fetched, Outcome.RELEASED, verdict)
    reason = verdict.reason or PendingReason.INFRA_FAILURE
    counted = verdict.counted and (fetched.assignment.memory_counts or reason is not PendingReason.MEMORY_BUDGET)
    ended: Ended = _edge(
        held, room, lambda c: recordings.postpone(c, reason=reason, error=verdict.error, counted=counted, **key)
    )
    return _report(fetched, Outcome.FAILED if ended.exhausted else Outcome.PENDING, verdict, ended)


def _edge(held: HeldAttempt, room: WorkerRoom, statement: Callable[[Connection], _T]) -> _T:
    """Run one transaction, again while Postgres restarts: each edge may be repeated by the attempt that took it."""
    give_up = min(time.monotonic() + _DATABASE_PATIENCE_S, held.deadline)
    while True:
        try:
            with room.engine.begin() as c:
                return statement(c)
        except OperationalError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(0.5)


def _report(
    fetched: Fetched, outcome: str, verdict: Verdict | None = None, ended: Ended | None = None
) -> AttemptReport:
    order = fetched.order
    code = None if verdict is None else verdict.code
    return AttemptReport(
        attempt_id=order.attempt_id,
        recording_id=order.recording_id,
        path=order.recording.path,
        outcome=outcome,
        code=FailureCode.RETRY_EXHAUSTED if ended is not None and ended.exhausted else code,
        reason=None if verdict is None or verdict.kind is VerdictKind.FAILED else verdict.reason,
        counted=ended is not None and ended.counted,
        error=None if verdict is None else verdict.error,
        measured_bytes=fetched.measured_bytes,
        stage_seconds=dict(fetched.stage_seconds),
        again=verdict is not None and verdict.again and outcome in {Outcome.RELEASED, Outcome.PENDING},
    )
