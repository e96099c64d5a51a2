"""Rows of events.parquet for one store, as one Arrow IPC stream that the database keeps beside the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.events import FIXED_COLUMNS
from contract.samples import sample_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.events.parse import Events

__all__ = ["event_rows", "have_a_sample", "open_rows", "packed_rows", "read_rows", "renamed_rows"]

_ENTITIES = {"subject": "sub", "session": "ses", "task": "task", "run": "run"}


def event_rows(
    events: Events,
    *,
    zarr: str,
    entities: Mapping[str, str],
    groups: Sequence[tuple[str, float | None]],
) -> tuple[bytes, int]:
    """The rows of one store and their number: one per event and channel group.

    Parameters
    ----------
    groups
        Name and served rate in Hz of each channel group of the store.

    Returns
    -------
    (bytes, int)
        An lz4-compressed Arrow IPC stream of one table in the columns of ``contract.events``, text columns plain; and
        the number of its rows. Rows are by onset, unknown onsets last, file order on ties, then by group name.
    """
    import pyarrow as pa

    columns = _columns(events, zarr, entities, sorted(groups))
    count = events.n_events * len(groups)
    kinds = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "dictionary": pa.string()}
    names = [*FIXED_COLUMNS, *events.others]
    arrays = [pa.array(columns[name], type=kinds[FIXED_COLUMNS.get(name, "dictionary")]) for name in names]
    table = pa.table(arrays, names=names)
    return packed_rows(table), count


def packed_rows(table: Any) -> bytes:
    """A ``pyarrow.Table`` of one store's rows as the lz4-compressed Arrow IPC stream that the database keeps."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def renamed_rows(data: bytes, *, zarr: str, entities: Mapping[str, str]) -> bytes:
    """The rows of a store as they are under another name: its path and entities changed, nothing else."""
    import pyarrow as pa

    table = read_rows(data)
    said = {"store_path": zarr, **{name: entities.get(entity) for name, entity in _ENTITIES.items()}}
    for name, value in said.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array([value] * table.num_rows, type=pa.string()))
    return packed_rows(table)


def read_rows(data: bytes) -> Any:
    """The ``pyarrow.Table`` in an IPC stream of ``event_rows``."""
    with open_rows(data) as reader:
        return reader.read_all()


def have_a_sample(data: bytes) -> bool:
    """Whether any row in an IPC stream of ``event_rows`` has a sample index; without one a reader can place none."""
    column = read_rows(data).column("sample_index")
    return bool(column.null_count < len(column))


def open_rows(data: bytes) -> Any:
    """A ``pyarrow.ipc.RecordBatchStreamReader`` on such a stream, to be closed."""
    import pyarrow as pa

    # these streams are small: handing one to pyarrow's thread pool costs ten times its decompression
    return pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False))


def _columns(
    events: Events, zarr: str, entities: Mapping[str, str], groups: Sequence[tuple[str, float | None]]
) -> dict[str, list[Any]]:
    each = range(len(groups))
    count = events.n_events * len(groups)
    blank = (None,) * events.n_events

    def repeated(values: Sequence[Any] | None) -> list[Any]:
        return [value for value in (blank if values is None else values) for _ in each]

    columns: dict[str, list[Any]] = {"store_path": [zarr] * count}
    for name, entity in _ENTITIES.items():
        columns[name] = [entities.get(entity)] * count
    columns["onset_s"] = repeated(events.onset_s)
    columns["duration_s"] = repeated(events.duration_s)
    columns["sample_index"] = [sample_index(onset, rate) for onset in events.onset_s for _, rate in groups]
    columns["group_name"] = [name for _ in events.onset_s for name, _ in groups]
    columns["trial_type"] = repeated(events.trial_type)
    columns["value"] = repeated(events.value)
    columns["hed"] = repeated(events.hed)
    columns.update((name, repeated(values)) for name, values in events.others.items())
    return columns
