"""Sample files that are a plain table, mapped and read with the arithmetic of the library that knows their header."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.samples import RowSamples, Samples, TableSamples

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["brainvision_samples"]

_TYPES = {"short": "<i2", "int": "<i4", "single": "<f4"}
_CHECKED_SAMPLES = 16


def brainvision_samples(raw: Any) -> Samples | None:
    """The samples of a BrainVision recording that MNE opened; None of any other, and of one whose samples are text.

    Raises
    ------
    RuntimeError
        This release of MNE reads other values at the start or the end.
    """
    if type(raw).__name__ != "RawBrainVision":
        return None
    extras = raw._raw_extras[0]
    kind = _TYPES.get(extras["fmt"]) if isinstance(extras["fmt"], str) else None
    if kind is None or len(raw.filenames) != 1:
        return None
    n_channels, n_samples = len(raw.ch_names), int(raw.n_times)
    cals = np.asarray(raw._cals, dtype=np.float64)
    by_row = extras["order"] == "C"
    table = np.memmap(raw.filenames[0], kind, "r", shape=(n_channels, n_samples) if by_row else (n_samples, n_channels))

    def physical(row: NDArray[Any], position: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.multiply(row, cals[position], dtype=np.float64)
        return values

    for stretch in (slice(0, _CHECKED_SAMPLES), slice(max(n_samples - _CHECKED_SAMPLES, 0), n_samples)):
        held = table[:, stretch] if by_row else table[stretch].T
        known = raw.get_data(start=stretch.start, stop=min(stretch.stop, n_samples))
        if not np.array_equal(np.stack([physical(one, i) for i, one in enumerate(held)]), known, equal_nan=True):
            raise RuntimeError("MNE reads other samples than stand in the BrainVision file here")
    double = np.dtype(np.float64)
    return RowSamples(table, double, physical) if by_row else TableSamples(table, double, physical)
