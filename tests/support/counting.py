"""The counts that triggers keep, and the same by counting."""

from __future__ import annotations

from sqlalchemy import Connection, text

from db.coverage import FAILURE, PENDING, SERVED
from db.tallies import LIVE

__all__ = ["counted", "kept"]


def kept(c: Connection, dataset: int) -> dict[str, int]:
    """What is kept of a dataset; nothing for what is 0."""
    rows = c.execute(text(f"SELECT name, amount FROM ({LIVE}) live WHERE dataset_pk = :dataset"), {"dataset": dataset})
    return {row.name: row.amount for row in rows if row.amount}


_COUNTED = f"""
    SELECT 'discovered' AS name, count(*) FILTER (WHERE discovered) AS amount FROM recordings WHERE dataset_pk = :dataset
    UNION ALL SELECT 'served', count(*) FILTER (WHERE {SERVED}) FROM recordings r WHERE dataset_pk = :dataset
    UNION ALL SELECT 'failed', count(*) FILTER (WHERE {FAILURE}) FROM recordings r WHERE dataset_pk = :dataset
    UNION ALL SELECT 'pending', count(*) FILTER (WHERE {PENDING}) FROM recordings r WHERE dataset_pk = :dataset
    UNION ALL SELECT 'converting', count(*) FILTER (WHERE due = 'converting') FROM recordings WHERE dataset_pk = :dataset
    UNION ALL SELECT 'due', count(*) FROM recordings WHERE dataset_pk = :dataset AND due IN ('pending', 'converting')
    UNION ALL SELECT 'due_bytes', sum(size_bytes)::bigint FROM recordings WHERE dataset_pk = :dataset AND due IN ('pending', 'converting')
    UNION ALL SELECT 'stores', count(*) FROM stores WHERE dataset_pk = :dataset
    UNION ALL SELECT 'store_bytes', sum(size_bytes)::bigint FROM stores WHERE dataset_pk = :dataset
    UNION ALL SELECT 'store_seconds', sum(round(duration_s))::bigint FROM stores WHERE dataset_pk = :dataset
    UNION ALL SELECT 'ended:' || outcome, count(*) FROM attempts a JOIN recordings r ON r.pk = a.recording_pk
              WHERE dataset_pk = :dataset AND outcome <> 'converting' GROUP BY 1
    UNION ALL SELECT 'code:' || a.code, count(*) FROM attempts a JOIN recordings r ON r.pk = a.recording_pk
              WHERE dataset_pk = :dataset AND a.code IS NOT NULL GROUP BY 1
    UNION ALL SELECT 'reason:' || a.reason, count(*) FROM attempts a JOIN recordings r ON r.pk = a.recording_pk
              WHERE dataset_pk = :dataset AND a.reason IS NOT NULL GROUP BY 1
"""


def counted(c: Connection, dataset: int) -> dict[str, int]:
    """The same, counted."""
    rows = c.execute(text(_COUNTED), {"dataset": dataset})
    return {row.name: row.amount for row in rows if row.amount}
