"""Alarms: what somebody should look at. Each is told once when it begins and once when it is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["Alarm", "Untold", "begin", "end", "end_all_but", "open_alarms", "told", "untold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm; ``subject`` is what of its kind is meant, such as a dataset's id, or empty. ``ended_at`` None: it is open."""

    pk: int
    kind: str
    subject: str
    detail: str | None
    began_at: datetime
    ended_at: datetime | None
    told_began: datetime | None
    told_ended: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """An end of an alarm that nobody was told yet."""

    alarm: Alarm
    which: Literal["began", "ended"]


def begin(c: Connection, *, kind: str, subject: str = "", detail: str | None = None) -> bool:
    """Open an alarm; False when one of this kind and subject is open, whose detail then becomes this one."""
    made = c.execute(
        text("""
            INSERT INTO alarms (kind, subject, detail) VALUES (:kind, :subject, left(:detail, 4000))
            ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO UPDATE SET detail = excluded.detail
            RETURNING (xmax = 0) AS made
        """),
        {"kind": kind, "subject": subject, "detail": detail},
    ).scalar_one()
    return bool(made)


def end(c: Connection, *, kind: str, subject: str = "") -> bool:
    """Close an alarm; False when none of this kind and subject is open."""
    done = c.execute(
        text(
            "UPDATE alarms SET ended_at = zarrmill_now() WHERE kind = :kind AND subject = :subject AND ended_at IS NULL"
        ),
        {"kind": kind, "subject": subject},
    )
    return done.rowcount == 1


def end_all_but(c: Connection, *, kind: str, subjects: list[str]) -> int:
    """Close the open alarms of a kind whose subject is none of these: how many."""
    return c.execute(
        text("""
            UPDATE alarms SET ended_at = zarrmill_now()
            WHERE kind = :kind AND ended_at IS NULL AND subject <> ALL(CAST(:subjects AS text[]))
        """),
        {"kind": kind, "subjects": subjects},
    ).rowcount


def open_alarms(c: Connection) -> list[Alarm]:
    """Every alarm that is not over, the oldest first."""
    rows = c.execute(text("SELECT * FROM alarms WHERE ended_at IS NULL ORDER BY began_at, pk"))
    return [_alarm(row) for row in rows]


def untold(c: Connection, *, limit: int = 100) -> list[Untold]:
    """What is to be told, in order; the end of an alarm comes only after its beginning was told."""
    rows = c.execute(
        text("""
            SELECT * FROM alarms WHERE told_began IS NULL OR (ended_at IS NOT NULL AND told_ended IS NULL)
            ORDER BY pk LIMIT :limit
        """),
        {"limit": limit},
    )
    return [Untold(alarm=alarm, which="began" if alarm.told_began is None else "ended") for alarm in map(_alarm, rows)]


def told(c: Connection, *, pk: int, which: Literal["began", "ended"]) -> bool:
    """Note that an end of an alarm was told; False when it was noted before."""
    done = c.execute(
        text(f"UPDATE alarms SET told_{which} = zarrmill_now() WHERE pk = :pk AND told_{which} IS NULL"), {"pk": pk}
    )
    return done.rowcount == 1


def _alarm(row: object) -> Alarm:
    return Alarm(**{name: getattr(row, name) for name in Alarm.__slots__})
