"""What is published of a dataset, read from one snapshot: the lists of the index, the manifest's rows, the event rows."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from contract.codes import FailureCode, PendingReason
from db import stores
from db.coverage import FAILURE, PENDING, SERVED, Coverage, coverage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from db.dataset_values import Dataset

__all__ = ["FailureRow", "ManifestRow", "PendingRow", "PublishedSnapshot", "published_snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """One entry of ``failures``. ``detail`` of a retry_exhausted is its last error."""

    path: str
    zarr: str
    code: FailureCode
    detail: str | None
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """One entry of ``pending``."""

    path: str
    zarr: str
    reason: PendingReason
    attempts: int
    last_error: str | None
    last_attempt_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """One store of the manifest. ``size_bytes`` is of its primary source member."""

    zarr: str
    source_key: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSnapshot:
    """A dataset at one moment. Lists are read by server-side cursors, one after another or side by side.

    Parameters
    ----------
    duration_s
        Sum over published stores of the longest channel group.
    events_row_count
        Rows that events.parquet will have.
    stores_with_events
        Published stores that have an events.tsv; without any there is no events.parquet.
    biosigio_version
        The release that wrote every published store; None when they differ or there is none.
    """

    connection: Connection
    dataset: Dataset
    coverage: Coverage
    duration_s: float
    events_row_count: int
    stores_with_events: int
    biosigio_version: str | None

    def stores(self) -> Iterator[tuple[str, bytes]]:
        """(store path, index entry as it was dumped), by store path."""
        return stores.entries(self.connection, dataset=self.dataset)

    def events(self) -> Iterator[tuple[str, bytes]]:
        """(store path, Arrow IPC stream) of stores that have an events.tsv, by store path."""
        return stores.events(self.connection, dataset=self.dataset)

    def events_version(self) -> str:
        """SHA-256 hex over which conversion wrote the event rows of which store; equal when events.parquet would be."""
        digest = hashlib.sha256()
        for row in self._rows("s.zarr, s.attempt_id", f"{SERVED} AND s.events IS NOT NULL ORDER BY s.zarr"):
            digest.update(f"{row.zarr}\0{row.attempt_id}\0".encode())
        return digest.hexdigest()

    def version(self) -> str:
        """32 hex characters that change when any entry of the lists, or any row of the manifest, does.

        Worked out by Postgres: 25,000 entries need not cross to this process to find that nothing changed.
        """
        version: str = self.connection.execute(_VERSION, {"dataset": self.dataset.pk}).scalar_one()
        return version

    def failures(self) -> Iterator[FailureRow]:
        """Entries of ``failures``, by path."""
        for row in self._rows("r.path, r.zarr, r.code, r.detail, r.attempts", f"{FAILURE} ORDER BY r.path"):
            yield FailureRow(
                path=row.path, zarr=row.zarr, code=FailureCode(row.code), detail=row.detail, attempts=row.attempts
            )

    def pending(self) -> Iterator[PendingRow]:
        """Entries of ``pending``, by path."""
        columns = "r.path, r.zarr, r.reason, r.attempts, r.last_error, r.last_attempt_at"
        for row in self._rows(columns, f"{PENDING} ORDER BY r.path"):
            yield PendingRow(
                path=row.path,
                zarr=row.zarr,
                reason=PendingReason(row.reason),
                attempts=row.attempts,
                last_error=row.last_error,
                last_attempt_at=row.last_attempt_at,
            )

    def manifest(self) -> Iterator[ManifestRow]:
        """Rows of the manifest, by store path."""
        for row in self._rows("s.zarr, s.source_key, s.size_bytes", f"{SERVED} ORDER BY s.zarr"):
            yield ManifestRow(zarr=row.zarr, source_key=row.source_key, size_bytes=row.size_bytes)

    def _rows(self, columns: str, which: str) -> Iterator[Any]:
        sql = f"""SELECT {columns} FROM recordings r LEFT JOIN stores s ON s.recording_pk = r.pk
                  WHERE r.dataset_pk = :dataset AND {which}"""
        return stores.stream(self.connection, sql, {"dataset": self.dataset.pk}, rows=1000)


_TOTALS = text(f"""
    SELECT COALESCE(sum(s.duration_s), 0) AS duration_s, COALESCE(sum(s.events_row_count), 0)::bigint AS events_row_count,
           count(s.events) AS stores_with_events,
           CASE WHEN min(s.biosigio) = max(s.biosigio) THEN NULLIF(min(s.biosigio), 'unknown') END AS biosigio_version
    FROM stores s JOIN recordings r ON r.pk = s.recording_pk
    WHERE s.dataset_pk = :dataset AND {SERVED}
""")


_VERSION = text(f"""
    SELECT md5(COALESCE(string_agg(CASE
        WHEN {SERVED} THEN md5(s.entry) || md5(ROW (s.zarr, s.source_key, s.size_bytes)::text)
        ELSE md5(ROW (r.path, r.zarr, r.due, r.code, r.detail, r.reason, r.attempts, r.last_error,
                      extract(epoch FROM r.last_attempt_at))::text)
    END, '' ORDER BY r.path), ''))
    FROM recordings r LEFT JOIN stores s ON s.recording_pk = r.pk
    WHERE r.dataset_pk = :dataset AND r.discovered
""")


@contextmanager
def published_snapshot(engine: Engine, dataset: Dataset) -> Iterator[PublishedSnapshot]:
    """One read-only snapshot of what is to be published; its coverage is checked.

    Raises
    ------
    Unaccounted
        The lists do not add up to what was discovered.
    """
    with (
        engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True) as c,
        c.begin(),
    ):
        counts = coverage(c, dataset=dataset)
        totals = c.execute(_TOTALS, {"dataset": dataset.pk}).one()
        yield PublishedSnapshot(
            connection=c,
            dataset=dataset,
            coverage=counts,
            duration_s=totals.duration_s,
            events_row_count=totals.events_row_count,
            stores_with_events=totals.stores_with_events,
            biosigio_version=totals.biosigio_version,
        )
