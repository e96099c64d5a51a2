"""Served stores: what a finished conversion leaves, intents of stores being put, and stores that nothing names any more."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from contract.errors import LostLease
from db.coverage import SERVED
from db.edges import HELD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = [
    "OpenIntent",
    "StoreRow",
    "believed",
    "close_intent",
    "digests",
    "drop_twins",
    "entries",
    "etags",
    "events",
    "open_intent",
    "open_intents",
    "pack_digests",
    "pack_etags",
    "removed",
    "standing",
    "stores_to_remove",
    "stream",
    "unpack_digests",
    "unpack_etags",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRow:
    """A store as ``done`` keeps it.

    Parameters
    ----------
    entry
        The index entry's exact bytes.
    source, options, engine, biosigio
        The four columns that make it current.
    digests
        ``pack_digests`` of every object.
    etags
        ``pack_etags`` of every object; None at a target that has no etags of its own.
    events
        Its rows of events.parquet, one Arrow IPC stream; None without an events.tsv.
    source_key
        git-annex key of the primary member; None where there is no single one.
    size_bytes
        Bytes of the primary source member, for the manifest beside ``source_key``.
    duration_s
        Length of its longest channel group.
    """

    entry: bytes
    source: str
    options: str
    engine: str
    biosigio: str
    digests: bytes
    etags: bytes | None
    events: bytes | None
    events_row_count: int
    source_key: str | None
    size_bytes: int
    duration_s: float
    updated_utc: datetime | str

    def values(self) -> dict[str, Any]:
        """Its columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIntent:
    """A store that was being put when its attempt was last heard of. ``held`` while that attempt's lease lives."""

    attempt_id: UUID
    recording_id: int
    zarr: str
    opened_at: datetime
    held: bool

    @property
    def token(self) -> str:
        """The token that was given to ``Target.put_store``."""
        return str(self.attempt_id)


def pack_digests(objects: Mapping[str, tuple[int, str]]) -> bytes:
    """Size and SHA-256 (hex) of every object by name, packed; equal mappings give equal bytes."""
    return zlib.compress(
        json.dumps({name: list(objects[name]) for name in sorted(objects)}, separators=(",", ":")).encode(), 6
    )


def unpack_digests(packed: bytes) -> dict[str, tuple[int, str]]:
    """What ``pack_digests`` was given."""
    return {name: (size, sha256) for name, (size, sha256) in json.loads(zlib.decompress(packed)).items()}


def pack_etags(etags: Mapping[str, str]) -> bytes | None:
    """Etag of every object by name, packed; None of none."""
    if not etags:
        return None
    return zlib.compress(json.dumps(dict(sorted(etags.items())), separators=(",", ":")).encode(), 6)


def unpack_etags(packed: bytes | None) -> dict[str, str] | None:
    """What ``pack_etags`` was given; None of None."""
    return None if packed is None else dict(json.loads(zlib.decompress(packed)))


def stream(c: Connection, sql: str, values: dict[str, Any], *, rows: int = 500) -> Iterator[Any]:
    """Rows of a query by a server-side cursor, ``rows`` at a time."""
    # options of the statement: set on the connection they would stay there
    result = c.execute(text(sql), values, execution_options={"stream_results": True, "yield_per": rows})
    try:
        yield from result
    finally:
        result.close()


def entries(c: Connection, *, dataset: Dataset, published: bool = True) -> Iterator[tuple[str, bytes]]:
    """(store path, index entry) ordered by store path, by a server-side cursor.

    With ``published=False`` also of stores that the index no longer names but that still stand at the target.
    """
    which = SERVED if published else "true"
    return stream(
        c,
        f"""SELECT s.zarr, s.entry FROM stores s JOIN recordings r ON r.pk = s.recording_pk
            WHERE s.dataset_pk = :dataset AND {which} ORDER BY s.zarr""",
        {"dataset": dataset.pk},
    )


def events(c: Connection, *, dataset: Dataset) -> Iterator[tuple[str, bytes]]:
    """(store path, Arrow IPC stream) of the published stores that have an events.tsv, ordered by store path."""
    return stream(
        c,
        f"""SELECT s.zarr, s.events FROM stores s JOIN recordings r ON r.pk = s.recording_pk
            WHERE s.dataset_pk = :dataset AND {SERVED} AND s.events IS NOT NULL ORDER BY s.zarr""",
        {"dataset": dataset.pk},
        rows=100,
    )


def standing(c: Connection, *, dataset: Dataset) -> set[str]:
    """Paths of all stores that stand at the target, or are being put there."""
    rows = c.scalars(
        text(
            "SELECT zarr FROM stores WHERE dataset_pk = :dataset UNION SELECT zarr FROM intents WHERE dataset_pk = :dataset"
        ),
        {"dataset": dataset.pk},
    )
    return set(rows)


def digests(c: Connection, *, dataset: Dataset, zarr: str) -> dict[str, tuple[int, str]] | None:
    """Size and SHA-256 of every object of a store that stands at the target; None when there is none."""
    packed = c.scalar(
        text("SELECT digests FROM stores WHERE dataset_pk = :dataset AND zarr = :zarr"),
        {"dataset": dataset.pk, "zarr": zarr},
    )
    return None if packed is None else unpack_digests(packed)


def etags(c: Connection, *, dataset: Dataset, zarr: str) -> dict[str, str] | None:
    """Etag of every object of a store that stands at the target; None when there is none, or they are not known."""
    packed = c.scalar(
        text("SELECT etags FROM stores WHERE dataset_pk = :dataset AND zarr = :zarr"),
        {"dataset": dataset.pk, "zarr": zarr},
    )
    return unpack_etags(packed)


def believed(c: Connection, *, attempt_id: UUID, run_number: int) -> dict[str, tuple[str, str]]:
    """SHA-256 and etag of each object at the address that this attempt is to replace, as last noted; {} when unknown.

    Whose recording the store was does not matter here.
    """
    row = c.execute(
        text(f"""
            SELECT s.digests, s.etags FROM recordings r JOIN stores s ON s.dataset_pk = r.dataset_pk AND s.zarr = r.zarr
            WHERE {HELD} AND s.etags IS NOT NULL
        """),
        {"attempt": attempt_id, "number": run_number},
    ).one_or_none()
    if row is None:
        return {}
    known = unpack_etags(row.etags) or {}
    return {name: (sha256, known[name]) for name, (_, sha256) in unpack_digests(row.digests).items() if name in known}


_DROP_TWINS = text(f"""
    WITH held AS (SELECT r.pk, r.dataset_pk, r.zarr FROM recordings r WHERE {HELD} FOR UPDATE),
    gone AS (
        DELETE FROM stores s USING held h
        WHERE s.dataset_pk = h.dataset_pk AND s.zarr = h.zarr AND s.recording_pk <> h.pk
        RETURNING s.recording_pk
    )
    UPDATE recordings r SET served_source = NULL FROM gone WHERE r.pk = gone.recording_pk
""")


def drop_twins(c: Connection, *, attempt_id: UUID, run_number: int) -> None:
    """Forget stores of other recordings at the address that this attempt replaces: what stands there is theirs no more."""
    c.execute(_DROP_TWINS, {"attempt": attempt_id, "number": run_number})


def open_intent(c: Connection, *, attempt_id: UUID, run_number: int) -> list[OpenIntent]:
    """Say that this attempt is about to put its store; commit before the first write. ``done`` closes it.

    Returns intents of other attempts at the same address, left by a crash: give each to ``Target.repair_store`` first.
    A store that another recording had at this address is forgotten here, since it is about to be replaced.

    Raises
    ------
    LostLease
        The attempt was superseded.
    """
    drop_twins(c, attempt_id=attempt_id, run_number=run_number)
    row = c.execute(
        text(f"""
            INSERT INTO intents (attempt_id, dataset_pk, recording_pk, zarr)
            SELECT r.attempt_id, r.dataset_pk, r.pk, r.zarr FROM recordings r WHERE {HELD}
            ON CONFLICT (attempt_id) DO UPDATE SET zarr = excluded.zarr
            RETURNING dataset_pk, zarr
        """),
        {"attempt": attempt_id, "number": run_number},
    ).one_or_none()
    if row is None:
        raise LostLease("this attempt was superseded", detail=f"attempt {attempt_id}, run {run_number}")
    left = _intents(c, "i.dataset_pk = :dataset AND i.zarr = :zarr", {"dataset": row.dataset_pk, "zarr": row.zarr})
    return [intent for intent in left if intent.attempt_id != attempt_id]


def close_intent(c: Connection, *, attempt_id: UUID) -> None:
    """Forget an intent whose leftovers are gone from the target. Closed before is fine."""
    c.execute(text("DELETE FROM intents WHERE attempt_id = :attempt"), {"attempt": attempt_id})


def open_intents(c: Connection, *, dataset: Dataset) -> list[OpenIntent]:
    """Every intent of the dataset, oldest first. The ones not ``held`` are what a crash left."""
    return _intents(c, "i.dataset_pk = :dataset", {"dataset": dataset.pk})


def _intents(c: Connection, which: str, values: dict[str, Any]) -> list[OpenIntent]:
    rows = c.execute(
        text(f"""
            SELECT i.attempt_id, i.recording_pk, i.zarr, i.opened_at,
                   COALESCE(r.attempt_id = i.attempt_id AND r.lease_expires_at > zarrmill_now(), false) AS held
            FROM intents i JOIN recordings r ON r.pk = i.recording_pk WHERE {which} ORDER BY i.opened_at, i.attempt_id
        """),
        values,
    )
    return [
        OpenIntent(
            attempt_id=row.attempt_id,
            recording_id=row.recording_pk,
            zarr=row.zarr,
            opened_at=row.opened_at,
            held=row.held,
        )
        for row in rows
    ]


_UNNAMED = """
    s.dataset_pk = :dataset AND (NOT r.discovered OR r.due = 'failed' AND s.source <> r.source)
    AND NOT EXISTS (
        SELECT FROM recordings o WHERE o.dataset_pk = s.dataset_pk AND o.zarr = s.zarr AND o.due IN ('pending', 'converting'))
    AND NOT EXISTS (SELECT FROM intents i WHERE i.dataset_pk = s.dataset_pk AND i.zarr = s.zarr)
"""


def stores_to_remove(c: Connection, *, dataset: Dataset) -> list[str]:
    """Store paths that stand at the target, that no index names, and that no due recording is going to replace.

    Their recording vanished from the source, or changed and then failed. Remove them only after the index that does not
    name them is published, then say ``removed``.
    """
    rows = c.execute(
        text(
            f"SELECT s.zarr FROM stores s JOIN recordings r ON r.pk = s.recording_pk WHERE {_UNNAMED} ORDER BY s.zarr"
        ),
        {"dataset": dataset.pk},
    )
    return [row.zarr for row in rows]


def removed(c: Connection, *, dataset: Dataset, stores: Collection[str]) -> int:
    """Forget stores that are gone from the target; how many were known. One that has come to be named is kept."""
    rows = c.execute(
        text(f"""
            WITH gone AS (
                DELETE FROM stores s USING recordings r
                WHERE r.pk = s.recording_pk AND s.zarr = ANY(CAST(:stores AS text[])) AND ({_UNNAMED})
                RETURNING s.recording_pk
            )
            UPDATE recordings r SET served_source = NULL FROM gone WHERE r.pk = gone.recording_pk
        """),
        {"dataset": dataset.pk, "stores": list(stores)},
    )
    return rows.rowcount
