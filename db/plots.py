"""What plots are drawn from: a bounded sample of attempts, and what each day changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from db.tallies import LIVE_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime
    from uuid import UUID

    from sqlalchemy import Connection, Engine

__all__ = ["DayCount", "Sampled", "counts_by_day", "measured_parts", "newest_measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One attempt that ended in a store and was measured. ``seconds`` is from its beginning to its end."""

    dataset_id: str
    path: str
    format: str
    route: str
    size_bytes: int
    projected_bytes: int
    measured_bytes: int
    seconds: float
    ended_at: datetime
    id: UUID


_COLUMNS: Final = """
    d.dataset_id, r.path, a.format, a.route, r.size_bytes, a.projected_bytes, a.measured_bytes,
    CAST(extract(epoch FROM a.ended_at - a.started_at) AS float8) AS seconds, a.ended_at, a.id"""
_SEEN = "d.target = :target AND (:private OR d.visibility = 'public' AND d.active)"

_NEWEST = text(f"""
    WITH RECURSIVE kinds AS (
        -- one step of the index for each format and route, instead of every attempt
        (SELECT format, route FROM attempts WHERE measured_bytes IS NOT NULL AND floor_bytes IS NOT NULL ORDER BY format, route LIMIT 1)
        UNION ALL
        SELECT following.* FROM kinds k, LATERAL (
            SELECT format, route FROM attempts WHERE measured_bytes IS NOT NULL AND floor_bytes IS NOT NULL
              AND (format, route) > (k.format, k.route) ORDER BY format, route LIMIT 1
        ) following
    )
    SELECT newest.* FROM kinds k, LATERAL (
        SELECT {_COLUMNS} FROM attempts a JOIN recordings r ON r.pk = a.recording_pk JOIN datasets d ON d.pk = r.dataset_pk
        WHERE a.format = k.format AND a.route = k.route AND a.measured_bytes IS NOT NULL AND a.floor_bytes IS NOT NULL
          AND a.outcome = 'done' AND {_SEEN}
        ORDER BY a.ended_at DESC LIMIT :each
    ) newest
    ORDER BY format, route, ended_at DESC, id
""")


def newest_measured(c: Connection, *, target: str, each: int, private_too: bool = False) -> tuple[Sampled, ...]:
    """The newest ``each`` measured conversions of every format and route, by one statement that reads no others."""
    rows = c.execute(_NEWEST, {"target": target, "private": private_too, "each": each})
    return tuple(Sampled(**row._mapping) for row in rows)


_PART = text(f"""
    SELECT {_COLUMNS} FROM attempts a JOIN recordings r ON r.pk = a.recording_pk JOIN datasets d ON d.pk = r.dataset_pk
    WHERE a.ended_at IS NOT NULL AND (CAST(:ended_at AS timestamptz) IS NULL OR (a.ended_at, a.id) < (:ended_at, CAST(:id AS uuid)))
      AND a.measured_bytes IS NOT NULL AND a.outcome = 'done' AND {_SEEN}
    ORDER BY a.ended_at DESC, a.id DESC LIMIT :part
""")


def measured_parts(
    engine: Engine, *, target: str, private_too: bool = False, part: int = 5_000
) -> Iterator[tuple[Sampled, ...]]:
    """Every measured conversion, the newest first, a part at a time; between two parts no connection is held."""
    values: dict[str, Any] = {"target": target, "private": private_too, "part": part, "ended_at": None, "id": None}
    while True:
        with engine.connect() as c:
            found = tuple(Sampled(**row._mapping) for row in c.execute(_PART, values))
        if found:
            yield found
        if len(found) < part:
            return
        values |= {"ended_at": found[-1].ended_at, "id": found[-1].id}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """By how much a day changed the number of something."""

    day: date
    name: str
    amount: int


def counts_by_day(
    c: Connection, *, target: str, names: tuple[str, ...] = (), prefix: str | None = None, private_too: bool = False
) -> tuple[DayCount, ...]:
    """What each day changed of these counts, or of those whose name begins with ``prefix``, over every dataset; by day and name."""
    wanted = (
        "name = ANY(:names)"
        if prefix is None
        else "starts_with(name, :prefix) AND name >= :prefix AND name < :prefix || '~'"
    )
    rows = c.execute(
        text(f"""
            SELECT l.day, l.name, sum(l.amount)::bigint AS amount
            FROM (SELECT * FROM ({LIVE_DAYS}) days WHERE {wanted}) l JOIN datasets d ON d.pk = l.dataset_pk AND {_SEEN}
            GROUP BY 1, 2 HAVING sum(l.amount) <> 0 ORDER BY 1, 2
        """),
        {"target": target, "private": private_too, "names": list(names), "prefix": prefix or ""},
    )
    return tuple(DayCount(day=row.day, name=row.name, amount=row.amount) for row in rows)
