"""The rows of a served events.parquet, store by store, as conversions would have left them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from contract.events import FIXED_COLUMNS
from tasks.events.rows import packed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["rows_by_store"]


def rows_by_store(path: Path) -> Iterator[tuple[str, bytes, int]]:
    """(store path, Arrow IPC stream in the form of ``tasks.events.rows``, number of rows), in the file's order.

    Row groups are read one at a time, so that a million rows never stand in memory; a store may span several.

    Raises
    ------
    ValueError
        It is no such file: a column is missing, or a store's rows stand in two places.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if missing := [name for name in FIXED_COLUMNS if name not in file.schema_arrow.names]:
                raise ValueError(f"events.parquet has no column {missing[0]}")
            yield from _stores(file)
    except pa.ArrowException as error:
        raise ValueError(f"events.parquet cannot be read: {error}") from error


def _stores(file: Any) -> Iterator[tuple[str, bytes, int]]:
    import pyarrow as pa

    seen: set[str] = set()
    open_store: str | None = None
    parts: list[Any] = []
    for number in range(file.num_row_groups):
        for store, part in _runs(file.read_row_group(number)):
            if store != open_store:
                if open_store is not None:
                    yield _packed(open_store, pa.concat_tables(parts, promote_options="default"))
                if store in seen:
                    raise ValueError(f"events.parquet has the rows of {store} in two places")
                seen.add(store)
                open_store, parts = store, []
            parts.append(part)
    if open_store is not None:
        yield _packed(open_store, pa.concat_tables(parts, promote_options="default"))


def _runs(table: Any) -> Iterator[tuple[str, Any]]:
    """Consecutive rows of one store each."""
    stores = table.column("store_path").to_pylist()
    starts = [0, *(at for at in range(1, len(stores)) if stores[at] != stores[at - 1]), len(stores)]
    for start, end in pairwise(starts):
        if end > start:
            yield stores[start], _plain(table.slice(start, end - start))


def _plain(table: Any) -> Any:
    """Text columns without their dictionaries, which are the whole file's; columns that this store does not fill left out."""
    import pyarrow as pa

    names, columns = [], []
    for name in table.schema.names:
        column = table.column(name)
        if name not in FIXED_COLUMNS and column.null_count == len(column):
            continue
        if pa.types.is_dictionary(column.type):
            column = column.cast(pa.string())
        names.append(name)
        columns.append(column)
    return pa.table(columns, names=names)


def _packed(store: str, table: Any) -> tuple[str, bytes, int]:
    return store, packed_rows(table.combine_chunks()), table.num_rows
