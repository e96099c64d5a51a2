"""What attempts measured against what was projected for them: for the next plan, for a run's callback, and for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Run, Versions

__all__ = ["KindMeasured", "MeasuredAttempt", "kinds_measured", "measured_attempts", "recent_ratios"]

RECENT_ATTEMPTS = 200
"""Attempts of one kind that a plan learns from: enough for a high quantile, few enough to forget what has changed."""


def recent_ratios(
    c: Connection, *, kinds: Collection[tuple[str, str]], versions: Versions, limit: int = RECENT_ATTEMPTS
) -> Mapping[tuple[str, str], tuple[float, ...]]:
    """Measured over the formula's bytes of the newest attempts of each (format, route), newest first; one query.

    Attempts of this release and this biosigIO alone: another formula or another reader says nothing about these. An attempt
    that ran out of memory counts with a quarter more than it was permitted: less was not enough, and without it the
    sample would hold only what had fitted. Attempts whose header told no size are left out.
    """
    if not kinds:
        return {}
    rows = c.execute(
        _RECENT,
        {
            "formats": [kind[0] for kind in kinds],
            "routes": [kind[1] for kind in kinds],
            "zarrmill": versions.zarrmill,
            "biosigio": versions.biosigio,
            "limit": limit,
        },
    )
    return {(row.format, row.route): tuple(row.ratios) for row in rows if row.ratios}


_RECENT = text("""
    WITH since AS MATERIALIZED (
        SELECT min(started_at) AS moment FROM runs WHERE zarrmill = :zarrmill AND biosigio = :biosigio
    )
    SELECT k.format, k.route, found.ratios
    FROM unnest(CAST(:formats AS text[]), CAST(:routes AS text[])) AS k (format, route), LATERAL (
        SELECT array_agg(newest.ratio ORDER BY newest.ended_at DESC) AS ratios
        FROM (
            SELECT a.ended_at, CASE WHEN a.outcome = 'done' THEN a.measured_bytes
                                    ELSE 1.25 * GREATEST(a.measured_bytes, a.permitted_bytes) END::float8 / a.floor_bytes AS ratio
            FROM attempts a JOIN runs u ON u.id = a.run_id
            WHERE a.format = k.format AND a.route = k.route AND a.measured_bytes IS NOT NULL AND a.floor_bytes IS NOT NULL
              AND (a.outcome = 'done' OR a.reason = 'memory_budget') AND a.ended_at >= (SELECT moment FROM since)
              AND u.zarrmill = :zarrmill AND u.biosigio = :biosigio
            ORDER BY a.ended_at DESC LIMIT :limit
        ) newest
    ) found
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class KindMeasured:
    """Measured over projected bytes of the converted recordings of one format and route.

    Parameters
    ----------
    attempts
        How many were measured.
    median_ratio, p99_ratio, worst_ratio
        Of measured over projected bytes.
    worst_path, worst_projected_bytes, worst_measured_bytes
        The recording with the largest ratio.
    formula_median_ratio
        Median of measured over what the formula alone projected; None where it never knew a size.
    """

    format: str
    route: str
    attempts: int
    median_ratio: float
    p99_ratio: float
    worst_ratio: float
    worst_path: str
    worst_projected_bytes: int
    worst_measured_bytes: int
    formula_median_ratio: float | None


_SCOPE = """
    FROM attempts a JOIN recordings r ON r.pk = a.recording_pk JOIN datasets d ON d.pk = r.dataset_pk
    WHERE d.target = :target AND (CAST(:dataset AS bigint) IS NULL OR r.dataset_pk = :dataset)
      AND (CAST(:run AS uuid) IS NULL OR a.run_id = :run)
"""


def _scope(target: str, dataset: Dataset | None, run: Run | None) -> dict[str, Any]:
    return {
        "target": target,
        "dataset": None if dataset is None else dataset.pk,
        "run": None if run is None else run.id,
    }


def kinds_measured(
    c: Connection, *, target: str, dataset: Dataset | None = None, run: Run | None = None
) -> tuple[KindMeasured, ...]:
    """Measured against projected memory by format and route, the worst ratio first; of one dataset or run when named."""
    rows = c.execute(_KINDS, _scope(target, dataset, run))
    return tuple(
        KindMeasured(
            format=row.format,
            route=row.route,
            attempts=row.attempts,
            median_ratio=row.quantiles[0],
            p99_ratio=row.quantiles[1],
            worst_ratio=row.quantiles[2],
            worst_path=row.worst_path,
            worst_projected_bytes=row.worst_bytes[0],
            worst_measured_bytes=row.worst_bytes[1],
            formula_median_ratio=row.formula_median,
        )
        for row in rows
    )


_KINDS = text(f"""
    WITH measured AS (
        SELECT a.format, a.route, r.path, a.ordinal, a.projected_bytes, a.measured_bytes,
               a.measured_bytes::float8 / a.projected_bytes AS ratio, a.measured_bytes::float8 / a.floor_bytes AS by_formula
        {_SCOPE} AND a.outcome = 'done' AND a.measured_bytes IS NOT NULL
    )
    SELECT format, route, count(*) AS attempts,
           percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY ratio) AS quantiles,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY by_formula) AS formula_median,
           (array_agg(path ORDER BY ratio DESC, ordinal))[1] AS worst_path,
           ARRAY[(array_agg(projected_bytes ORDER BY ratio DESC, ordinal))[1],
                 (array_agg(measured_bytes ORDER BY ratio DESC, ordinal))[1]] AS worst_bytes
    FROM measured GROUP BY format, route ORDER BY max(ratio) DESC, format, route
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAttempt:
    """One attempt that has ended, with its memory in bytes and its times. ``measured_bytes`` is None when nothing was measured.

    ``held_until`` is when its memory was free again: at its end, less the time that its upload took.
    """

    dataset_id: str
    path: str
    run_number: int
    worker: str
    format: str
    route: str
    outcome: str
    reason: str | None
    projected_bytes: int
    permitted_bytes: int
    measured_bytes: int | None
    started_at: datetime
    held_until: datetime


def measured_attempts(
    c: Connection, *, target: str, dataset: Dataset | None = None, run: Run | None = None, limit: int = 20_000
) -> tuple[MeasuredAttempt, ...]:
    """The newest attempts that have ended, oldest first; of one dataset or run when named, at most ``limit``."""
    rows = c.execute(_ATTEMPTS, {**_scope(target, dataset, run), "limit": limit}).all()
    return tuple(MeasuredAttempt(**row._mapping) for row in reversed(rows))


_ATTEMPTS = text(f"""
    SELECT n.dataset_id, n.path, u.number AS run_number, n.worker, n.format, n.route, n.outcome, n.reason, n.projected_bytes,
           n.permitted_bytes, n.measured_bytes, n.started_at, n.held_until
    FROM (
        SELECT a.ordinal, d.dataset_id, r.path, a.run_id, a.worker, a.format, a.route, a.outcome, a.reason, a.projected_bytes,
               a.permitted_bytes, a.measured_bytes, a.started_at,
               GREATEST(a.started_at, a.ended_at
                   - make_interval(secs => COALESCE((a.stage_seconds ->> 'upload')::float8, 0))) AS held_until
        {_SCOPE} AND a.ended_at IS NOT NULL
        ORDER BY a.ordinal DESC LIMIT :limit
    ) n JOIN runs u ON u.id = n.run_id
    ORDER BY n.ordinal DESC
""")
