"""What ran when in a run, and with how much memory: sums over time by worker, counts over time, and each attempt in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = [
    "AttemptRow",
    "PointMeasured",
    "Rate",
    "WorkerStep",
    "attempt_rows",
    "points_measured",
    "rates",
    "worker_steps",
]

_HELD_UNTIL: Final = """GREATEST(a.started_at, COALESCE(a.ended_at - make_interval(secs => COALESCE((a.stage_seconds ->> 'upload')::float8, 0)),
                                 zarrmill_now()))"""
"""SQL over ``attempts a``: when its memory was free again, at its end less its upload; now, for one that is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStep:
    """``at_s`` seconds after the run's first attempt began, what was permitted and measured on a worker in all."""

    worker: str
    at_s: float
    permitted_bytes: int
    measured_bytes: int


_STEPS = text(f"""
    WITH a AS MATERIALIZED (
        SELECT a.worker, extract(epoch FROM a.started_at)::float8 AS since, extract(epoch FROM {_HELD_UNTIL})::float8 AS until,
               a.permitted_bytes, COALESCE(a.measured_bytes, 0) AS measured_bytes
        FROM attempts a WHERE a.run_id = :run AND a.outcome <> 'adopted'
    ), chosen AS (
        SELECT worker FROM a GROUP BY worker ORDER BY worker LIMIT :workers
    ), span AS (
        SELECT min(since) AS began, GREATEST(max(until) - min(since), 1e-3) / :columns AS width FROM a
    ), e AS (
        SELECT a.worker, floor((x.at - span.began) / span.width) AS part, sum(x.permitted)::float8 AS permitted, sum(x.measured)::float8 AS measured
        FROM a JOIN chosen USING (worker), span, LATERAL (VALUES
            (since, permitted_bytes, measured_bytes), (until, -permitted_bytes, -measured_bytes)) x (at, permitted, measured)
        GROUP BY 1, 2
    )
    SELECT e.worker, (e.part + 1) * span.width AS at_s, (sum(e.permitted) OVER w)::bigint AS permitted_bytes,
           (sum(e.measured) OVER w)::bigint AS measured_bytes
    FROM e, span WINDOW w AS (PARTITION BY e.worker ORDER BY e.part) ORDER BY e.worker, e.part
""")


def worker_steps(c: Connection, *, run_id: UUID, columns: int = 240, workers: int = 16) -> tuple[WorkerStep, ...]:
    """Sums over time of at most so many workers, by name, as they were at the end of each of ``columns`` equal parts of the run.

    Parts in which nothing began or ended are left out.

    The measured sum is of the peaks of what was converting, as if all had peaked together. What is under way has measured nothing yet.
    """
    rows = c.execute(_STEPS, {"run": run_id, "columns": columns, "workers": workers})
    return tuple(WorkerStep(**row._mapping) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Attempts that ended within one equal part of the run: converted, and otherwise."""

    at_s: float
    width_s: float
    done: int
    other: int


_RATES = text("""
    WITH span AS (
        SELECT u.started_at AS began, GREATEST(extract(epoch FROM COALESCE(u.ended_at, zarrmill_now()) - u.started_at)::float8, 1) / :columns AS width
        FROM runs u WHERE u.id = :run
    )
    SELECT part * width AS at_s, width AS width_s, count(*) FILTER (WHERE outcome = 'done') AS done,
           count(*) FILTER (WHERE outcome <> 'done') AS other
    FROM (SELECT a.outcome, span.width, LEAST(GREATEST(floor(extract(epoch FROM a.ended_at - span.began)::float8 / span.width), 0), :columns - 1) AS part
          FROM attempts a, span WHERE a.run_id = :run AND a.ended_at IS NOT NULL AND a.outcome <> 'adopted') x
    GROUP BY part, width ORDER BY part
""")


def rates(c: Connection, *, run_id: UUID, columns: int = 48) -> tuple[Rate, ...]:
    """How many attempts ended in each part of the run; parts in which none did are left out."""
    return tuple(Rate(**row._mapping) for row in c.execute(_RATES, {"run": run_id, "columns": columns}))


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMeasured:
    """One conversion's memory."""

    path: str
    format: str
    projected_bytes: int
    measured_bytes: int


_POINTS = text("""
    WITH own AS MATERIALIZED (
        SELECT a.recording_pk, a.ordinal, a.format, a.projected_bytes, a.measured_bytes FROM attempts a
        WHERE a.run_id = :run AND a.outcome = 'done' AND a.measured_bytes IS NOT NULL
    ), few AS (
        (SELECT * FROM own ORDER BY measured_bytes::float8 / projected_bytes DESC LIMIT :worst)
        UNION (SELECT * FROM own ORDER BY hashint8(ordinal) LIMIT :others)
    )
    SELECT r.path, few.format, few.projected_bytes, few.measured_bytes FROM few JOIN recordings r ON r.pk = few.recording_pk
    ORDER BY few.ordinal
""")


def points_measured(c: Connection, *, run_id: UUID, worst: int = 200, others: int = 600) -> tuple[PointMeasured, ...]:
    """Conversions to be drawn: those that came nearest to, or over, what was projected, and a sample of the others, always the same."""
    rows = c.execute(_POINTS, {"run": run_id, "worst": worst, "others": others})
    return tuple(PointMeasured(**row._mapping) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt of the run; ``held_until`` is when its memory was free again."""

    path: str
    worker: str
    format: str
    route: str
    outcome: str
    code: str | None
    reason: str | None
    started_at: datetime
    held_until: datetime
    ended_at: datetime | None
    projected_bytes: int
    permitted_bytes: int
    measured_bytes: int | None


_ROWS = text(f"""
    SELECT r.path, a.worker, a.format, a.route, a.outcome, a.code, a.reason, a.started_at, {_HELD_UNTIL} AS held_until, a.ended_at,
           a.projected_bytes, a.permitted_bytes, a.measured_bytes
    FROM attempts a JOIN recordings r ON r.pk = a.recording_pk WHERE a.run_id = :run ORDER BY a.ordinal
""")


def attempt_rows(c: Connection, *, run_id: UUID) -> Iterator[AttemptRow]:
    """Every attempt of the run in the order in which they were claimed, a thousand at a time."""
    rows = c.execution_options(yield_per=1000).execute(_ROWS, {"run": run_id})
    for row in rows:
        yield AttemptRow(**row._mapping)
