"""events.parquet as it is served, of which a row group is read at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from contract.layout import events_key

if TYPE_CHECKING:
    from pathlib import Path

    from infra.storage.protocol import Target

__all__ = ["EventsFile", "fetch_events_file"]

_COLUMNS = ["store_path", "onset_s", "duration_s", "sample_index", "group_name", "trial_type", "value"]


class EventsFile:
    """The file at ``path``. Safe to ask from several threads."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self._lock = threading.Lock()
        self._held: tuple[int, Any] = (-1, None)
        self.row_count = int(self._file.metadata.num_rows)
        self._spans = [self._span(number) for number in range(self._file.num_row_groups)]

    def rows(self, zarr: str) -> list[dict[str, Any]]:
        """The rows of one store, in the order of the file, without the columns that are not compared."""
        import pyarrow.compute as pc

        found: list[dict[str, Any]] = []
        with self._lock:
            for number, (first, last) in enumerate(self._spans):
                if first <= zarr <= last:
                    table = self._row_group(number)
                    found += table.filter(pc.equal(table.column("store_path").cast("string"), zarr)).to_pylist()
        return found

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def _row_group(self, number: int) -> Any:
        if self._held[0] != number:
            self._held = (number, self._file.read_row_group(number, columns=_COLUMNS, use_threads=False))
        return self._held[1]

    def _span(self, number: int) -> tuple[str, str]:
        """The first and last store path of a row group, by its statistics; everything where it has none."""
        group = self._file.metadata.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            if column.path_in_schema == "store_path" and column.is_stats_set and column.statistics.has_min_max:
                return str(column.statistics.min), str(column.statistics.max)
        return "", "\U0010ffff"


def fetch_events_file(target: Target, dataset_id: str, path: Path) -> tuple[EventsFile | None, str | None]:
    """The dataset's events.parquet, copied to ``path``, and its etag; None for both where there is none.

    Raises
    ------
    pyarrow.ArrowException
        What stands there is no such file.
    OSError, StorageError
        The target could not be read.
    """
    etag = target.fetch(events_key(dataset_id), path)
    return (None, None) if etag is None else (EventsFile(path), etag)
