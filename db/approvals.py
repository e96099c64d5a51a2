"""Datasets made with another engine, other options or another biosigIO, and the word that so many may be made anew at once."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from db.runs import Versions

__all__ = ["GATED_ABOVE", "STAMPS", "Approval", "Cost", "approve", "approved", "preview", "stale"]

GATED_ABOVE = 25
"""So many datasets are made anew by themselves when the converter changes; more wait for an operator's word."""
STAMPS = ("options", "engine", "biosigio")
"""Columns of currency that the converter decides, each with a stamp on every dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What making datasets anew would take.

    Parameters
    ----------
    size_bytes
        Of the recordings at their source.
    largest_bytes
        Memory that the hungriest of them was measured, or permitted, last time.
    hours
        Of one conversion after another, as long as the last time; where that is not known, as long as others of that size.
    """

    datasets: int
    recordings: int
    size_bytes: int
    largest_bytes: int
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The word that everything stale by a column may be brought to this value."""

    rebuild_column: str
    value: str
    approved_at: datetime
    approved_by: str
    why: str | None


def stale(c: Connection, *, versions: Versions, columns: Collection[str]) -> dict[int, tuple[str, ...]]:
    """By dataset, the columns in which its stamp is another than the present one. What was never stamped is not stale."""
    rows = c.execute(
        text("""
            SELECT dataset_pk, columns FROM (
                SELECT p.dataset_pk, d.dataset_id, array_remove(ARRAY[
                    CASE WHEN p.options <> :options AND 'options' = ANY(CAST(:columns AS text[])) THEN 'options' END,
                    CASE WHEN p.engine <> :engine AND 'engine' = ANY(CAST(:columns AS text[])) THEN 'engine' END,
                    CASE WHEN p.biosigio <> :biosigio AND 'biosigio' = ANY(CAST(:columns AS text[])) THEN 'biosigio' END
                ], NULL) AS columns
                FROM policies p JOIN datasets d ON d.pk = p.dataset_pk WHERE d.active
            ) s WHERE cardinality(columns) > 0 ORDER BY dataset_id
        """),
        _values(versions) | {"columns": list(columns)},
    )
    return {row.dataset_pk: tuple(row.columns) for row in rows}


def preview(c: Connection, *, datasets: Collection[int]) -> Cost:
    """What making every discovered recording of these datasets anew would take; one query."""
    row = c.execute(
        text("""
            WITH last AS (
                SELECT r.dataset_pk, r.size_bytes, a.seconds, a.bytes
                FROM recordings r LEFT JOIN LATERAL (
                    SELECT (a.stage_seconds ->> 'child')::float8 AS seconds, COALESCE(a.measured_bytes, a.permitted_bytes) AS bytes
                    FROM attempts a WHERE a.recording_pk = r.pk AND a.outcome IN ('done', 'adopted') ORDER BY a.ordinal DESC LIMIT 1
                ) a ON true
                WHERE r.dataset_pk = ANY(CAST(:datasets AS bigint[])) AND r.discovered
            ), pace AS (
                SELECT sum(seconds) / NULLIF(sum(size_bytes) FILTER (WHERE seconds IS NOT NULL), 0) AS s_per_byte FROM last
            )
            SELECT count(*) AS recordings, COALESCE(sum(size_bytes), 0)::bigint AS size_bytes,
                   COALESCE(max(bytes), 0)::bigint AS largest_bytes,
                   COALESCE(sum(COALESCE(seconds, size_bytes * pace.s_per_byte)), 0) / 3600 AS hours
            FROM last, pace
        """),
        {"datasets": list(datasets)},
    ).one()
    return Cost(
        datasets=len(set(datasets)),
        recordings=row.recordings,
        size_bytes=row.size_bytes,
        largest_bytes=row.largest_bytes,
        hours=float(row.hours),
    )


def approve(
    c: Connection, *, versions: Versions, columns: Collection[str], approved_by: str, why: str | None, cost: Cost
) -> int:
    """Approve the present value of each column: how many were not approved before. Another value needs another word."""
    values: Mapping[str, str] = _values(versions)
    return c.execute(
        text("""
            INSERT INTO approvals (rebuild_column, value, approved_by, why, preview)
            SELECT u.name, u.value, left(:by, 200), left(:why, 1000), CAST(:cost AS jsonb)
            FROM unnest(CAST(:names AS text[]), CAST(:values AS text[])) AS u (name, value)
            ON CONFLICT (rebuild_column, value) DO NOTHING
        """),
        {
            "names": list(columns),
            "values": [values[column] for column in columns],
            "by": approved_by,
            "why": why,
            "cost": json.dumps(asdict(cost)),
        },
    ).rowcount


def approved(c: Connection, *, versions: Versions) -> list[Approval]:
    """What is approved of the present values."""
    rows = c.execute(
        text("""
            SELECT rebuild_column, value, approved_at, approved_by, why FROM approvals
            WHERE (rebuild_column, value) IN (('options', :options), ('engine', :engine), ('biosigio', :biosigio))
            ORDER BY rebuild_column
        """),
        _values(versions),
    )
    return [Approval(**row._mapping) for row in rows]


def _values(versions: Versions) -> dict[str, str]:
    return {column: getattr(versions, column) for column in STAMPS}
