"""What is known of one recording beside its state: its file, who converts it now, and the store that is served of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from db.apply import unpack_inputs

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["RecordingFacts", "ServedStore", "recording_facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStore:
    """The store that is served of a recording.

    Parameters
    ----------
    entry
        Its index entry's exact bytes.
    source
        Fingerprint of the inputs that it was made from.
    made_by
        The number of the run that made it; None when it was taken over, or that run is forgotten.
    """

    entry: bytes
    source: str
    options: str
    engine: str
    biosigio: str
    digest: str
    duration_s: float
    events_row_count: int
    updated_utc: datetime
    attempt_id: UUID
    made_by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingFacts:
    """A recording beside its state.

    Parameters
    ----------
    inputs
        (path, content id) of every file that applies to it, as last planned.
    worker, claimed_at, lease_expires_at
        Who converts it now; None when nobody does.
    attempts
        How many were ever made.
    """

    format: str
    modality: str | None
    size_bytes: int
    inputs: tuple[tuple[str, str], ...]
    worker: str | None
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    attempts: int
    store: ServedStore | None


_FACTS = text("""
    SELECT r.format, r.modality, r.size_bytes, r.inputs, r.worker, r.claimed_at, r.lease_expires_at,
           (SELECT count(*) FROM attempts a WHERE a.recording_pk = r.pk) AS attempts,
           s.recording_pk IS NOT NULL AS is_served, s.entry, s.source, s.options, s.engine, s.biosigio, s.digest, s.duration_s,
           s.events_row_count, s.updated_utc, s.attempt_id, u.number AS made_by
    FROM recordings r LEFT JOIN stores s ON s.recording_pk = r.pk
    LEFT JOIN attempts m ON m.id = s.attempt_id AND m.outcome = 'done' LEFT JOIN runs u ON u.id = m.run_id
    WHERE r.pk = :recording
""")


def recording_facts(c: Connection, *, recording_id: int) -> RecordingFacts:
    """What is known of a recording beside its state, by one statement."""
    row = c.execute(_FACTS, {"recording": recording_id}).one()
    return RecordingFacts(
        format=row.format,
        modality=row.modality,
        size_bytes=row.size_bytes,
        inputs=unpack_inputs(row.inputs),
        worker=row.worker,
        claimed_at=row.claimed_at,
        lease_expires_at=row.lease_expires_at,
        attempts=row.attempts,
        store=_store(row) if row.is_served else None,
    )


def _store(row: Any) -> ServedStore:
    return ServedStore(**{name: getattr(row, name) for name in ServedStore.__slots__})
