"""Documents as they were last published, by target and key: what a run compares before it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["PublishedDocument", "find", "forget", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDocument:
    """A document as it was last written.

    Parameters
    ----------
    sha256
        Of its bytes, hex.
    comparable_sha256
        Of what matters in it, hex: for index.json without updated_utc and errors. Equal means that nothing need be written.
    made_from
        Names the rows and the head that index.json or manifest.json was written from; None for any other document. Equal
        means that nothing need even be built.
    row_count
        Rows of events.parquet; None for any other.
    adopted
        Entries of another installation that stand in an index of ours, packed; None without any.
    """

    target: str
    key: str
    etag: str
    size_bytes: int
    sha256: str
    comparable_sha256: str
    made_from: str | None
    row_count: int | None
    adopted: bytes | None
    run_id: UUID | None
    written_at: datetime


def find(c: Connection, *, target: str, key: str) -> PublishedDocument | None:
    """The document as it was last written at this key; None when it never was, or was removed."""
    row = c.execute(
        text("SELECT * FROM documents WHERE target = :target AND key = :key"), {"target": target, "key": key}
    ).one_or_none()
    return None if row is None else PublishedDocument(**row._mapping)


def note(
    c: Connection,
    *,
    target: str,
    key: str,
    etag: str,
    size_bytes: int,
    sha256: str,
    comparable_sha256: str | None = None,
    made_from: str | None = None,
    row_count: int | None = None,
    adopted: bytes | None = None,
    run_id: UUID | None = None,
) -> None:
    """Note that the document was written. Without ``comparable_sha256`` all of it matters."""
    c.execute(
        text("""
            INSERT INTO documents
                (target, key, etag, size_bytes, sha256, comparable_sha256, made_from, row_count, adopted, run_id)
            VALUES (:target, :key, :etag, :size_bytes, :sha256, :comparable, :made_from, :row_count, :adopted, :run_id)
            ON CONFLICT (target, key) DO UPDATE
            SET etag = excluded.etag, size_bytes = excluded.size_bytes, sha256 = excluded.sha256,
                comparable_sha256 = excluded.comparable_sha256, made_from = excluded.made_from,
                row_count = excluded.row_count, adopted = excluded.adopted, run_id = excluded.run_id,
                written_at = zarrmill_now()
        """),
        {
            "target": target,
            "key": key,
            "etag": etag,
            "size_bytes": size_bytes,
            "sha256": sha256,
            "comparable": comparable_sha256 or sha256,
            "made_from": made_from,
            "row_count": row_count,
            "adopted": adopted,
            "run_id": run_id,
        },
    )


def forget(c: Connection, *, target: str, key: str) -> None:
    """Note that the document is gone from the target. Gone before is fine."""
    c.execute(text("DELETE FROM documents WHERE target = :target AND key = :key"), {"target": target, "key": key})
