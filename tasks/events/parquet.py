"""Assembles events.parquet from the rows that each conversion left, store by store."""

from __future__ import annotations

import struct
import tempfile
from typing import IO, TYPE_CHECKING, Any

from contract.events import COMPRESSION, FIXED_COLUMNS, ROW_GROUP_ROWS
from tasks.events.rows import open_rows, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["write_parquet"]

_LENGTH = struct.Struct("<Q")


def write_parquet(stores: Iterable[tuple[str, bytes]], out: Path) -> int:
    """Write the rows of all stores to ``out`` and return their number; 0 writes no file.

    Parameters
    ----------
    stores
        (store path, rows of ``tasks.events.rows``) in order of the store path; read once.
    out
        Where the file goes.

    Notes
    -----
    Which columns there are is known only after the last store, so the rows are spooled to an anonymous file first: 25,000
    stores never stand in memory. A row group is closed once it has 65,536 rows, always between two stores, so that
    readers can prune by store path. Equal rows give equal bytes.

    Raises
    ------
    ValueError
        The store paths do not ascend.
    """
    with tempfile.TemporaryFile(dir=out.parent) as spool:
        names, count = _spool(stores, spool)
        if count == 0:
            return 0
        spool.seek(0)
        _write(_spooled(spool), names, out)
    return count


def _spool(stores: Iterable[tuple[str, bytes]], spool: IO[bytes]) -> tuple[list[str], int]:
    """Every pass-through name, sorted, and the number of rows."""
    others: set[str] = set()
    count = 0
    before = ""
    for zarr, data in stores:
        if zarr <= before:
            raise ValueError(f"the stores are not in order: {zarr!r} after {before!r}")
        before = zarr
        with open_rows(data) as reader:
            others.update(name for name in reader.schema.names if name not in FIXED_COLUMNS)
            rows = sum(batch.num_rows for batch in reader)
        if rows:
            spool.write(_LENGTH.pack(len(data)))
            spool.write(data)
            count += rows
    return sorted(others), count


def _spooled(spool: IO[bytes]) -> Iterator[Any]:
    while head := spool.read(_LENGTH.size):
        yield read_rows(spool.read(_LENGTH.unpack(head)[0]))


def _write(tables: Iterator[Any], others: list[str], out: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "dictionary": text}
    fields = [pa.field(name, kinds[kind]) for name, kind in FIXED_COLUMNS.items()]
    schema = pa.schema(fields + [pa.field(name, text) for name in others])
    with pq.ParquetWriter(out, schema, compression=COMPRESSION) as writer:
        waiting: list[Any] = []
        rows = 0
        for table in tables:
            waiting.append(table)
            rows += table.num_rows
            if rows >= ROW_GROUP_ROWS:
                writer.write_table(_row_group(waiting, schema), row_group_size=rows)
                waiting, rows = [], 0
        if waiting:
            writer.write_table(_row_group(waiting, schema), row_group_size=rows)


def _row_group(tables: list[Any], schema: Any) -> Any:
    """One table in the file's columns; a column that a store does not have is null for its rows."""
    import pyarrow as pa

    whole = pa.concat_tables(tables, promote_options="default").combine_chunks()
    columns = []
    for field in schema:
        if field.name not in whole.schema.names:
            columns.append(pa.nulls(whole.num_rows, pa.string()).dictionary_encode().cast(field.type))
        elif pa.types.is_dictionary(field.type):
            columns.append(whole.column(field.name).combine_chunks().dictionary_encode())
        else:
            columns.append(whole.column(field.name))
    return pa.table(columns, schema=schema)
