"""Recordings of a dataset: the snapshot that a plan is made from, what is due, and the history of one.

The edges are written in ``db.attempts``, ``db.expiry`` and ``db.unattempted``, and offered here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from contract.codes import FailureCode, PendingReason, WhyDue
from db.apply import Applied, PlannedAction, PlannedRow, apply_plan, unpack_inputs
from db.attempt_ends import AttemptEnd, ends, was_alone
from db.attempts import Ended, Measured, claim, done, fail, postpone, release, renew_attempts
from db.coverage import SERVED
from db.expiry import expire
from db.stores import StoreRow
from db.unattempted import defer, refuse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = [
    "Applied",
    "AttemptEnd",
    "AttemptRecord",
    "Ended",
    "Measured",
    "PlannedAction",
    "PlannedRow",
    "RecordingHistory",
    "RecordingState",
    "ServedVersions",
    "StoreRow",
    "Verdict",
    "apply_plan",
    "claim",
    "defer",
    "done",
    "due",
    "ends",
    "expire",
    "fail",
    "inputs",
    "noted",
    "postpone",
    "refuse",
    "release",
    "renew_attempts",
    "snapshot",
    "was_alone",
    "why",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVersions:
    """The four columns of a served store."""

    source: str
    options: str
    engine: str
    biosigio: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why a recording failed, and with what that was found: another engine makes it due again.

    ``needed_bytes`` is what a recording_too_large needs.
    """

    code: FailureCode
    detail: str | None
    options: str
    engine: str
    biosigio: str
    needed_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingState:
    """What the database believes of one recording.

    Parameters
    ----------
    discovered
        False when it has vanished from the source and only its history, and perhaps its store, is left.
    source
        Fingerprint of its inputs as they were last planned.
    served
        None when no store of it stands at the target.
    due
        none, pending, converting or failed.
    attempts
        Counted attempts since its source last changed or it last converted.
    """

    id: int
    path: str
    zarr: str
    discovered: bool
    source: str
    served: ServedVersions | None
    due: str
    why: WhyDue | None
    reason: PendingReason | None
    verdict: Verdict | None
    attempts: int
    last_error: str | None
    last_attempt_at: datetime | None
    next_attempt_at: datetime | None

    @property
    def code(self) -> FailureCode | None:
        """The verdict's code."""
        return None if self.verdict is None else self.verdict.code

    @property
    def published_as(self) -> str | None:
        """The index list that names it: stores, failures, pending; None when it has vanished."""
        if not self.discovered:
            return None
        if self.served is not None and self.served.source == self.source:
            return "stores"
        return "failures" if self.due == "failed" else "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt as history tells it.

    Parameters
    ----------
    outcome
        converting, done, failed, pending, released or expired.
    notes
        What is to be said about the recording and its store: troubles with sidecars, what was repaired or left out.
    quantisation
        What int16 cost each channel of the store, packed; None when the attempt made none.
    why
        What had made it due; None for attempts of before that was kept.
    """

    attempt_id: UUID
    run_number: int
    worker: str
    route: str
    projected_bytes: int
    permitted_bytes: int
    scratch_bytes: int
    measured_bytes: int | None
    outcome: str
    counted: bool
    code: FailureCode | None
    reason: PendingReason | None
    error: str | None
    traceback: str | None
    started_at: datetime
    ended_at: datetime | None
    stage_seconds: Mapping[str, float]
    stage_bytes: Mapping[str, int]
    notes: tuple[str, ...]
    quantisation: bytes | None
    zarrmill: str
    engine: str
    biosigio: str
    why: WhyDue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingHistory:
    """A recording's state and every attempt at it, oldest first."""

    state: RecordingState
    attempts: tuple[AttemptRecord, ...]


_STATE = """
    SELECT r.pk, r.path, r.zarr, r.discovered, r.source, r.served_source, s.options, s.engine, s.biosigio, r.due, r.why, r.reason,
           r.code, r.detail, r.needed_bytes, r.verdict_options, r.verdict_engine, r.verdict_biosigio, r.attempts, r.last_error,
           r.last_attempt_at, r.next_attempt_at
    FROM recordings r LEFT JOIN stores s ON s.recording_pk = r.pk
    WHERE r.dataset_pk = :dataset
"""


def _state(row: Any) -> RecordingState:
    served = row.served_source and ServedVersions(
        source=row.served_source, options=row.options, engine=row.engine, biosigio=row.biosigio
    )
    verdict = row.code and Verdict(
        code=FailureCode(row.code),
        detail=row.detail,
        options=row.verdict_options,
        engine=row.verdict_engine,
        biosigio=row.verdict_biosigio,
        needed_bytes=row.needed_bytes,
    )
    return RecordingState(
        id=row.pk,
        path=row.path,
        zarr=row.zarr,
        discovered=row.discovered,
        source=row.source,
        served=served,
        due=row.due,
        why=row.why and WhyDue(row.why),
        reason=row.reason and PendingReason(row.reason),
        verdict=verdict,
        attempts=row.attempts,
        last_error=row.last_error,
        last_attempt_at=row.last_attempt_at,
        next_attempt_at=row.next_attempt_at,
    )


def snapshot(c: Connection, *, dataset: Dataset) -> list[RecordingState]:
    """Every recording ever discovered, vanished ones too, ordered by path; light rows by one query."""
    return [_state(row) for row in c.execute(text(_STATE + "ORDER BY r.path"), {"dataset": dataset.pk})]


def noted(c: Connection, *, dataset: Dataset) -> list[str]:
    """Paths of served recordings about which the attempt that made their store left notes, in order."""
    rows = c.scalars(
        text(f"""
            SELECT r.path FROM stores s
            JOIN attempts a ON a.id = s.attempt_id AND cardinality(a.notes) > 0
            JOIN recordings r ON r.pk = s.recording_pk
            WHERE s.dataset_pk = :dataset AND {SERVED} ORDER BY r.path
        """),
        {"dataset": dataset.pk},
    )
    return list(rows)


def due(c: Connection, *, dataset: Dataset) -> list[RecordingState]:
    """Recordings that wait for a conversion, ordered by path. Whether it is time for them is the plan's to say."""
    rows = c.execute(text(_STATE + "AND r.due = 'pending' ORDER BY r.path"), {"dataset": dataset.pk})
    return [_state(row) for row in rows]


def inputs(c: Connection, *, recording_ids: Collection[int]) -> dict[int, tuple[tuple[str, str], ...]]:
    """(path, content id) of every input as last planned, sorted, by recording."""
    rows = c.execute(
        text("SELECT pk, inputs FROM recordings WHERE pk = ANY(CAST(:ids AS bigint[]))"), {"ids": list(recording_ids)}
    )
    return {row.pk: unpack_inputs(row.inputs) for row in rows}


def why(c: Connection, *, dataset: Dataset, path: str, newest: int | None = None) -> RecordingHistory | None:
    """What is known of one recording, by its path or its store's; None for an unknown one. Of its attempts all, or the ``newest``."""
    row = c.execute(
        text(
            _STATE
            + "AND (r.path = :path OR r.zarr = :path) ORDER BY r.path = :path DESC, r.discovered DESC, r.pk LIMIT 1"
        ),
        {"dataset": dataset.pk, "path": path},
    ).one_or_none()
    if row is None:
        return None
    attempts = c.execute(
        text("""
            SELECT * FROM (
                SELECT a.*, u.number, u.zarrmill, u.engine, u.biosigio FROM attempts a JOIN runs u ON u.id = a.run_id
                WHERE a.recording_pk = :recording ORDER BY a.ordinal DESC LIMIT CAST(:newest AS bigint)
            ) found ORDER BY ordinal
        """),
        {"recording": row.pk, "newest": newest},
    )
    return RecordingHistory(state=_state(row), attempts=tuple(_attempt(attempt) for attempt in attempts))


def _attempt(row: Any) -> AttemptRecord:
    return AttemptRecord(
        attempt_id=row.id,
        run_number=row.number,
        worker=row.worker,
        route=row.route,
        projected_bytes=row.projected_bytes,
        permitted_bytes=row.permitted_bytes,
        scratch_bytes=row.scratch_bytes,
        measured_bytes=row.measured_bytes,
        outcome=row.outcome,
        counted=row.counted,
        code=row.code and FailureCode(row.code),
        reason=row.reason and PendingReason(row.reason),
        error=row.error,
        traceback=row.traceback,
        started_at=row.started_at,
        ended_at=row.ended_at,
        stage_seconds=row.stage_seconds,
        stage_bytes=row.stage_bytes,
        notes=tuple(row.notes),
        quantisation=row.quantisation,
        zarrmill=row.zarrmill,
        engine=row.engine,
        biosigio=row.biosigio,
        why=row.why and WhyDue(row.why),
    )
