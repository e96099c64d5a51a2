"""What the watch over the service asks: what is outstanding, when anything last moved, what is owed for long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["Moving", "StuckDataset", "moving", "stuck_datasets", "undelivered", "week"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """What is outstanding, and how long ago anything moved.

    Parameters
    ----------
    waiting, running
        Requests that may be worked on, and that are. What is paused, or of datasets that take no part, is not outstanding.
    oldest_h
        Hours since the oldest of them was asked for; None when there is none.
    still_h
        Hours since anything last began or ended: an attempt, a run, a request; None when nothing ever did.
    """

    waiting: int
    running: int
    oldest_h: float | None
    still_h: float | None


def moving(c: Connection) -> Moving:
    """How the service moves."""
    row = c.execute(
        text("""
            WITH outstanding AS (
                SELECT q.state, q.asked_at FROM requests q JOIN datasets d ON d.pk = q.dataset_pk
                WHERE q.state = 'running' OR (q.state = 'waiting' AND d.active
                  AND NOT EXISTS (SELECT FROM pauses p WHERE p.dataset_pk IS NULL OR p.dataset_pk = q.dataset_pk))
            ), moved AS (
                -- of attempts the newest end, from its index, and the starts of those that have none: at most one a worker's slot
                SELECT GREATEST((SELECT max(ended_at) FROM attempts),
                                (SELECT max(a.started_at) FROM recordings r JOIN attempts a ON a.id = r.attempt_id
                                 WHERE r.attempt_id IS NOT NULL),
                                (SELECT max(GREATEST(started_at, ended_at)) FROM runs),
                                (SELECT max(GREATEST(started_at, ended_at)) FROM requests)) AS at
            )
            SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'running') AS running,
                   CAST(extract(epoch FROM zarrmill_now() - min(asked_at)) / 3600 AS double precision) AS oldest_h,
                   (SELECT CAST(extract(epoch FROM zarrmill_now() - at) / 3600 AS double precision) FROM moved) AS still_h
            FROM outstanding
        """)
    ).one()
    return Moving(**row._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckDataset:
    """A dataset whose run goes on and has not moved for ``still_h`` hours."""

    dataset_id: str
    target: str
    run_number: int
    stage: str | None
    still_h: float


def stuck_datasets(c: Connection, *, hours: float) -> list[StuckDataset]:
    """Datasets whose run has begun and ended no attempt for so many hours."""
    rows = c.execute(
        text("""
            SELECT * FROM (
                SELECT d.dataset_id, d.target, u.number AS run_number, u.stage,
                       CAST(extract(epoch FROM zarrmill_now() - GREATEST(u.started_at, (
                           SELECT max(GREATEST(a.started_at, a.ended_at)) FROM attempts a WHERE a.run_id = u.id))) / 3600
                           AS double precision) AS still_h
                FROM runs u JOIN datasets d ON d.pk = u.dataset_pk WHERE u.state = 'running'
            ) AS running WHERE still_h > :hours ORDER BY dataset_id, target
        """),
        {"hours": hours},
    )
    return [StuckDataset(**row._mapping) for row in rows]


def undelivered(c: Connection, *, hours: float) -> tuple[int, datetime | None]:
    """Callbacks that some address has not accepted for so many hours: how many, and since when the oldest waits."""
    row = c.execute(
        text("""
            SELECT count(*) AS n, min(created_at) AS since FROM callbacks
            WHERE delivered_at IS NULL AND created_at < zarrmill_now() - make_interval(secs => :hours * 3600)
        """),
        {"hours": hours},
    ).one()
    return int(row.n), row.since


_WEEK = {
    "datasets": """
        SELECT count(*) AS registered, count(*) FILTER (WHERE NOT active) AS inactive,
               count(*) FILTER (WHERE status = 'ready') AS ready, count(*) FILTER (WHERE status = 'failed') AS failed,
               count(*) FILTER (WHERE status IS NULL AND active) AS never_converted,
               count(*) FILTER (WHERE status = 'ready' AND (failure_count > 0 OR pending_count > 0)) AS partly
        FROM datasets""",
    "recordings": """
        SELECT COALESCE(sum(discovered_count), 0)::bigint AS discovered, COALESCE(sum(store_count), 0)::bigint AS stores,
               COALESCE(sum(failure_count), 0)::bigint AS failures, COALESCE(sum(pending_count), 0)::bigint AS pending
        FROM datasets""",
    "last_week": """
        SELECT (SELECT count(*) FROM runs WHERE started_at > zarrmill_now() - interval '7 days') AS runs,
               (SELECT count(*) FROM runs WHERE state IN ('failed', 'lost') AND ended_at > zarrmill_now() - interval '7 days') AS runs_failed,
               count(*) FILTER (WHERE outcome = 'done') AS converted, count(*) FILTER (WHERE outcome = 'failed') AS failed,
               count(*) FILTER (WHERE outcome = 'pending') AS put_off
        FROM attempts WHERE ended_at > zarrmill_now() - interval '7 days'""",
    "requests": """
        SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'running') AS running,
               count(*) FILTER (WHERE state IN ('failed', 'refused') AND ended_at > zarrmill_now() - interval '7 days') AS failed
        FROM requests""",
    "callbacks": "SELECT count(*) FILTER (WHERE delivered_at IS NULL) AS undelivered FROM callbacks",
}


def week(c: Connection) -> dict[str, dict[str, Any]]:
    """How the archive stands, and what the last seven days brought: counts by subject and name."""
    return {name: dict(c.execute(text(statement)).one()._mapping) for name, statement in _WEEK.items()}
