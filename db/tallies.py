"""Counts of each dataset that need no counting: kept by triggers (``m0009_tallies.sql``), folded here, read with what is not folded yet.

Of recordings: ``discovered``, ``served``, ``failed``, ``pending`` (as the published lists have them), ``converting``, ``due`` and
``due_bytes``. Of stores: ``stores``, ``store_bytes``, ``store_seconds``. Of attempts that ended, which only grow: ``ended:OUTCOME``,
``code:CODE``, ``reason:REASON``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["LIVE", "LIVE_DAYS", "WATCHED", "fold", "mark", "marked_at"]

WATCHED: Final = "watch"
"""The mark of the watch over the service (``flows/watch.py``)."""

LIVE: Final = """
    SELECT dataset_pk, name, sum(amount)::bigint AS amount FROM (
        SELECT dataset_pk, name, amount FROM tallies UNION ALL SELECT dataset_pk, name, amount FROM tally_changes
    ) counted GROUP BY dataset_pk, name
"""
"""SQL: how many of what each dataset has now."""

LIVE_DAYS: Final = """
    SELECT dataset_pk, name, day, amount FROM tally_days
    UNION ALL SELECT dataset_pk, name, (changed_at AT TIME ZONE 'UTC')::date, amount FROM tally_changes
"""
"""SQL: what each day changed; a day may have several rows of a name."""

_FOLD = text("""
    WITH taken AS (
        -- in order and past rows that another one folds, so that two never wait for each other
        DELETE FROM tally_changes WHERE pk IN (SELECT pk FROM tally_changes ORDER BY pk LIMIT :limit FOR UPDATE SKIP LOCKED)
        RETURNING dataset_pk, name, amount, (changed_at AT TIME ZONE 'UTC')::date AS day
    ), known AS (
        SELECT t.* FROM taken t JOIN datasets d ON d.pk = t.dataset_pk
    ), days AS (
        INSERT INTO tally_days AS old (dataset_pk, name, day, amount)
        SELECT dataset_pk, name, day, sum(amount) FROM known GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (dataset_pk, name, day) DO UPDATE SET amount = old.amount + excluded.amount
    ), now AS (
        INSERT INTO tallies AS old (dataset_pk, name, amount)
        SELECT dataset_pk, name, sum(amount) FROM known GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (dataset_pk, name) DO UPDATE SET amount = old.amount + excluded.amount
    )
    SELECT count(*) FROM taken
""")
_AT_ONCE = 100_000


def fold(c: Connection) -> int:
    """Fold what statements left into the counts; how many rows that were. One folder at a time: who comes second leaves it to the first."""
    if not c.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": _LOCK}):
        return 0
    return int(c.execute(_FOLD, {"limit": _AT_ONCE}).scalar_one())


_LOCK = 0x7A61_7272_7461_6C6C
"""Advisory lock, ``zarrtall`` in ASCII."""


def mark(c: Connection, name: str) -> None:
    """Note that something was done now."""
    c.execute(
        text("INSERT INTO marks (name) VALUES (:name) ON CONFLICT (name) DO UPDATE SET marked_at = zarrmill_now()"),
        {"name": name},
    )


def marked_at(c: Connection, name: str) -> datetime | None:
    """When something was last done; None when it never was."""
    found: datetime | None = c.scalar(text("SELECT marked_at FROM marks WHERE name = :name"), {"name": name})
    return found
