"""The samples of a continuous VneuroTK file, by rows of whole chunks: a column alone would unpack the whole file."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contract.errors import RecordingFailed
from tasks.formats.windows import WindowChannel
from tasks.vneurotk.description import Description, describe
from tasks.vneurotk.new_file import FileIdentity
from tasks.vneurotk.opening import dataset, opened, understood

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["VneurotkReader", "band_rows", "channels_of"]

_NO_MEMORY: Final = "memory allocation failed"
"""What HDF5 says when there is none for a chunk, whose size the header has told."""
_BAND_BYTES: Final = 8 << 20
"""Of rows in double precision that are read at once, where chunks are smaller."""


def band_rows(found: Description) -> int:
    """Rows that are read at once: as many whole chunks as fit 8 MiB of double precision, at least one."""
    rows = max(1, found.chunk_rows)
    return rows * max(1, _BAND_BYTES // (8 * found.n_channels * rows))


def channels_of(found: Description) -> list[WindowChannel]:
    """The channels as the file describes them; numbered from 1 where it names none."""
    return [
        WindowChannel(
            label=f"Channel{row + 1}" if found.names is None else found.names[row],
            channel_type=None if found.types is None else found.types[row] or None,
            unit=None if found.units is None else found.units[row].strip() or None,
        )
        for row in range(found.n_channels)
    ]


class VneurotkReader:
    """An open recording; holds one band of rows at a time, in the file's own type.

    Raises
    ------
    RecordingFailed
        As ``describe`` does, and ``corrupt_or_truncated`` from ``read`` where the samples cannot be unpacked.
    NotNow
        From ``read``: the file was replaced since it was opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = contextlib.ExitStack()
        try:
            self._identity = FileIdentity.of(path)
            file = self._held.enter_context(opened(path))
            found = describe(file, path.name)
            self._neuro = dataset(file, "neuro")
        except BaseException:
            self._held.close()
            raise
        self.rate_hz = found.rate_hz
        self.n_samples = found.n_samples
        self.channels: Sequence[WindowChannel] = channels_of(found)
        self._rows = band_rows(found)
        self._band: NDArray[Any] = np.empty((0, found.n_channels), found.dtype)
        self._start = 0

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Samples ``start`` to ``stop`` of all channels, (channels x samples)."""
        stop = min(stop, self.n_samples)
        out = np.empty((len(self.channels), max(0, stop - start)))
        at = start
        while at < stop:
            first = at // self._rows * self._rows
            if first != self._start or not len(self._band):
                self._band, self._start = self._unpacked(first), first
            until = min(stop, first + len(self._band))
            out[:, at - start : until - start] = self._band[at - first : until - first].T
            at = until
        return out

    def _unpacked(self, first: int) -> NDArray[Any]:
        self._identity.require()
        self._band = self._band[:0]  # one band at a time in memory
        try:
            with understood(self._path.name):
                found: NDArray[Any] = self._neuro[first : first + self._rows]
        except RecordingFailed as failed:
            if _NO_MEMORY in str(failed.detail):
                raise MemoryError(failed.detail) from failed
            raise
        self._identity.require()
        return found

    def close(self) -> None:
        """Let the file go."""
        self._held.close()
