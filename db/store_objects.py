"""The objects of served stores, as they are compared, rewritten and copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db.coverage import SERVED
from db.store_verdicts import STANDS
from db.stores import pack_digests, pack_etags, stream, unpack_digests, unpack_etags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["CopiedStore", "JudgedStore", "ObjectRow", "copied", "judged", "note_object", "object_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRow:
    """What a store's conversion left: size and SHA-256 of each object, and their etags where the target has some.

    ``digests`` is empty for a store that was taken over.
    """

    recording_id: int
    zarr: str
    digests: Mapping[str, tuple[int, str]]
    etags: Mapping[str, str] | None


def object_rows(c: Connection, *, dataset: Dataset) -> Iterator[ObjectRow]:
    """Every store that stands at the target, by store path, by a server-side cursor."""
    rows = stream(
        c,
        "SELECT recording_pk, zarr, digests, etags FROM stores WHERE dataset_pk = :dataset ORDER BY zarr",
        {"dataset": dataset.pk},
    )
    for row in rows:
        yield ObjectRow(
            recording_id=row.recording_pk,
            zarr=row.zarr,
            digests=unpack_digests(row.digests),
            etags=unpack_etags(row.etags),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedStore:
    """A published store whose verdict stands and is not ``failed``, and what a look at its objects is compared with.

    What its conversion left is kept packed: a dataset may have thousands of stores of hundreds of objects.
    """

    recording_id: int
    path: str
    zarr: str
    verified_at: datetime
    packed_digests: bytes
    packed_etags: bytes | None

    @property
    def digests(self) -> Mapping[str, tuple[int, str]]:
        """Size and SHA-256 of each object; empty for a store that was taken over."""
        return unpack_digests(self.packed_digests)

    @property
    def etags(self) -> Mapping[str, str] | None:
        """Etag of each object, where the target has some."""
        return unpack_etags(self.packed_etags)


def judged(c: Connection, *, dataset: Dataset) -> dict[str, JudgedStore]:
    """Every published store whose verdict stands and is not ``failed``, by store path."""
    rows = c.execute(
        text(f"""
            SELECT s.recording_pk, r.path, s.zarr, s.digests, s.etags, o.verified_at
            FROM stores s JOIN recordings r ON r.pk = s.recording_pk
            JOIN store_verdicts o ON o.recording_pk = s.recording_pk AND {STANDS}
            WHERE s.dataset_pk = :dataset AND {SERVED} AND o.status <> 'failed'
        """),
        {"dataset": dataset.pk},
    )
    return {
        row.zarr: JudgedStore(
            recording_id=row.recording_pk,
            path=row.path,
            zarr=row.zarr,
            verified_at=row.verified_at,
            packed_digests=row.digests,
            packed_etags=row.etags,
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedStore:
    """All that is kept of a store which another recording is to take; see ``StoreRow``."""

    zarr: str
    entry: bytes
    options: str
    engine: str
    biosigio: str
    digests: Mapping[str, tuple[int, str]]
    events: bytes | None
    events_row_count: int
    source_key: str | None
    size_bytes: int
    duration_s: float


def copied(c: Connection, *, recording_ids: Collection[int]) -> dict[int, CopiedStore]:
    """The stores of these recordings, by recording."""
    rows = c.execute(
        text("SELECT * FROM stores WHERE recording_pk = ANY(CAST(:ids AS bigint[]))"), {"ids": list(recording_ids)}
    )
    names = [name for name in CopiedStore.__slots__ if name != "digests"]
    return {
        row.recording_pk: CopiedStore(
            digests=unpack_digests(row.digests), **{name: getattr(row, name) for name in names}
        )
        for row in rows
    }


def note_object(c: Connection, *, dataset: Dataset, name: str, objects: Mapping[str, tuple[int, str, str]]) -> None:
    """Note size, SHA-256 and etag of one object of several stores, by store path. What was not known stays so."""
    rows = c.execute(
        text("SELECT zarr, digests, etags FROM stores WHERE dataset_pk = :dataset AND zarr = ANY(:zarrs) FOR UPDATE"),
        {"dataset": dataset.pk, "zarrs": list(objects)},
    ).all()
    for row in rows:
        digests, etags = unpack_digests(row.digests), unpack_etags(row.etags)
        size, sha256, etag = objects[row.zarr]
        c.execute(
            text("UPDATE stores SET digests = :digests, etags = :etags WHERE dataset_pk = :dataset AND zarr = :zarr"),
            {
                "dataset": dataset.pk,
                "zarr": row.zarr,
                "digests": pack_digests(digests and {**digests, name: (size, sha256)}),
                "etags": pack_etags((etags and {**etags, name: etag}) or {}),
            },
        )
