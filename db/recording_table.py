"""A dataset's recordings as a table: filtered, searched, sorted, a part at a time by the key of its last row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from db.coverage import SERVED
from db.public_recordings import STATES, PublicRecording, recording_columns
from db.store_verdicts import STANDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["SORTS", "TABLE_STATES", "TableKey", "TablePage", "TableRow", "Wanted", "recording_rows", "table_page"]

_JUDGED_AS = f"""{SERVED} AND {{}} (
    SELECT FROM store_verdicts o JOIN stores s ON s.recording_pk = o.recording_pk
    WHERE o.recording_pk = r.pk AND o.dataset_pk = :dataset AND s.dataset_pk = :dataset AND {STANDS}{{}})"""

TABLE_STATES: Final[Mapping[str, str]] = {
    **{name: f"r.discovered AND {condition}" for name, condition in STATES.items()},
    "again": f"{SERVED} AND r.due IN ('pending', 'converting')",
    "refused": f"{SERVED} AND r.due = 'failed'",
    "verified": _JUDGED_AS.format("EXISTS", " AND o.status = 'verified'"),
    "mismatched": _JUDGED_AS.format("EXISTS", " AND o.status = 'failed'"),
    "unverified": _JUDGED_AS.format("NOT EXISTS", ""),
    "gone": "NOT r.discovered",
}
"""SQL over ``recordings r`` by the name of a state: those of ``public_recordings.STATES``; served and due ``again``; served, and
``refused`` since; by what a comparison found of the store as it is; ``gone`` from the source."""

SORTS: Final[Mapping[str, tuple[str, str]]] = {
    "path": ("r.path", "text"),
    "size": ("r.size_bytes", "bigint"),
    "attempts": ("r.attempts", "int"),
    "tried": ("COALESCE(r.last_attempt_at, '-infinity')", "timestamptz"),
    "next": ("COALESCE(r.next_attempt_at, 'infinity')", "timestamptz"),
}
"""By name, what rows are sorted by, and its type in SQL. Rows that are alike in it are sorted by path."""

_STATE = f"CASE WHEN NOT r.discovered THEN 'gone' WHEN {SERVED} THEN 'served' ELSE r.due END"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    """Where a part of the table begins or ends: what the row is sorted by, as text, and its path."""

    value: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which rows in which order.

    Parameters
    ----------
    word
        A failure code or a pending reason.
    search
        Part of the path, in any case.
    after, before
        The part that follows this row, or the one that ends before it; of both, ``after`` counts.
    """

    state: str | None = None
    word: str | None = None
    search: str | None = None
    sort: str = "path"
    descending: bool = False
    after: TableKey | None = None
    before: TableKey | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow(PublicRecording):
    """One recording, whose ``state`` may also be gone; ``judged`` is about the store as it is now. Texts are cut short."""

    judged: str | None
    key: TableKey


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """A part of the table: its rows, how many rows fit in all, and how many of them stand before the first shown."""

    rows: tuple[TableRow, ...]
    total: int
    skipped: int

    @property
    def has_more(self) -> bool:
        """Whether rows follow."""
        return self.skipped + len(self.rows) < self.total


_COLUMNS = recording_columns(state=_STATE, shorten="left({}, 300)")
_JUDGED = f"""
    (SELECT o.status FROM store_verdicts o JOIN stores s ON s.recording_pk = o.recording_pk
     WHERE o.recording_pk = r.pk AND {STANDS}) AS judged
"""


def _conditions(wanted: Wanted) -> str:
    found = ["r.dataset_pk = :dataset"]
    if wanted.state is not None:
        found.append(f"({TABLE_STATES[wanted.state]})")
    if wanted.word is not None:
        found.append("(r.code = :word OR r.reason = :word)")
    if wanted.search is not None:
        found.append("position(lower(:search) IN lower(r.path)) > 0")
    return " AND ".join(found)


def _values(dataset: Dataset, wanted: Wanted) -> dict[str, Any]:
    values: dict[str, Any] = {"dataset": dataset.pk, "limit": wanted.limit}
    values |= {name: value for name in ("word", "search") if (value := getattr(wanted, name)) is not None}
    key = wanted.after or wanted.before
    return values if key is None else {**values, "value": key.value, "path": key.path}


def table_page(c: Connection, *, dataset: Dataset, wanted: Wanted) -> TablePage:
    """A part of the table, by one statement that goes through the dataset's recordings once."""
    column, kind = SORTS[wanted.sort]
    backwards = wanted.after is None and wanted.before is not None
    order = "DESC" if wanted.descending is not backwards else "ASC"
    shown = "DESC" if wanted.descending else "ASC"
    key = f"(CAST(:value AS {kind}), :path)"
    beyond = (
        "true" if wanted.after is wanted.before is None else f"(h.value, h.path) {'>' if order == 'ASC' else '<'} {key}"
    )
    ahead = "<" if shown == "ASC" else ">"
    statement = text(f"""
        WITH hits AS MATERIALIZED (
            SELECT r.pk, r.path, {column} AS value FROM recordings r WHERE {_conditions(wanted)}
        ), part AS MATERIALIZED (
            SELECT * FROM hits h WHERE {beyond} ORDER BY h.value {order}, h.path {order} LIMIT :limit
        ), first AS (SELECT value, path FROM part ORDER BY value {shown}, path {shown} LIMIT 1)
        SELECT n.total, n.skipped, CAST(p.value AS text) AS key_value, p.path AS key_path, {_COLUMNS}, {_JUDGED}
        FROM (
            SELECT (SELECT count(*) FROM hits) AS total,
                   (SELECT count(*) FROM hits h, first f WHERE (h.value, h.path) {ahead} (f.value, f.path)) AS skipped
        ) n LEFT JOIN part p ON true LEFT JOIN recordings r ON r.pk = p.pk
        ORDER BY p.value {shown}, p.path {shown}
    """)
    rows = c.execute(statement, _values(dataset, wanted)).all()
    return TablePage(
        rows=tuple(_row(row) for row in rows if row.pk is not None), total=rows[0].total, skipped=rows[0].skipped
    )


def _row(row: Any) -> TableRow:
    values = {one.name: getattr(row, one.name) for one in fields(TableRow) if one.name != "key"}
    return TableRow(**values, key=TableKey(value=row.key_value, path=row.key_path))


def recording_rows(c: Connection, *, dataset: Dataset, wanted: Wanted, after: str, limit: int) -> Iterator[TableRow]:
    """Up to ``limit`` rows that fit and whose path comes after ``after``, by path: one of many statements over a whole table."""
    statement = text(f"""
        SELECT r.path AS key_value, r.path AS key_path, {_COLUMNS}, {_JUDGED}
        FROM recordings r WHERE {_conditions(wanted)} AND r.path > :after ORDER BY r.path LIMIT :limit
    """)
    values = {**_values(dataset, wanted), "after": after, "limit": limit}
    yield from (_row(row) for row in c.execute(statement, values))
