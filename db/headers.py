"""Headers of recordings that lie in a service, kept by what they are the headers of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection

__all__ = ["known_headers", "note_headers"]

_LONGEST = 15_000
"""Characters of what is kept: a header of thousands of channels of many rates is rare, and asked for again."""


def known_headers(c: Connection, *, keys: Collection[str]) -> dict[str, dict[str, Any]]:
    """What was noted, by key; keys of which nothing was are left out. One query."""
    rows = c.execute(
        text("SELECT key, header FROM known_headers WHERE key = ANY (CAST(:keys AS text[]))"), {"keys": list(keys)}
    )
    return {row.key: row.header for row in rows}


def note_headers(c: Connection, *, headers: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep them, by key, until history that old is removed. One statement; what is known stays."""
    kept = {key: packed for key, header in headers.items() if len(packed := json.dumps(dict(header))) <= _LONGEST}
    if kept:
        c.execute(
            text("""
                INSERT INTO known_headers (key, header)
                SELECT key, CAST(header AS jsonb)
                FROM unnest(CAST(:keys AS text[]), CAST(:headers AS text[])) AS given (key, header) ORDER BY key
                ON CONFLICT (key) DO NOTHING
            """),
            {"keys": list(kept), "headers": list(kept.values())},
        )
