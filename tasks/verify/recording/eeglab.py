"""EEGLAB .set files of both MATLAB generations, with their samples inside or in a .fdt beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.verify.recording.protocol import SourceChannel
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["EeglabReading"]

_HDF5 = b"\x89HDF\r\n\x1a\n"


class EeglabReading:
    """A continuous .set. Samples of a .fdt or of an HDF5 file are read by windows; others are held whole."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            start = file.read(1024)
        self._hdf5: Any = None
        is_hdf5 = _HDF5 in (start[:8], start[512:520])
        fields = self._from_hdf5(path) if is_hdf5 else _from_matlab(path)
        data: Any = fields["data"]
        if isinstance(data, str):
            count = int(fields["nbchan"])
            self._stored: Any = np.memmap(_beside(path, data), "<f4", "r").reshape(-1, count).T
        else:
            self._stored = data
        count, n_samples = self._stored.shape
        labels = list(fields.get("labels", ()))
        named = len(labels) == count
        self.channels: Sequence[SourceChannel] = [
            SourceChannel(
                labels[i] if named else "", float(fields["srate"]), n_samples, "uV", named and bool(labels[i])
            )
            for i in range(count)
        ]

    def _from_hdf5(self, path: Path) -> dict[str, Any]:
        import h5py

        self._hdf5 = file = h5py.File(path, "r")
        group = file["EEG"] if isinstance(file.get("EEG"), h5py.Group) else file
        fields: dict[str, Any] = {name: float(np.ravel(group[name][()])[0]) for name in ("nbchan", "srate")}
        data = group["data"]
        text = data.dtype.kind == "u" and data.dtype.itemsize == 2
        # HDF5 has MATLAB's axes reversed: (samples, channels)
        fields["data"] = "".join(map(chr, np.ravel(data[()]))) if text else _Transposed(data)
        places = group.get("chanlocs")
        if isinstance(places, h5py.Group) and "labels" in places:
            pointers = np.ravel(places["labels"][()])
            if pointers.dtype.kind == "O":
                fields["labels"] = ["".join(map(chr, np.ravel(file[one][()]))) for one in pointers]
        return fields

    def read(self, rows: Sequence[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples in microvolts; see ``Reading.read``."""
        taken: NDArray[np.float64] = np.asarray(self._stored[:, start:stop])[list(rows)].astype(np.float64)
        return taken

    def close(self) -> None:
        """Let the file go."""
        del self._stored
        if self._hdf5 is not None:
            self._hdf5.close()


class _Transposed:
    """A (samples, channels) dataset as (channels, samples), of which only what is asked for is read."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.shape = tuple(reversed(dataset.shape))

    def __getitem__(self, which: tuple[slice, slice]) -> Any:
        return self._dataset[which[1], :].T


def _from_matlab(path: Path) -> Mapping[str, Any]:
    from scipy.io import loadmat

    found = loadmat(path, squeeze_me=False, struct_as_record=True, chars_as_strings=True)
    whole = found["EEG"][0, 0] if "EEG" in found else found
    data = whole["data"]
    fields: dict[str, Any] = {name: float(np.ravel(whole[name])[0]) for name in ("nbchan", "srate")}
    fields["data"] = str(np.ravel(data)[0]) if data.dtype.kind == "U" else data
    names = whole.dtype.names if "EEG" in found else found
    if "chanlocs" in (names or ()) and whole["chanlocs"].dtype.names and "labels" in whole["chanlocs"].dtype.names:
        fields["labels"] = [_text(one) for one in np.ravel(whole["chanlocs"]["labels"])]
    return fields


def _text(value: Any) -> str:
    flat = np.ravel(value)
    return str(flat[0]).strip() if len(flat) else ""


def _beside(path: Path, named: str) -> Path:
    """The .fdt of the same stem, in any case, else the one that the header names."""
    own = path.with_suffix(".fdt").name
    beside = {one.name: one for one in path.parent.iterdir()}
    same = [one for name, one in beside.items() if name.lower() == own.lower()]
    found = beside.get(own) or (same[0] if same else None) or beside.get(named.replace("\\", "/").rsplit("/", 1)[-1])
    if found is None:
        raise Unverifiable("its samples are not there")
    return found
