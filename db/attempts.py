"""The edges of a recording that is being converted. Each is one guarded statement that also writes the attempt's history.

An edge out of ``converting`` names the attempt and the run number and wants the attempt's lease alive. When no row moves, the
attempt has either ended that way before, which is success, or it was superseded: ``LostLease``. Whoever catches that writes
nothing more, to the database or to the target.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from contract.codes import FailureCode, PendingReason
from contract.errors import LostLease
from db.edges import BACK_TO_PENDING, END_ATTEMPT, FREE, HELD, VERDICT_OF_RUN
from db.stores import drop_twins

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from sqlalchemy import Connection, TextClause

    from db.runs import Run
    from db.stores import StoreRow

__all__ = [
    "ATTEMPT_LEASE_S",
    "NOTHING_MEASURED",
    "Ended",
    "Measured",
    "claim",
    "done",
    "ended",
    "fail",
    "postpone",
    "release",
    "renew_attempts",
]

ATTEMPT_LEASE_S = 60
"""How long an attempt stays held by a worker that is not heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What an attempt took: peak memory, wall seconds and bytes by stage, and the bounded traceback of an error.

    ``notes`` is what is to be said about the recording and its store, one sentence each, fit to be published; the first 19
    of too many are kept. ``quantisation`` is what int16 cost each channel of a finished store, packed
    (``tasks.convert.loss``).
    """

    measured_bytes: int | None = None
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    stage_bytes: Mapping[str, int] = field(default_factory=dict)
    traceback: str | None = None
    notes: Sequence[str] = ()
    quantisation: bytes | None = None

    def values(self) -> dict[str, Any]:
        """The values of ``END_ATTEMPT``. A traceback keeps its end, where the error is."""
        return {
            "measured": self.measured_bytes,
            "seconds": json.dumps(dict(self.stage_seconds)),
            "bytes": json.dumps(dict(self.stage_bytes)),
            "traceback": self.traceback and self.traceback[-16_000:],
            "notes": _bounded(self.notes),
            "quantisation": self.quantisation,
        }


_MOST_NOTES = 20
_LONGEST_NOTE = 300


def _bounded(notes: Sequence[str]) -> list[str]:
    """The notes as the table takes them; the last one tells how many were left out."""
    # Postgres refuses NUL in text
    kept = [note.replace("\x00", "")[:_LONGEST_NOTE] for note in notes[:_MOST_NOTES]]
    if len(notes) > _MOST_NOTES:
        kept[-1] = f"{len(notes) - _MOST_NOTES + 1} more notes were left out"
    return kept


NOTHING_MEASURED = Measured()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt gave its recording back.

    Parameters
    ----------
    counted
        It cost the recording one of its five attempts.
    exhausted
        It was the fifth: the recording is now a failure, ``retry_exhausted``.
    """

    attempt_id: UUID
    recording_id: int
    counted: bool
    exhausted: bool


_CLAIM = text("""
    WITH held AS MATERIALIZED (
        -- shared, so that a run that takes the dataset over waits for this claim and then sees it
        SELECT run_number FROM dataset_leases WHERE run_id = :run AND expires_at > zarrmill_now() FOR SHARE
    ), moved AS (
        UPDATE recordings r
        SET due = 'converting', attempt_id = :attempt, run_number = held.run_number, worker = :worker,
            claimed_at = zarrmill_now(), lease_expires_at = zarrmill_now() + make_interval(secs => :lease_s)
        FROM held
        WHERE r.pk = :recording AND r.dataset_pk = :dataset AND r.due = 'pending'
        RETURNING r.pk, r.format, r.why
    )
    INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, floor_bytes, projected_bytes, permitted_bytes,
                          scratch_bytes, why)
    SELECT CAST(:attempt AS uuid), pk, :run, :worker, format, :route, NULLIF(CAST(:floor AS bigint), 0),
           CAST(:projected AS bigint), CAST(:permitted AS bigint), CAST(:scratch AS bigint), why
    FROM moved
""")


def claim(
    c: Connection,
    *,
    run: Run,
    recording_id: int,
    attempt_id: UUID,
    worker: str,
    route: str,
    projected_bytes: int,
    permitted_bytes: int,
    scratch_bytes: int = 0,
    floor_bytes: int = 0,
    lease_s: float = ATTEMPT_LEASE_S,
) -> None:
    """Take a pending recording for an attempt: pending → converting.

    ``worker`` names one worker process; recordings that share it are taken to die together.
    ``floor_bytes`` is what the formula alone projects, 0 where the recording's header told it no size: such an attempt is
    never learnt from.

    Raises
    ------
    LostLease
        The recording is not pending, or the run does not hold the dataset.
    """
    values = {
        "run": run.id,
        "dataset": run.dataset_pk,
        "recording": recording_id,
        "attempt": attempt_id,
        "worker": worker,
        "route": route,
        "projected": projected_bytes,
        "permitted": permitted_bytes,
        "scratch": scratch_bytes,
        "floor": floor_bytes,
        "lease_s": lease_s,
    }
    if c.execute(_CLAIM, values).rowcount == 1:
        return
    again = text(f"SELECT 1 FROM recordings r WHERE r.pk = :recording AND {HELD}")
    if c.scalar(again, {"recording": recording_id, "attempt": attempt_id, "number": run.number}) is None:
        raise LostLease(
            "this recording is not free to be converted", detail=f"recording {recording_id}, run {run.number}"
        )


def renew_attempts(c: Connection, *, attempt_ids: Collection[UUID], lease_s: float = ATTEMPT_LEASE_S) -> set[UUID]:
    """The attempts that are still held, each for another ``lease_s`` seconds; one that ran out does not come back."""
    rows = c.execute(
        text("""
            WITH held AS (
                SELECT pk, attempt_id FROM recordings
                WHERE attempt_id = ANY(CAST(:ids AS uuid[])) AND lease_expires_at > zarrmill_now()
                ORDER BY pk FOR UPDATE
            )
            UPDATE recordings r SET lease_expires_at = zarrmill_now() + make_interval(secs => :lease_s)
            FROM held WHERE r.pk = held.pk AND r.attempt_id = held.attempt_id
            RETURNING r.attempt_id
        """),
        {"ids": list(attempt_ids), "lease_s": lease_s},
    )
    return {row.attempt_id for row in rows}


_STORE_COLUMNS = (
    "entry, source, options, engine, biosigio, digests, etags, events, events_row_count, source_key, size_bytes, duration_s, attempt_id, "
    "updated_utc, zarr"
)

_DONE = text(f"""
    WITH moved AS (
        UPDATE recordings r
        SET due = 'none', why = NULL, reason = NULL, served_source = :source, attempts = 0, deaths = 0, last_error = NULL,
            last_attempt_at = zarrmill_now(), next_attempt_at = NULL, {FREE}
        WHERE {HELD} AND r.source = :source
        RETURNING r.pk, r.dataset_pk, r.zarr
    ), kept AS (
        INSERT INTO stores (recording_pk, dataset_pk, {_STORE_COLUMNS})
        SELECT pk, dataset_pk, :entry, :source, :options, :engine, :biosigio, :digests, :etags, :events, CAST(:events_row_count AS bigint),
               :source_key, CAST(:size_bytes AS bigint), CAST(:duration_s AS float8), CAST(:attempt AS uuid),
               CAST(:updated_utc AS timestamptz), zarr
        FROM moved
        ON CONFLICT (recording_pk) DO UPDATE
        SET ({_STORE_COLUMNS}) = ROW ({", ".join("excluded." + name.strip() for name in _STORE_COLUMNS.split(","))})
    ), finished AS (
        DELETE FROM intents i USING moved WHERE i.dataset_pk = moved.dataset_pk AND i.zarr = moved.zarr
    )
    {END_ATTEMPT.format(outcome="'done'", code="NULL", reason="NULL", error="NULL", counted="false", source="moved")}
""")


def done(
    c: Connection, *, attempt_id: UUID, run_number: int, store: StoreRow, report: Measured = NOTHING_MEASURED
) -> None:
    """The store is served and nothing is due: converting → none. The store's intents are closed.

    Raises
    ------
    LostLease
        The attempt was superseded, or the recording's source is no longer the one converted.
    """
    drop_twins(c, attempt_id=attempt_id, run_number=run_number)
    values = {**store.values(), **report.values(), "attempt": attempt_id, "number": run_number}
    _end(c, _DONE, values, outcome="done")


_FAIL = text(f"""
    WITH moved AS (
        UPDATE recordings r
        SET due = 'failed', why = NULL, reason = NULL, code = :code, detail = left(:detail, 4000), needed_bytes = :needed,
            {VERDICT_OF_RUN}, last_attempt_at = zarrmill_now(), next_attempt_at = NULL, {FREE}
        FROM runs u
        WHERE {HELD} AND u.dataset_pk = r.dataset_pk AND u.number = r.run_number
        RETURNING r.pk
    )
    {END_ATTEMPT.format(outcome="'failed'", code="CAST(:code AS text)", reason="NULL", error=":detail", counted="false", source="moved")}
""")


def fail(
    c: Connection,
    *,
    attempt_id: UUID,
    run_number: int,
    code: FailureCode,
    detail: str | None,
    needed_bytes: int | None = None,
    report: Measured = NOTHING_MEASURED,
) -> None:
    """The recording has a verdict: converting → failed. ``needed_bytes`` belongs to recording_too_large.

    A store that is served and true stays in the index.

    Raises
    ------
    LostLease
        The attempt was superseded.
    """
    values = {"attempt": attempt_id, "number": run_number, "code": code.value, "detail": detail, "needed": needed_bytes}
    _end(c, _FAIL, {**values, **report.values()}, outcome="failed", code=code.value)


_THIS_ONE = f"""
    SELECT r.pk, r.dataset_pk, r.attempt_id, r.run_number AS number, r.counted_run, r.attempts, {{columns}}
    FROM recordings r WHERE {HELD} FOR UPDATE
"""
_POSTPONE = text(
    BACK_TO_PENDING.format(
        held=_THIS_ONE.format(
            columns="""'pending' AS outcome, CAST(:counted AS boolean) AS counts, CAST(:reason AS text) AS reason,
                       CAST(:error AS text) AS error, CAST(:error AS text) AS note, false AS died"""
        )
    )
)
_RELEASE = text(
    BACK_TO_PENDING.format(
        held=_THIS_ONE.format(
            columns="""'released' AS outcome, false AS counts, CAST(NULL AS text) AS reason, CAST(NULL AS text) AS error,
                       CAST(:note AS text) AS note, false AS died"""
        )
    )
)


def postpone(
    c: Connection,
    *,
    attempt_id: UUID,
    run_number: int,
    reason: PendingReason,
    error: str | None,
    counted: bool,
    report: Measured = NOTHING_MEASURED,
) -> Ended:
    """A condition of the machine: converting → pending, or → failed(retry_exhausted) at the fifth counted attempt.

    A second counted attempt in one run is kept uncounted. ``error`` is published as ``last_error``: give it redacted.

    Raises
    ------
    LostLease
        The attempt was superseded.
    """
    if reason is PendingReason.NOT_ATTEMPTED:
        raise ValueError("an attempt that was made cannot end as not attempted; release it")
    values = {"attempt": attempt_id, "number": run_number, "reason": reason.value, "error": error, "counted": counted}
    row = _end(c, _POSTPONE, {**values, **report.values()}, outcome="pending", reason=reason.value)
    return ended(row)


def release(c: Connection, *, attempt_id: UUID, run_number: int, why: str, report: Measured = NOTHING_MEASURED) -> None:
    """Give the recording back as it was, never counted: converting → pending. ``why`` is kept with the attempt.

    Raises
    ------
    LostLease
        The attempt was superseded.
    """
    _end(c, _RELEASE, {"attempt": attempt_id, "number": run_number, "note": why, **report.values()}, outcome="released")


def ended(row: Any) -> Ended:
    """What ``BACK_TO_PENDING`` returns, as a value."""
    return Ended(attempt_id=row.id, recording_id=row.recording_pk, counted=row.counted, exhausted=row.exhausted)


def _end(
    c: Connection,
    edge: TextClause,
    values: Mapping[str, Any],
    *,
    outcome: str,
    code: str | None = None,
    reason: str | None = None,
) -> Any:
    """The attempt's row after the edge, or as an earlier try of the same edge left it."""
    row = c.execute(edge, values).one_or_none()
    if row is not None:
        return row
    row = c.execute(
        text("""
            SELECT a.*, r.code IS NOT DISTINCT FROM 'retry_exhausted' AND a.counted AS exhausted
            FROM attempts a JOIN recordings r ON r.pk = a.recording_pk WHERE a.id = :attempt
        """),
        {"attempt": values["attempt"]},
    ).one_or_none()
    if row is None or (row.outcome, row.code, row.reason) != (outcome, code, reason):
        raise LostLease("this attempt was superseded", detail=f"attempt {values['attempt']}, run {values['number']}")
    return row
