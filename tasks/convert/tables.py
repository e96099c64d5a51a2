"""Sample files that are a plain table, mapped and read with the arithmetic of the library that knows their header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.samples import RowSamples, Samples, TableSamples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["table_samples"]

_FIF_TYPES = {2: ">i2", 3: ">i4", 4: ">f4", 5: ">f8", 16: ">i2"}
_TYPES = {"short": "<i2", "int": "<i4", "single": "<f4"}
_CHECKED_SAMPLES = 16


def table_samples(raw: Any) -> Samples | None:
    """The samples of a recording that MNE opened without its data, where they stand in its files as plain tables; else None.

    Raises
    ------
    RuntimeError
        This release of MNE reads other values at the start or the end.
    """
    return _brainvision(raw) or _fif(raw)


def _fif(raw: Any) -> Samples | None:
    """Of a FIF whose buffers are all of one plain type; gaps, packed samples and compressed files are MNE's."""
    if type(raw).__name__ != "Raw" or any(not str(name).endswith(".fif") for name in raw.filenames):
        return None
    pieces, kinds = [], set()
    for extras in raw._raw_extras:
        lengths = np.diff(extras["bounds"])
        if any(entry is None for entry in extras["ent"]) or extras["orig_nchan"] != len(raw.ch_names):
            return None
        kinds |= {int(entry.type) for entry in extras["ent"]}
        if len(kinds) != 1 or not kinds <= _FIF_TYPES.keys():
            return None
        kind = np.dtype(_FIF_TYPES[next(iter(kinds))])
        file = np.memmap(extras["filename"], np.uint8, "r")
        for length, entry in zip(lengths, extras["ent"], strict=True):
            size = int(length) * len(raw.ch_names) * kind.itemsize
            if entry.size != size:
                return None
            pieces.append(file[entry.pos + 16 : entry.pos + 16 + size].view(kind).reshape(int(length), -1))
    if sum(map(len, pieces)) != raw.n_times:
        return None
    found = TableSamples(tuple(pieces), np.dtype(np.float64), _calibrated(raw))
    _check(raw, lambda stretch: _joined(pieces, stretch))
    return found


def _joined(pieces: list[NDArray[Any]], stretch: slice) -> NDArray[Any]:
    """The samples of a stretch at the start or the end of all pieces (channels x samples)."""
    count = stretch.stop - stretch.start
    kept: list[NDArray[Any]] = []
    for piece in pieces if stretch.start == 0 else reversed(pieces):
        kept.append(piece)
        if sum(map(len, kept)) >= count:
            break
    whole = np.concatenate(kept if stretch.start == 0 else kept[::-1])
    return (whole[:count] if stretch.start == 0 else whole[-count:]).T


def _calibrated(raw: Any) -> Callable[[NDArray[Any], int], NDArray[np.float64]]:
    cals = np.asarray(raw._cals, dtype=np.float64)

    def physical(row: NDArray[Any], position: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.multiply(row, cals[position], dtype=np.float64)
        return values

    return physical


def _check(raw: Any, held: Callable[[slice], NDArray[Any]]) -> None:
    n_samples, physical = int(raw.n_times), _calibrated(raw)
    for stretch in (slice(0, min(_CHECKED_SAMPLES, n_samples)), slice(max(n_samples - _CHECKED_SAMPLES, 0), n_samples)):
        known = raw.get_data(start=stretch.start, stop=stretch.stop)
        if not np.array_equal(
            np.stack([physical(one, i) for i, one in enumerate(held(stretch))]), known, equal_nan=True
        ):
            raise RuntimeError("MNE reads other samples than stand in the file here")


def _brainvision(raw: Any) -> Samples | None:
    """Of a BrainVision recording; samples as text are MNE's."""
    if type(raw).__name__ != "RawBrainVision":
        return None
    extras = raw._raw_extras[0]
    kind = _TYPES.get(extras["fmt"]) if isinstance(extras["fmt"], str) else None
    if kind is None or len(raw.filenames) != 1:
        return None
    n_channels, n_samples = len(raw.ch_names), int(raw.n_times)
    by_row = extras["order"] == "C"
    table = np.memmap(raw.filenames[0], kind, "r", shape=(n_channels, n_samples) if by_row else (n_samples, n_channels))
    _check(raw, lambda stretch: table[:, stretch] if by_row else table[stretch].T)
    double, physical = np.dtype(np.float64), _calibrated(raw)
    return RowSamples(table, double, physical) if by_row else TableSamples((table,), double, physical)
