"""Recordings as everybody may see them: a page of a dataset, one with its attempts, and what became of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from db.coverage import SERVED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = [
    "STATES",
    "PublicAttempt",
    "PublicRecording",
    "RecordingPage",
    "attempts_of",
    "find_recording",
    "may_be_read",
    "recording_columns",
    "recording_page",
    "store_state",
]

_MOST_ATTEMPTS = 100

STATES: Final[Mapping[str, str]] = {
    "served": SERVED,
    "failed": f"r.due = 'failed' AND NOT ({SERVED})",
    "pending": f"r.due = 'pending' AND NOT ({SERVED})",
    "converting": f"r.due = 'converting' AND NOT ({SERVED})",
}
"""SQL over discovered ``recordings r`` by the public name of a state; each recording is in exactly one."""

_STATE = f"CASE WHEN {SERVED} THEN 'served' ELSE r.due END"


def recording_columns(*, state: str, shorten: str = "{}") -> str:
    """What ``PublicRecording`` is made of, in SQL over ``recordings r``: how ``state`` is told, and what is done to long texts."""
    detail, error = shorten.format("r.detail"), shorten.format("r.last_error")
    return f"""
        r.pk, r.path, r.zarr, r.format, r.modality, r.size_bytes, {state} AS state, r.due, r.why, r.reason, r.code,
        {detail} AS detail, r.attempts, {error} AS last_error, r.last_attempt_at, r.next_attempt_at
    """


_COLUMNS = recording_columns(state=_STATE)
_KNOWN = """
    WITH known AS MATERIALIZED (
        SELECT d.pk AS dataset_pk FROM datasets d
        WHERE d.target = :target AND d.dataset_id = :dataset_id AND d.active AND d.visibility = 'public'
        UNION ALL
        SELECT NULL FROM received r WHERE r.target = :target AND r.dataset_id = :dataset_id
          AND NOT EXISTS (SELECT FROM datasets d WHERE d.target = r.target AND d.dataset_id = r.dataset_id)
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRecording:
    """One recording. ``state`` is served, failed, pending or converting; ``due`` is what is due of it all the same."""

    pk: int
    path: str
    zarr: str
    format: str
    modality: str | None
    size_bytes: int
    state: str
    due: str
    why: str | None
    reason: str | None
    code: str | None
    detail: str | None
    attempts: int
    last_error: str | None
    last_attempt_at: datetime | None
    next_attempt_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingPage:
    """Recordings by path, and whether more come after the last of them."""

    recordings: tuple[PublicRecording, ...]
    is_last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicAttempt:
    """One attempt: nothing of the machine that made it."""

    run_number: int
    outcome: str
    counted: bool
    code: str | None
    reason: str | None
    error: str | None
    route: str
    projected_bytes: int
    permitted_bytes: int
    measured_bytes: int | None
    started_at: datetime
    ended_at: datetime | None
    stage_seconds: Mapping[str, float]
    notes: tuple[str, ...]
    engine: str
    biosigio: str


def recording_page(
    c: Connection, *, target: str, dataset_id: str, state: str | None, code: str | None, after: str, limit: int
) -> RecordingPage | None:
    """Up to ``limit`` recordings whose path comes after ``after``, by one statement; None for an unknown dataset."""
    wanted = f"({STATES[state]})" if state else "true"
    if code is not None:
        wanted += f" AND r.code = :code AND {STATES['failed']}"
    statement = text(f"""
        {_KNOWN}
        SELECT r.* FROM known LEFT JOIN LATERAL (
            SELECT {_COLUMNS} FROM recordings r
            WHERE r.dataset_pk = known.dataset_pk AND r.discovered AND r.path > :after AND {wanted}
            ORDER BY r.path LIMIT :one_more
        ) r ON true
        ORDER BY r.path
    """)
    values: dict[str, Any] = {"target": target, "dataset_id": dataset_id, "after": after, "one_more": limit + 1}
    rows = c.execute(statement, values if code is None else {**values, "code": code}).all()
    if not rows:
        return None
    found = tuple(PublicRecording(**row._mapping) for row in rows if row.pk is not None)
    return RecordingPage(recordings=found[:limit], is_last=len(found) <= limit)


_ONE = text(f"""
    {_KNOWN}
    SELECT {_COLUMNS} FROM known JOIN recordings r ON r.dataset_pk = known.dataset_pk AND r.path = :path AND r.discovered
""")


def find_recording(c: Connection, *, target: str, dataset_id: str, path: str) -> PublicRecording | None:
    """The recording at this path of a dataset that everybody may see, or None."""
    row = c.execute(_ONE, {"target": target, "dataset_id": dataset_id, "path": path}).one_or_none()
    return None if row is None else PublicRecording(**row._mapping)


_ATTEMPTS = text("""
    SELECT u.number AS run_number, a.outcome, a.counted, a.code, a.reason, a.error, a.route, a.projected_bytes, a.permitted_bytes,
           a.measured_bytes, a.started_at, a.ended_at, a.stage_seconds, a.notes, u.engine, u.biosigio
    FROM attempts a JOIN runs u ON u.id = a.run_id WHERE a.recording_pk = :recording ORDER BY a.ordinal DESC LIMIT :most
""")


def attempts_of(c: Connection, *, recording: PublicRecording) -> list[PublicAttempt]:
    """The last hundred attempts at it, the newest first."""
    rows = c.execute(_ATTEMPTS, {"recording": recording.pk, "most": _MOST_ATTEMPTS})
    return [PublicAttempt(**{**row._mapping, "notes": tuple(row.notes)}) for row in rows]


_MAY = text("SELECT active AND visibility = 'public' FROM datasets WHERE target = :target AND dataset_id = :dataset_id")


def may_be_read(c: Connection, *, target: str, dataset_id: str) -> bool:
    """Whether objects of the dataset are given to everybody. One that is not known here was put there by somebody else."""
    return c.scalar(_MAY, {"target": target, "dataset_id": dataset_id}) is not False


_STORE = text(f"""
    SELECT {_COLUMNS} FROM datasets d JOIN recordings r ON r.dataset_pk = d.pk AND r.zarr = :zarr AND r.discovered
    WHERE d.target = :target AND d.dataset_id = :dataset_id
    -- of two that claim one address, the one that has it or will have it
    ORDER BY ({SERVED}) DESC, r.code IS NOT DISTINCT FROM 'store_path_collision', r.path LIMIT 1
""")


def store_state(c: Connection, *, target: str, dataset_id: str, zarr: str) -> PublicRecording | None:
    """The recording whose store is, or would be, at this path; None when there is none."""
    row = c.execute(_STORE, {"target": target, "dataset_id": dataset_id, "zarr": zarr}).one_or_none()
    return None if row is None else PublicRecording(**row._mapping)
