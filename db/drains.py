"""Drains: workers that take nothing new, as every flow sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from db import requests

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["EVERY_WORKER", "Drain", "ask", "current", "seen", "undo"]

EVERY_WORKER: Final = "*"
_KEPT_FOR_A_PROCESS: Final = "1 day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """What takes nothing new.

    Parameters
    ----------
    worker
        ``*``, a host's name, or a worker process as attempts name it (``host/pid/started``).
    since_s
        Seconds since it was asked for.
    """

    worker: str
    grace_s: float
    why: str | None
    asked_at: datetime
    since_s: float

    @property
    def is_overdue(self) -> bool:
        """Whether what still runs there is to be let go."""
        return self.since_s >= self.grace_s

    def covers(self, worker: str) -> bool:
        """Whether the worker process of this name is drained."""
        return self.worker == EVERY_WORKER or f"{worker}/".startswith(f"{self.worker}/")


def ask(c: Connection, *, worker: str, grace_s: float, why: str | None = None) -> None:
    """Let a worker, or ``EVERY_WORKER``, take nothing new. Asked again, only the grace may become shorter.

    Drains of single processes are forgotten after a day: no other process ever has their names.
    """
    c.execute(
        text("""
            INSERT INTO drains (worker, grace_s, why) VALUES (:worker, :grace_s, :why)
            ON CONFLICT (worker) DO UPDATE SET grace_s = LEAST(
                drains.grace_s, extract(epoch FROM zarrmill_now() - drains.asked_at)::float8 + excluded.grace_s)
        """),
        {"worker": worker, "grace_s": grace_s, "why": why},
    )
    c.execute(
        text(
            f"DELETE FROM drains WHERE worker LIKE '%/%' AND asked_at < zarrmill_now() - interval '{_KEPT_FOR_A_PROCESS}'"
        )
    )


def undo(c: Connection, *, worker: str | None = None) -> int:
    """How many drains were ended: that of ``worker``, or all of them. What no machine took may then be started at once."""
    ended = c.execute(
        text("DELETE FROM drains WHERE CAST(:worker AS text) IS NULL OR worker = :worker"), {"worker": worker}
    ).rowcount
    if ended:
        requests.unserved_are_due(c)
    return ended


def current(c: Connection) -> list[Drain]:
    """Every drain, the first asked first."""
    rows = c.execute(
        text("""
            SELECT worker, grace_s, why, asked_at, extract(epoch FROM zarrmill_now() - asked_at)::float8 AS since_s
            FROM drains ORDER BY asked_at, worker
        """)
    )
    return [Drain(**row._mapping) for row in rows]


def seen(c: Connection, *, worker: str) -> bool:
    """Whether a worker of this name, or any on the host of this name, has ever been heard of."""
    found = c.scalar(
        text("""
            SELECT EXISTS (SELECT FROM hosts WHERE name = :worker)
                OR EXISTS (SELECT FROM attempts WHERE starts_with(worker || '/', :worker || '/'))
        """),
        {"worker": worker},
    )
    return bool(found)
