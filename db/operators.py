"""What operators did, and what they asked would be done: kept for ``zarrmill history``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["Action", "find_action", "last_actions", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action. ``subject`` is a dataset's id or None; ``executed`` is False for one that was only shown."""

    pk: int
    acted_at: datetime
    acted_by: str
    why: str | None
    verb: str
    subject: str | None
    parameters: Mapping[str, Any]
    executed: bool
    counts: Mapping[str, Any]


def note(
    c: Connection,
    *,
    acted_by: str,
    verb: str,
    executed: bool,
    subject: str | None = None,
    why: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    counts: Mapping[str, Any] | None = None,
) -> int:
    """Note an action in the transaction that carries it out; its number."""
    pk = c.scalar(
        text("""
            INSERT INTO operator_actions (acted_by, why, verb, subject, parameters, executed, counts)
            VALUES (left(:by, 200), left(:why, 1000), :verb, :subject, CAST(:parameters AS jsonb), :executed, CAST(:counts AS jsonb))
            RETURNING pk
        """),
        {
            "by": acted_by,
            "why": why,
            "verb": verb,
            "subject": subject,
            "parameters": json.dumps(dict(parameters or {})),
            "executed": executed,
            "counts": json.dumps(dict(counts or {})),
        },
    )
    return int(pk or 0)


def last_actions(c: Connection, *, subject: str | None = None, limit: int = 50) -> list[Action]:
    """The newest actions, or those on one dataset, newest first."""
    rows = c.execute(
        text(f"""
            SELECT * FROM operator_actions{" WHERE subject = :subject" if subject is not None else ""}
            ORDER BY pk DESC LIMIT :limit
        """),
        {"subject": subject, "limit": limit},
    )
    return [Action(**{name: getattr(row, name) for name in Action.__slots__}) for row in rows]


def find_action(c: Connection, *, pk: int) -> Action | None:
    """The action of this number; None for one that never was."""
    row = c.execute(text("SELECT * FROM operator_actions WHERE pk = :pk"), {"pk": pk}).one_or_none()
    return None if row is None else Action(**{name: getattr(row, name) for name in Action.__slots__})
