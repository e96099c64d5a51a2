"""Pauses: datasets, or everything, that start no work by themselves until they are resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["Paused", "current", "pause", "resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What starts nothing by itself; ``dataset_id`` and ``target`` None for everything."""

    dataset_id: str | None
    target: str | None
    paused_at: datetime
    paused_by: str
    why: str | None


def pause(c: Connection, *, dataset: Dataset | None, paused_by: str, why: str | None = None) -> bool:
    """Let a dataset, or with None everything, start nothing by itself; False when it was paused already."""
    done = c.execute(
        text("""
            INSERT INTO pauses (dataset_pk, paused_by, why) VALUES (:dataset, left(:by, 200), left(:why, 1000))
            ON CONFLICT (dataset_pk) DO NOTHING
        """),
        {"dataset": None if dataset is None else dataset.pk, "by": paused_by, "why": why},
    )
    return done.rowcount == 1


def resume(c: Connection, *, dataset: Dataset | None) -> bool:
    """End that pause; False when there was none. A dataset stays still while everything is paused."""
    done = c.execute(
        text("DELETE FROM pauses WHERE dataset_pk IS NOT DISTINCT FROM CAST(:dataset AS bigint)"),
        {"dataset": None if dataset is None else dataset.pk},
    )
    return done.rowcount == 1


def current(c: Connection) -> list[Paused]:
    """Every pause, that of everything first."""
    rows = c.execute(
        text("""
            SELECT d.dataset_id, d.target, p.paused_at, p.paused_by, p.why
            FROM pauses p LEFT JOIN datasets d ON d.pk = p.dataset_pk ORDER BY p.dataset_pk IS NOT NULL, d.dataset_id, d.target
        """)
    )
    return [Paused(**row._mapping) for row in rows]
