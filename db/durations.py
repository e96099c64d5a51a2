"""How long conversions took, for the order in which the next ones start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection

__all__ = ["KindTook", "recent_durations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTook:
    """The newest conversions of one format and route: how many, their seconds in all, and the bytes of their recordings."""

    attempts: int
    seconds: float
    size_bytes: int


def recent_durations(
    c: Connection, *, kinds: Collection[tuple[str, str]], limit: int = 50
) -> Mapping[tuple[str, str], KindTook]:
    """By (format, route), the newest ``limit`` conversions that ended in a store; one query. Kinds without any are left out."""
    rows = c.execute(
        text("""
            SELECT k.format, k.route, found.attempts, found.seconds, found.size_bytes
            FROM unnest(CAST(:formats AS text[]), CAST(:routes AS text[])) AS k (format, route), LATERAL (
                SELECT count(*) AS attempts, sum(newest.seconds) AS seconds, sum(newest.size_bytes)::bigint AS size_bytes
                FROM (
                    SELECT (a.stage_seconds ->> 'child')::float8 AS seconds, r.size_bytes
                    FROM attempts a JOIN recordings r ON r.pk = a.recording_pk
                    WHERE a.format = k.format AND a.route = k.route AND a.measured_bytes IS NOT NULL
                      AND a.outcome = 'done' AND a.stage_seconds ? 'child'
                    ORDER BY a.ended_at DESC LIMIT :limit
                ) newest
            ) found
            WHERE found.attempts > 0
        """),
        {"formats": [kind[0] for kind in kinds], "routes": [kind[1] for kind in kinds], "limit": limit},
    )
    return {
        (row.format, row.route): KindTook(attempts=row.attempts, seconds=row.seconds, size_bytes=row.size_bytes)
        for row in rows
    }
