"""Callbacks that wait to be delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import timedelta

    from sqlalchemy import Connection

__all__ = ["WaitingCallbacks", "waiting_callbacks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCallbacks:
    """How many wait, and why the oldest of them was not delivered at its last try."""

    count: int
    last_error: str | None


def waiting_callbacks(c: Connection, *, older_than: timedelta) -> WaitingCallbacks:
    """Those that were written longer ago than this and are not delivered."""
    row = c.execute(
        text("""
            SELECT count(DISTINCT k.pk) AS waiting,
                   (array_agg(d.last_error ORDER BY k.created_at, k.pk) FILTER (WHERE d.last_error IS NOT NULL))[1] AS last_error
            FROM callbacks k LEFT JOIN callback_deliveries d ON d.callback_pk = k.pk AND d.delivered_at IS NULL
            WHERE k.delivered_at IS NULL AND k.created_at < zarrmill_now() - CAST(:older_than AS interval)
        """),
        {"older_than": older_than},
    ).one()
    return WaitingCallbacks(count=row.waiting, last_error=row.last_error)
