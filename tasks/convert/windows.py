"""The samples of a recording that is read window by window, each of all channels: what MNE reads, and what biosigIO has no importer for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.mapped import mapped
from tasks.convert.samples import RowSamples, Samples
from tasks.formats.memory import WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tasks.convert.pieces import EngineInput

__all__ = ["Windows", "of_mne", "window_samples"]

_KEPT: tuple[type[np.generic], ...] = (np.int16, np.int32, np.float32)
"""Types that samples are kept in where they give back the same bits: a reader multiplies what the file holds by a constant."""


@dataclass(frozen=True)
class Windows:
    """A recording that is open and gives any stretch of time of all channels.

    Parameters
    ----------
    read
        Samples from one to another moment (channels x samples), in double precision.
    cals
        What its reader multiplies a channel's numbers by, for each channel.
    block_samples
        Samples that its reader takes in whole whatever it is asked for, and forgets; 0 where it takes what it is asked for, or remembers.
    """

    n_channels: int
    n_samples: int
    read: Callable[[int, int], NDArray[np.float64]]
    cals: NDArray[np.float64]
    block_samples: int = 0


def of_mne(raw: Any, block_samples: int) -> Windows:
    """An MNE recording that was opened without its data; MNE unpacks a whole block for every sample of it."""
    cals = np.asarray(getattr(raw, "_cals", np.ones(len(raw.ch_names))), dtype=np.float64)
    n_channels, n_samples = len(raw.ch_names), int(raw.n_times)
    return Windows(n_channels, n_samples, lambda start, stop: raw.get_data(start=start, stop=stop), cals, block_samples)


def window_samples(source: Windows, given: EngineInput) -> Samples:
    """The samples of a recording that is read by windows; those of a big one are kept in scratch, in the file's own type."""
    n_channels, n_samples = source.n_channels, source.n_samples
    folder, block_samples = given.scratch / "samples", source.block_samples
    step = max(WINDOW_BYTES // (8 * n_channels), 1)
    if block_samples > 1:
        step = max(step // block_samples, 1) * block_samples  # a block is never read twice
    if 8 * n_channels * n_samples <= given.held_bytes:
        matrix = np.empty((n_channels, n_samples))
        for start in range(0, n_samples, step):
            matrix[:, start : start + step] = source.read(start, min(start + step, n_samples))
        return RowSamples(matrix, matrix.dtype)
    folder.mkdir()
    cals = source.cals.reshape(-1, 1)
    for kept in _KEPT if cals.shape == (n_channels, 1) and (cals != 0).all() else ():
        path = folder / f"samples-{np.dtype(kept).name}"
        matrix = mapped(path, np.dtype(kept), (n_channels, n_samples))
        if _kept(source, matrix, cals, step):
            return RowSamples(matrix, np.dtype(np.float64), _calibrated(cals))
        del matrix
        with suppress(OSError):
            path.unlink()
    matrix = mapped(folder / "samples-float64", np.dtype(np.float64), (n_channels, n_samples))
    for start in range(0, n_samples, step):
        matrix[:, start : start + step] = source.read(start, min(start + step, n_samples))
    return RowSamples(matrix, matrix.dtype)


def _kept(source: Windows, matrix: NDArray[Any], cals: NDArray[np.float64], step: int) -> bool:
    """Whether every window could be kept in the matrix's type; the first that cannot ends it."""
    n_samples = matrix.shape[1]
    integer = matrix.dtype.kind == "i"
    for start in range(0, n_samples, step):
        values = source.read(start, min(start + step, n_samples))
        stored = values / cals
        if integer:
            np.rint(stored, out=stored)
        with np.errstate(invalid="ignore", over="ignore"):
            own = stored.astype(matrix.dtype)
        np.multiply(own, cals, out=stored)
        if not np.array_equal(stored.view(np.int64), values.view(np.int64)):
            return False
        matrix[:, start : start + own.shape[1]] = own
    return True


def _calibrated(cals: NDArray[np.float64]) -> Callable[[NDArray[Any], int], NDArray[np.float64]]:
    def physical(row: NDArray[Any], position: int) -> NDArray[np.float64]:
        values: NDArray[np.float64] = np.multiply(row, cals[position, 0], dtype=np.float64)
        return values

    return physical
