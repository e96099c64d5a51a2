"""Trial metadata of a VneuroTK file as text, column by column, whatever types its columns have."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tasks.vneurotk.opening import attribute, dataset, group, members, text
from tasks.vneurotk.typed_scalars import BadScalars, Scalar, TypedScalars, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MOST_COLUMNS", "read_columns"]

ENCODING: Final = "pandas_v1"
MOST_COLUMNS: Final = 256
_UNITS: Final = {"s": 10**6, "ms": 10**3, "us": 1}
_PER_US: Final = 1000
_NAT: Final = -(2**63)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEVELS: Final = 2
"""A categorical's categories are a series again, and theirs are none."""


def read_columns(file: Any, schema: int, n_trials: int, notes: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Label and cells of every column of as many rows as there are trials; ``notes`` gets a sentence for each that is left out."""
    table = group(file, "trial_meta")
    if table is None:
        return
    labels = _labels(table, notes) if schema else {name: name for name in members(table, most=MOST_COLUMNS)}
    held = group(table, "columns") if schema else table
    if held is None:
        notes.append("its trial_meta has no columns and is not used")
        return
    for place, label in labels.items():
        try:
            column = group(held, place) if schema else dataset(held, place)
            cells = None if column is None else _series(column, n_trials, 1) if schema else _plain(column, n_trials)
        except (BadScalars, ValueError, TypeError, KeyError, OverflowError) as error:
            notes.append(f"the column {label!r} of its trial_meta is not used: {error}")
            continue
        if cells is None:
            notes.append(f"the column {label!r} of its trial_meta is not used: it is not there")
        elif len(cells) != n_trials:
            notes.append(f"the column {label!r} of its trial_meta is not used: {len(cells)} rows of {n_trials} trials")
        else:
            yield label, cells


def _labels(table: Any, notes: list[str]) -> dict[str, str]:
    """Place of each column below ``columns`` -> its label."""
    index = group(table, "column_index")
    if text(attribute(table, "encoding")) != ENCODING or index is None:
        notes.append(f"its trial_meta is not encoded as {ENCODING} and is not used")
        return {}
    try:
        if text(attribute(index, "kind")) == "range":
            first, stop, step = (int(attribute(index, key)) for key in ("start", "stop", "step"))
            found = [str(one) for one in range(first, stop, step)[: MOST_COLUMNS + 1]]
        else:
            found = _series(group(index, "data"), MOST_COLUMNS + 1, 1)
    except (BadScalars, ValueError, TypeError, KeyError, AttributeError) as error:
        notes.append(f"the names of the columns of its trial_meta cannot be read, so it is not used: {error}")
        return {}
    if len(found) > MOST_COLUMNS:
        notes.append(f"only the first {MOST_COLUMNS} columns of its trial_meta are used")
    return {str(place): label for place, label in enumerate(found[:MOST_COLUMNS])}


def _series(series: Any, most: int, level: int) -> list[str]:
    """The values of a series as text; a missing one is empty."""
    kind = text(attribute(series, "kind"))
    match kind:
        case "numpy":
            return _plain(_values(series, "values"), most)
        case "nullable" | "object_scalars":
            return [_said(one) for one in TypedScalars.read(group(series, "values"), most=most).decode(missing=True)]
        case "categorical" if level < _LEVELS:
            categories = _series(group(series, "category_values"), most, level + 1)
            codes = _bounded(_values(series, "codes"), most)
            return ["" if code < 0 else categories[code] for code in codes.tolist()]
        case "datetime" | "datetime_tz":
            moments = _bounded(_values(series, "values"), most)
            unit = text(attribute(series, "unit")) or "ns"
            return [_moment(one, unit, with_zone=kind == "datetime_tz") for one in moments.tolist()]
    raise ValueError(f"its kind {kind!r} is unknown")


def _values(series: Any, name: str) -> Any:
    found = dataset(series, name)
    if found is None:
        raise ValueError(f"it has no {name}")
    return found


def _bounded(values: Any, most: int) -> Any:
    """A list of integers."""
    if values.ndim != 1 or values.shape[0] > most or values.dtype.kind not in "iu":
        raise ValueError(f"{values.shape} values of the type {values.dtype} are no such list")
    return values[()]


def _plain(values: Any, most: int) -> list[str]:
    """Numbers, truths or texts."""
    if values.ndim != 1 or values.shape[0] > most or values.dtype.kind not in "iufbOS":
        raise ValueError(f"{values.shape} values of the type {values.dtype} are no column")
    if values.dtype.kind == "O":
        # one at a time: many places may point to one long text
        return [_decoded(values[place]) for place in range(values.shape[0])]
    return [_said(one) for one in values[()].tolist()]


def _decoded(value: Any) -> str:
    found = text(value)
    if found is None:
        raise ValueError("it holds what is no text")
    return found


def _said(value: Scalar | bytes) -> str:
    """A cell; a whole number is one, however it is kept."""
    if isinstance(value, bytes):
        return _decoded(value)
    return repr(value) if isinstance(value, float) and math.isfinite(value) else as_text(value)


def _moment(value: int, unit: str, *, with_zone: bool) -> str:
    """An ISO 8601 moment, in UTC where the file knows the zone; empty for a missing one."""
    if value == _NAT:
        return ""
    if unit == "ns":
        whole, rest = divmod(value, _PER_US)
    else:
        whole, rest = value * _UNITS[unit], 0
    moment = _EPOCH + timedelta(microseconds=whole)
    digits = f"{rest:03d}" if rest else ""
    said = moment.replace(tzinfo=None).isoformat(timespec="microseconds" if rest else "auto") + digits
    return f"{said}Z" if with_zone else said


def cell_of(value: Any) -> str:
    """A stimulus' identifier as a cell: a whole number without a fraction, since VneuroTK keeps integers as float64."""
    if isinstance(value, float | np.floating) and math.isfinite(value) and float(value).is_integer():
        return str(int(value))
    return _said(value)
