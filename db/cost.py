"""What converting chosen recordings would take, from how long their last conversions took, or those of their format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db.ledger import MANY_SLOTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

__all__ = ["Toll", "toll"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toll:
    """What conversions would take.

    Parameters
    ----------
    seconds
        Of one conversion after another; None when nothing is known of any.
    unknown
        Recordings of formats of which nothing was converted yet; they are not in ``seconds``.
    largest_bytes
        Memory that the hungriest was measured, or permitted, last time; None when none was tried.
    slots
        Conversions side by side on the machines that were heard of in the last day; None when none said how many.
    """

    recordings: int
    size_bytes: int
    seconds: float | None
    unknown: int
    largest_bytes: int | None
    slots: int | None

    @property
    def range_s(self) -> tuple[float, float] | None:
        """Seconds at the least, with every slot at work, and at the most, one after another."""
        if self.seconds is None:
            return None
        return self.seconds / max(min(self.slots or 1, self.recordings - self.unknown), 1), self.seconds


_TOLL = text("""
    WITH chosen AS MATERIALIZED (
        SELECT r.pk, r.format, r.size_bytes, own.seconds, own.bytes
        FROM recordings r LEFT JOIN LATERAL (
            SELECT (a.stage_seconds ->> 'child')::float8 AS seconds, COALESCE(a.measured_bytes, a.permitted_bytes) AS bytes
            FROM attempts a WHERE a.recording_pk = r.pk AND a.outcome IN ('done', 'failed', 'pending') ORDER BY a.ordinal DESC LIMIT 1
        ) own ON true
        WHERE r.pk = ANY(CAST(:recordings AS bigint[]))
    ), pace AS (
        SELECT f.format, sum(n.seconds) / NULLIF(sum(n.size_bytes), 0) AS s_per_byte
        FROM (SELECT DISTINCT format FROM chosen) f CROSS JOIN unnest(ARRAY['in_memory', 'streamed']) AS routes (route)
        CROSS JOIN LATERAL (
            SELECT (a.stage_seconds ->> 'child')::float8 AS seconds, r.size_bytes
            FROM attempts a JOIN recordings r ON r.pk = a.recording_pk
            WHERE a.format = f.format AND a.route = routes.route AND a.measured_bytes IS NOT NULL AND a.floor_bytes IS NOT NULL
              AND a.outcome = 'done' AND a.stage_seconds ? 'child'
            ORDER BY a.ended_at DESC LIMIT 50
        ) n GROUP BY f.format
    )
    SELECT count(*) AS recordings, COALESCE(sum(c.size_bytes), 0)::bigint AS size_bytes,
           sum(COALESCE(c.seconds, c.size_bytes * p.s_per_byte))::float8 AS seconds,
           count(*) FILTER (WHERE c.seconds IS NULL AND p.s_per_byte IS NULL) AS unknown, max(c.bytes)::bigint AS largest_bytes,
           (SELECT sum(slots)::int FROM hosts WHERE slots < :many_slots AND seen_at > zarrmill_now() - interval '1 day') AS slots
    FROM chosen c LEFT JOIN pace p ON p.format = c.format
""")


def toll(c: Connection, *, recordings: Collection[int]) -> Toll:
    """What converting these recordings would take, by one statement."""
    return Toll(**c.execute(_TOLL, {"recordings": list(recordings), "many_slots": MANY_SLOTS}).one()._mapping)
