"""Which runs have left their report, which still owe it, and which reports are old enough to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from sqlalchemy import text

from db.runs import Run, run_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["RunReport", "forget", "note", "of_run", "old", "owed"]

_MOST_TRIES: Final = 5
_OWED_DAYS: Final = 1
"""A run that ended longer ago leaves none by itself: it was made before there were reports, or nobody could write one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A report that stands, with ``size_bytes``, or ``trouble`` that kept it from being written at the last of ``tries``."""

    run_id: UUID
    made_at: datetime
    tries: int
    size_bytes: int | None
    trouble: str | None


def of_run(c: Connection, *, run_id: UUID) -> RunReport | None:
    """What is known of a run's report; None while none was tried."""
    row = c.execute(text("SELECT * FROM run_reports WHERE run_id = :run"), {"run": run_id}).one_or_none()
    return None if row is None else RunReport(**row._mapping)


def note(c: Connection, *, run_id: UUID, size_bytes: int | None = None, trouble: str | None = None) -> None:
    """Note that the report was written, or with ``trouble`` that it was not. One that stands is not made undone by trouble."""
    c.execute(
        text("""
            INSERT INTO run_reports AS standing (run_id, size_bytes, trouble)
            VALUES (:run, CAST(:size AS bigint), left(:trouble, 4000))
            ON CONFLICT (run_id) DO UPDATE
            SET size_bytes = excluded.size_bytes, trouble = excluded.trouble, made_at = zarrmill_now(), tries = standing.tries + 1
            WHERE excluded.trouble IS NULL OR standing.size_bytes IS NULL
        """),
        {"run": run_id, "size": size_bytes, "trouble": trouble},
    )


def owed(c: Connection, *, dataset: Dataset | None = None, limit: int = 20) -> list[Run]:
    """Runs that ended within a day and have no report yet, the oldest first; of one dataset when named."""
    rows = c.execute(
        text("""
            SELECT u.* FROM runs u LEFT JOIN run_reports q ON q.run_id = u.id
            WHERE u.state <> 'running' AND u.ended_at > zarrmill_now() - make_interval(days => :days)
              AND (CAST(:dataset AS bigint) IS NULL OR u.dataset_pk = :dataset)
              AND (q.run_id IS NULL OR q.size_bytes IS NULL AND q.tries < :tries)
            ORDER BY u.ended_at LIMIT :limit
        """),
        {
            "days": _OWED_DAYS,
            "dataset": None if dataset is None else dataset.pk,
            "tries": _MOST_TRIES,
            "limit": limit,
        },
    )
    return [run_of(row) for row in rows]


def old(c: Connection, *, dataset: Dataset, keep_days: int, limit: int = 1000) -> list[UUID]:
    """Runs of the dataset that ended more than ``keep_days`` days ago and whose reports still stand."""
    rows = c.scalars(
        text("""
            SELECT q.run_id FROM run_reports q JOIN runs u ON u.id = q.run_id
            WHERE u.dataset_pk = :dataset AND q.size_bytes IS NOT NULL
              AND u.ended_at < zarrmill_now() - make_interval(days => :days)
            ORDER BY u.ended_at LIMIT :limit
        """),
        {"dataset": dataset.pk, "days": keep_days, "limit": limit},
    )
    return list(rows)


def forget(c: Connection, *, run_id: UUID) -> None:
    """Note that the run's report is gone. Gone before is fine."""
    c.execute(text("DELETE FROM run_reports WHERE run_id = :run"), {"run": run_id})
