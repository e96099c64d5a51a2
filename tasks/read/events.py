"""Events of one recording, from events.parquet: only the row groups that can hold the store are read."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import Refused, StorageError, StorageUnavailable
from contract.layout import events_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.storage.opened import Opened
    from tasks.read.place import Place

__all__ = ["MOST_BYTES", "MOST_ROWS", "EventRows", "read_events"]

MOST_BYTES = 16 * 1024 * 1024
"""Compressed bytes of row groups that one question may read."""
MOST_ROWS = 100_000
"""Rows that one question may look through."""

_BATCH_ROWS = 8192
_TRIES = 4
_BUFFER_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class EventRows:
    """Events of one store in their published order, one row for each event and channel group.

    Parameters
    ----------
    truncated
        Whether there are more behind the last one given.
    """

    rows: list[dict[str, Any]]
    truncated: bool


def read_events(
    place: Place, dataset_id: str, zarr: str, *, group: str | None = None, limit: int, offset: int = 0
) -> EventRows | None:
    """Up to ``limit`` rows of a store behind the first ``offset``; None when the dataset has no events.parquet.

    All of it comes from one version of the file. ``sample_index`` is given as published: it is not clamped to the
    recording, and null where the onset is not known.

    Raises
    ------
    Refused
        The row groups that hold the store are larger than one question may read.
    StorageError
        The file cannot be read now.
    """
    for _ in range(_TRIES):
        opened = place.open_object(events_key(dataset_id))
        if opened is None:
            return None
        try:
            return _read(opened, zarr, group, limit, offset)
        except OSError:  # replaced while it was read
            continue
        finally:
            opened.close()
    raise StorageUnavailable("events.parquet was replaced again and again while it was read; try again.")


def _read(opened: Opened, zarr: str, group: str | None, limit: int, offset: int) -> EventRows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.PythonFile(io.BufferedReader(_Ranged(opened), _BUFFER_BYTES), mode="r"))
        groups = _groups_with(file, zarr)
        rows: list[dict[str, Any]] = []
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups) if groups else ():
            rows.extend(_matching(batch, zarr, group))
            if len(rows) > offset + limit:
                break
    except pa.ArrowInvalid as error:
        raise StorageError(
            "What is served as events.parquet cannot be read as one.", detail=str(error)[:200]
        ) from error
    return EventRows(rows[offset : offset + limit], len(rows) > offset + limit)


def _groups_with(file: Any, zarr: str) -> list[int]:
    """The row groups whose store paths may include ``zarr``, by their statistics."""
    column = file.schema_arrow.names.index("store_path")
    found: list[int] = []
    n_bytes = n_rows = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        statistics = group.column(column).statistics
        if statistics is not None and statistics.has_min_max and not statistics.min <= zarr <= statistics.max:
            continue
        found.append(number)
        n_rows += group.num_rows
        n_bytes += sum(group.column(each).total_compressed_size for each in range(group.num_columns))
    if n_rows > MOST_ROWS or n_bytes > MOST_BYTES:
        raise Refused(
            f"recording: its events lie in {n_rows} rows of {n_bytes} bytes, more than one question may read; read "
            "events.parquet itself, for example with duckdb."
        )
    return found


def _matching(batch: Any, zarr: str, group: str | None) -> Iterator[dict[str, Any]]:
    import pyarrow.compute as pc

    kept = batch.filter(pc.equal(batch.column("store_path").cast("string"), zarr))
    if group is not None:
        kept = kept.filter(pc.equal(kept.column("group_name").cast("string"), group))
    for row in kept.to_pylist():
        yield {name: _plain(value) for name, value in row.items() if name != "store_path"}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Ranged(io.RawIOBase):
    """An opened object as a file that can be sought."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self._opened = opened
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._opened.size_bytes}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        part = self._opened.read(self._at, len(buffer)) if self._at < self._opened.size_bytes else b""
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
