"""Arrays in files of the scratch folder: no anonymous memory, and the kernel may write them out."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["mapped"]


def mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """A new array in the file ``path``, whose room on the disk is taken at once.

    A page of a sparse file that the disk has no room for is a SIGBUS, which ends the process; here it is ENOSPC.

    Raises
    ------
    OSError
        The disk has no room for it.
    """
    size = math.prod(shape) * dtype.itemsize
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    return np.memmap(path, dtype, "r+", shape=shape)
