"""The few fields of an EEGLAB struct that say its size, from either kind of MATLAB file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.formats.content import unreadable
from tasks.formats.matlab import read_fields

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SetFields", "read_set_fields"]

_WANTED = ("nbchan", "pnts", "trials", "srate", "data", "datfile")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_MAX_CHANNELS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFields:
    """Size of an EEGLAB recording.

    ``matrix`` is the shape of embedded samples (rows are channels), ``external`` the file name that holds them
    instead; ``sample_bytes`` is 8 for double precision.
    """

    n_channels: int | None
    n_samples: int | None
    trials: int
    rate_hz: float | None
    matrix: tuple[int, ...] | None
    external: str | None
    sample_bytes: int = 4


def read_set_fields(path: Path) -> SetFields:
    """Size fields of ``path``.

    Raises
    ------
    ValueError, EOFError
        It is no MATLAB file, or ends inside the fields.
    RecordingFailed
        ``file_read_error``: a sound MATLAB file of something else.
    """
    with path.open("rb") as file:
        start = file.read(1024)
    if start[512:520] == _HDF5_MAGIC or start[:8] == _HDF5_MAGIC:
        return _from_hdf5(path)
    arrays = read_fields(path, struct_name="EEG", wanted=_WANTED)
    data = arrays.get("data")
    if not arrays:
        raise unreadable(f"{path.name} holds no EEGLAB dataset")
    return _fields(
        {name: array.scalar() for name, array in arrays.items()},
        matrix=None if data is None or data.text is not None else data.shape,
        external=None if data is None else data.text,
        sample_bytes=8 if data is not None and data.is_double else 4,
    )


def _from_hdf5(path: Path) -> SetFields:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            group: Any = file["EEG"] if isinstance(file.get("EEG"), h5py.Group) else file
            if not all(isinstance(group.get(name), h5py.Dataset) for name in ("nbchan", "srate", "pnts", "data")):
                raise unreadable(f"{path.name} holds no EEGLAB dataset")
            data = group["data"]
            values = {name: _number(group.get(name)) for name in ("nbchan", "pnts", "trials", "srate")}
            if data.dtype.kind == "u" and data.dtype.itemsize == 2 and data.size <= 4096:
                name = "".join(chr(int(code)) for code in np.asarray(data[()]).ravel())
                return _fields(values, matrix=None, external=name, sample_bytes=4)
            if data.dtype.kind not in "fiu":
                raise ValueError("its samples are no numbers")
            # HDF5 has MATLAB's axes reversed: (samples, channels), epochs first.
            shape = tuple(int(extent) for extent in reversed(data.shape))
            return _fields(values, matrix=shape, external=None, sample_bytes=int(data.dtype.itemsize))
    except (RuntimeError, AttributeError) as error:
        raise ValueError(f"its HDF5 structure is broken: {error}") from error


def _number(stored: Any) -> float | None:
    """The first number of a small dataset; None for anything else."""
    import h5py

    if not isinstance(stored, h5py.Dataset) or stored.dtype.kind not in "fiu" or not 0 < stored.size <= 16:
        return None
    # An empty MATLAB value is stored as its shape with the attribute MATLAB_empty.
    return None if stored.attrs.get("MATLAB_empty") else float(np.asarray(stored[()]).ravel()[0])


def _fields(
    values: Mapping[str, float | None], *, matrix: tuple[int, ...] | None, external: str | None, sample_bytes: int
) -> SetFields:
    trials = values.get("trials")
    return SetFields(
        n_channels=_count(values.get("nbchan")),
        n_samples=_count(values.get("pnts")) or (matrix[1] if matrix is not None and len(matrix) > 1 else None),
        trials=1 if trials is None or not np.isfinite(trials) else int(trials),
        rate_hz=values.get("srate"),
        matrix=matrix,
        external=external,
        sample_bytes=sample_bytes,
    )


def _count(value: float | None) -> int | None:
    """A whole number in a believable range, else None."""
    return (
        int(value) if value is not None and np.isfinite(value) and value == int(value) and 0 <= value < 2**53 else None
    )
