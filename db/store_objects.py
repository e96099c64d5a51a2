"""The objects of served stores, as they are compared, rewritten and copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db.stores import pack_digests, pack_etags, stream, unpack_digests, unpack_etags

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["CopiedStore", "ObjectRow", "copied", "note_object", "object_rows"]


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
