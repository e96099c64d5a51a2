"""What biosigIO's EEGLAB importer is given of a .set: everything but the samples, which it finds mapped."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.seams import eeglab_reading
from tasks.formats.matlab_layout import plain_layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.formats.matlab_layout import Field

__all__ = ["set_in_place"]

_SAMPLES = "data"
_SMALL_BYTES = 64 * 1024
_READ = frozenset(
    [
        "setname",
        "filename",
        "filepath",
        "subject",
        "group",
        "condition",
        "session",
        "comments",
        "srate",
        "nbchan",
        "trials",
        "pnts",
        "xmin",
        "xmax",
        "chanlocs",
        "event",
    ]
)
"""What counts of what the importer looks at. Of the rest, a copy of the samples (``icaact``), their ``times`` and events can be as large as all else;
a store has the events of an events.tsv alone, and those in the file take a kilobyte for each field of each."""


@contextmanager
def set_in_place() -> Iterator[None]:
    """While this lasts, biosigIO's EEGLAB importer in this process holds no samples: those of a .fdt and of an uncompressed .set are mapped."""
    with eeglab_reading(loaded=_loaded, samples=lambda path, dtype: np.memmap(path, dtype, "r")):
        yield


def _loaded(path: str, **options: Any) -> Any:
    """The dataset as ``loadmat`` has it, its samples mapped where they stand in the file as a plain matrix."""
    from scipy.io import loadmat

    layout = plain_layout(Path(path), "EEG")
    if layout is None:
        return loadmat(path, **options)
    matrix = layout.matrix(_SAMPLES)

    def left_out(field: Field) -> bool:
        if field.name == _SAMPLES:
            return matrix is not None
        return field.end - field.start > _SMALL_BYTES and field.name not in _READ

    found = loadmat(io.BytesIO(layout.without(Path(path), left_out)), **options)
    if matrix is not None:
        samples = np.memmap(path, matrix.dtype, "r", matrix.offset, matrix.shape, "F")
        if layout.struct_at is None:
            found[_SAMPLES] = samples
        else:
            found["EEG"][_SAMPLES][0, 0] = samples
    return found
