"""Samples on their way into a file: a nameless file beside it, so that memory does not grow with what is exported."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

__all__ = ["Spool"]

_ITEM_BYTES = 4


class Spool:
    """Rows of float32, one value for each channel, written anywhere and read back in order. Gone when it is closed.

    Parameters
    ----------
    folder
        Where the file that they are meant for will stand: what does not fit there is found out at once.

    Raises
    ------
    OSError
        There is no such folder, or no room for the rows.
    """

    def __init__(self, folder: Path, *, n_rows: int, n_channels: int) -> None:
        self.n_channels = n_channels
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by the context that this is
        try:
            if n_rows * n_channels:
                os.posix_fallocate(self._file.fileno(), 0, n_rows * n_channels * _ITEM_BYTES)
        except OSError:
            self._file.close()
            raise

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, row: int, values: npt.NDArray[np.float64]) -> None:
        """Put rows, (rows, channels), at ``row``."""
        data = np.ascontiguousarray(values, dtype="<f4").data.cast("B")
        at = row * self.n_channels * _ITEM_BYTES
        while data:
            written = os.pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written

    def read(self, row: int, n_rows: int) -> npt.NDArray[np.float32]:
        """Rows from ``row``, (rows, channels)."""
        values = np.empty((n_rows, self.n_channels), dtype="<f4")
        data = values.data.cast("B")
        at = row * self.n_channels * _ITEM_BYTES
        while data:
            part = os.pread(self._file.fileno(), len(data), at)
            if not part:
                raise OSError("samples that were put aside are gone")
            data[: len(part)] = part
            data, at = data[len(part) :], at + len(part)
        return values
