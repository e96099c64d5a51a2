"""The table of trials in a file, a row a trial: as schema 1 keeps a table of pandas, and as schema 0 keeps its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.vneurotk.typed_scalars import TypedScalars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

__all__ = ["plain_names", "write_plain_table", "write_table"]

_UNKNOWN = "n/a"


def write_table(file: Any, table: Mapping[str, npt.NDArray[Any] | Sequence[str | None]]) -> None:
    """The group ``trial_meta`` of schema 1: column names apart from columns, each by its position, with its type."""
    group = file.create_group("trial_meta")
    group.attrs["encoding"] = "pandas_v1"
    names = group.create_group("column_index")
    names.attrs["name_present"] = False
    names.attrs["kind"] = "values"
    _write_texts(names.create_group("data"), list(table))
    index = group.create_group("index")
    index.attrs["name_present"] = False
    index.attrs["kind"] = "range"
    for name, value in (("start", 0), ("stop", len(next(iter(table.values())))), ("step", 1)):
        index.attrs[name] = value
    columns = group.create_group("columns")
    for position, column in enumerate(table.values()):
        series = columns.create_group(str(position))
        if isinstance(column, np.ndarray):
            series.attrs["kind"] = "numpy"
            series.attrs["dtype"] = str(column.dtype)
            series.create_dataset("values", data=column)
        else:
            _write_texts(series, column)


def _write_texts(series: Any, values: Sequence[str | None]) -> None:
    series.attrs["kind"] = "object_scalars"
    series.attrs["dtype"] = "object"
    TypedScalars.encode(values, missing=True).write(series, "values")


def write_plain_table(file: Any, table: Mapping[str, npt.NDArray[Any] | Sequence[str | None]]) -> None:
    """The group ``trial_meta`` of schema 0: a dataset for each column, under its name; ``n/a`` for a text that is not known."""
    import h5py

    group = file.create_group("trial_meta")
    for name, column in zip(plain_names(table), table.values(), strict=True):
        if isinstance(column, np.ndarray):
            group.create_dataset(name, data=column)
        else:
            texts = np.array([_UNKNOWN if one is None else one for one in column], dtype=object)
            group.create_dataset(name, data=texts, dtype=h5py.string_dtype())


def plain_names(names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Names that are one step of an HDF5 path each: slashes become underscores, and what is taken or a dot gets one more."""
    taken: set[str] = set()
    found = []
    for name in names:
        plain = name.replace("/", "_")
        while plain in taken or plain in {"", ".", ".."}:
            plain += "_"
        taken.add(plain)
        found.append(plain)
    return found
