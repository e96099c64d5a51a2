"""What an operator sees first: how the archive of a target stands, how fast it moves, and its datasets, worst covered first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from db.listing import LISTED, LISTED_PRIVATE_TOO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = [
    "RANKS",
    "STANDINGS",
    "ArchiveStanding",
    "Pace",
    "Ranked",
    "RankedPage",
    "archive_standing",
    "pace",
    "ranked",
]

_NAMES = ("discovered", "served", "failed", "pending", "converting", "due", "due_bytes", "store_bytes")
_COUNTED = ", ".join(f"'{name}'" for name in _NAMES)
_COLUMNS = ", ".join(f"sum(amount) FILTER (WHERE name = '{name}')::bigint AS {name}" for name in _NAMES)
_STANDING: Final = f"""
    WITH live AS MATERIALIZED (
        SELECT dataset_pk, {_COLUMNS}
        FROM (SELECT dataset_pk, name, amount FROM tallies WHERE name IN ({_COUNTED})
              UNION ALL SELECT dataset_pk, name, amount FROM tally_changes WHERE name IN ({_COUNTED})) counted
        GROUP BY dataset_pk
    ), standing AS MATERIALIZED (
        SELECT l.dataset_id, l.name, l.zarr_status, l.converting OR COALESCE(t.converting, 0) > 0 OR l.zarr_status = 'pending' AS processing,
               l.verify_status, l.verified_at, l.converted_at, l.failed_at, l.error, l.is_reported, l.modalities,
               CASE WHEN t.dataset_pk IS NULL THEN l.discovered_count ELSE COALESCE(t.discovered, 0) END AS discovered,
               CASE WHEN t.dataset_pk IS NULL THEN l.store_count ELSE COALESCE(t.served, 0) END AS served,
               CASE WHEN t.dataset_pk IS NULL THEN l.failure_count ELSE COALESCE(t.failed, 0) END AS failed,
               CASE WHEN t.dataset_pk IS NULL THEN l.pending_count ELSE COALESCE(t.pending, 0) END AS pending,
               COALESCE(t.converting, 0) AS converting_now, t.due, t.due_bytes, t.store_bytes
        FROM (LISTED) l LEFT JOIN live t ON t.dataset_pk = l.dataset_pk
    )
"""
"""Each dataset with its counts of this moment, or, where only others reported of it, those that they told. Null is not known."""

_COMPLETE = "zarr_status = 'ready' AND served = discovered AND discovered > 0"
STANDINGS: Final[Mapping[str, str]] = {
    "complete": _COMPLETE,
    "partial": f"zarr_status = 'ready' AND ({_COMPLETE}) IS NOT TRUE",
    "failed": "zarr_status = 'failed'",
    "processing": "processing",
    "never": "zarr_status IS NULL",
    "verified": "verify_status = 'verified'",
    "unlike": "verify_status = 'failed'",
}
"""SQL over a dataset by the word for how it stands. Complete, partial, failed and never exclude each other."""

_SHARE = "served::float8 / NULLIF(discovered, 0)"
RANKS: Final[Mapping[str, str]] = {
    "worst": f"{_SHARE} NULLS LAST, discovered - served DESC NULLS LAST, dataset_id",
    "missing": "discovered - served DESC NULLS LAST, dataset_id",
    "failed": "failed DESC NULLS LAST, dataset_id",
    "largest": "discovered DESC NULLS LAST, dataset_id",
    "newest": "converted_at DESC NULLS LAST, dataset_id",
    "oldest": "converted_at NULLS LAST, dataset_id",
    "id": "dataset_id",
}
"""The orders by their words."""


def _standing(private_too: bool) -> str:
    return _STANDING.replace("LISTED", LISTED_PRIVATE_TOO if private_too else LISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStanding:
    """Everything at a target. Numbers of recordings are None while of no dataset any is known.

    Parameters
    ----------
    uncounted
        Datasets of which it is not known how many recordings they have.
    oldest_converted_at
        When the dataset that waited longest was last published.
    """

    datasets: int
    uncounted: int
    discovered: int | None
    served: int | None
    failed: int | None
    pending: int | None
    converting_now: int
    due: int | None
    due_bytes: int | None
    store_bytes: int | None
    complete: int
    partial: int
    failed_datasets: int
    processing: int
    never: int
    verified: int
    unlike: int
    ready: int
    verified_at: datetime | None
    callbacks: int
    callbacks_since: datetime | None
    waiting: int
    running: int
    everything_paused: bool
    last_ended_at: datetime | None


def archive_standing(c: Connection, *, target: str, private_too: bool = False) -> ArchiveStanding:
    """How the archive stands, by one statement."""
    words = {"failed": "failed_datasets"}
    counts = ", ".join(
        f"count(*) FILTER (WHERE {condition}) AS {words.get(word, word)}" for word, condition in STANDINGS.items()
    )
    row = c.execute(
        text(f"""
            {_standing(private_too)}
            SELECT count(*) AS datasets, count(*) FILTER (WHERE discovered IS NULL) AS uncounted, {counts},
                   sum(discovered)::bigint AS discovered, sum(served) FILTER (WHERE discovered IS NOT NULL)::bigint AS served,
                   sum(s.failed)::bigint AS failed, sum(pending)::bigint AS pending, COALESCE(sum(converting_now), 0)::bigint AS converting_now,
                   sum(due)::bigint AS due, sum(due_bytes)::bigint AS due_bytes, sum(store_bytes)::bigint AS store_bytes,
                   count(*) FILTER (WHERE zarr_status = 'ready') AS ready, max(verified_at) AS verified_at,
                   (SELECT count(*) FROM callbacks WHERE delivered_at IS NULL) AS callbacks,
                   (SELECT min(created_at) FROM callbacks WHERE delivered_at IS NULL) AS callbacks_since,
                   (SELECT count(*) FROM requests WHERE state = 'waiting') AS waiting,
                   (SELECT count(*) FROM runs WHERE state = 'running') AS running,
                   EXISTS (SELECT FROM pauses WHERE dataset_pk IS NULL) AS everything_paused,
                   (SELECT max(ended_at) FROM attempts) AS last_ended_at
            FROM standing s
        """),
        {"target": target},
    ).one()
    return ArchiveStanding(**row._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A dataset in the list of the overview; counts are None where they are not known."""

    dataset_id: str
    name: str | None
    zarr_status: str | None
    processing: bool
    verify_status: str | None
    converted_at: datetime | None
    failed_at: datetime | None
    error: str | None
    is_reported: bool
    discovered: int | None
    served: int | None
    failed: int | None
    pending: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPage:
    """A part of that list, and how long it is."""

    datasets: tuple[Ranked, ...]
    total: int


def ranked(
    c: Connection,
    *,
    target: str,
    private_too: bool = False,
    search: str | None = None,
    standing: str | None = None,
    sort: str = "worst",
    limit: int = 50,
    offset: int = 0,
) -> RankedPage:
    """The datasets that fit, in order, by one statement. ``standing`` is a word of ``STANDINGS``, ``sort`` one of ``RANKS``."""
    wanted = [] if standing is None else [f"({STANDINGS[standing]})"]
    values: dict[str, Any] = {"target": target, "limit": limit, "offset": offset}
    if search:
        wanted.append("position(lower(:search) IN lower(concat_ws(' ', dataset_id, name))) > 0")
        values["search"] = search
    columns = ", ".join(Ranked.__slots__)
    rows = c.execute(
        text(f"""
            {_standing(private_too)}, hits AS MATERIALIZED (SELECT * FROM standing WHERE {" AND ".join(wanted) or "true"}),
            page AS (SELECT * FROM hits ORDER BY {RANKS[sort]} LIMIT :limit OFFSET :offset)
            SELECT (SELECT count(*) FROM hits) AS total, {columns} FROM (SELECT 1) one LEFT JOIN page ON true
            ORDER BY {RANKS[sort]}
        """),
        values,
    ).all()
    found = [row._asdict() for row in rows if row.dataset_id is not None]
    datasets = tuple(Ranked(**{name: one[name] for name in Ranked.__slots__}) for one in found)
    return RankedPage(datasets=datasets, total=rows[0].total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What was settled, that is stored or given a verdict, in each part of the last while, the oldest first."""

    part_s: float
    recordings: tuple[int, ...]
    size_bytes: tuple[int, ...]


def pace(c: Connection, *, target: str, private_too: bool = False, parts: int = 12, part_s: float = 300.0) -> Pace:
    """How fast recordings are settled of late, by the newest attempts alone."""
    # the moment as a value and not as a query: of 5 million attempts, Postgres would else expect a third and read them all
    now: datetime = c.execute(text("SELECT zarrmill_now()")).scalar_one()
    rows = c.execute(
        text(f"""
            SELECT floor(extract(epoch FROM CAST(:now AS timestamptz) - a.ended_at) / :part_s)::int AS ago, count(*) AS recordings,
                   sum(r.size_bytes)::bigint AS size_bytes
            FROM attempts a JOIN recordings r ON r.pk = a.recording_pk JOIN datasets d ON d.pk = r.dataset_pk
            WHERE a.ended_at > :since AND a.ended_at <= :now
              AND a.outcome IN ('done', 'failed') AND d.target = :target {"" if private_too else "AND d.visibility = 'public'"}
            GROUP BY 1
        """),
        {"now": now, "since": now - timedelta(seconds=parts * part_s), "part_s": part_s, "target": target},
    )
    found = {row.ago: row for row in rows}
    newest_last = [found.get(ago) for ago in reversed(range(parts))]
    return Pace(
        part_s=part_s,
        recordings=tuple(0 if one is None else one.recordings for one in newest_last),
        size_bytes=tuple(0 if one is None else one.size_bytes for one in newest_last),
    )
