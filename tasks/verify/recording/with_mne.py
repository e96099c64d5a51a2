"""FIF, CTF, KIT, 4D/BTi and MEF3 by MNE-Python, window by window."""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tasks.verify.recording.protocol import SourceChannel
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MneReading"]

_UNITS = {107: "V", 112: "T", 201: "T/m"}
_ONE_AT_A_TIME = threading.RLock()
"""Python's warning filters belong to the process, so two readings must not change them at once."""


class MneReading:
    """A recording of ``format_name``. ``work`` is an empty folder for the names that MNE insists on."""

    def __init__(self, path: Path, format_name: str, work: Path) -> None:
        with _quiet():
            self._raw = _opened(path, format_name, work)
        rate_hz, n_samples = float(self._raw.info["sfreq"]), int(self._raw.n_times)
        self.channels: Sequence[SourceChannel] = [
            SourceChannel(name, rate_hz, n_samples, _UNITS.get(int(channel["unit"]), ""))
            for name, channel in zip(self._raw.ch_names, self._raw.info["chs"], strict=True)
        ]

    def read(self, rows: Sequence[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples in SI units; see ``Reading.read``."""
        with _quiet():
            taken: NDArray[np.float64] = self._raw.get_data(picks=list(rows), start=start, stop=stop)
        return taken

    def close(self) -> None:
        """Let the file go."""
        with _quiet():
            self._raw.close()


@contextmanager
def _quiet() -> Iterator[None]:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _opened(path: Path, format_name: str, work: Path) -> Any:
    import mne

    quiet: dict[str, Any] = {"preload": False, "verbose": "ERROR"}
    match format_name:
        case "fif":
            return mne.io.read_raw_fif(path, allow_maxshield="yes", **quiet)
        case "ctf":
            return mne.io.read_raw_ctf(_ctf(path, work), **quiet)
        case "kit":
            known = path.suffix.lower() in {".con", ".sqd"}
            return mne.io.read_raw_kit(path if known else _named(work, f"{path.stem}.con", path), **quiet)
        case "bti":
            names = sorted(one.name for one in path.glob("c,rf*"))
            pdf = path / ("c,rfDC" if "c,rfDC" in names else names[0])
            shape = "hs_file" if (path / "hs_file").exists() else None
            return mne.io.read_raw_bti(pdf, config_fname=path / "config", head_shape_fname=shape, **quiet)
        case "mef3":
            return mne.io.read_raw(_named(work, f"{path.stem}.mefd", path), **quiet)
    raise Unverifiable(f"the sweep has no reader for the format {format_name}")


def _ctf(path: Path, work: Path) -> Path:
    """The folder, or links to its files by the names that the folder's own demands."""
    (res4,) = [one for one in path.glob("*.res4") if not one.name.startswith(".")][:1] or [path / f"{path.stem}.res4"]
    if res4.stem == path.stem and path.suffix == ".ds":
        return path
    folder = work / f"{path.stem}.ds"
    folder.mkdir()
    for one in path.iterdir():
        own = one.name.startswith(f"{res4.stem}.")
        _named(folder, path.stem + one.name.removeprefix(res4.stem) if own else one.name, one)
    return folder


def _named(folder: Path, name: str, target: Path) -> Path:
    link = folder / name
    link.symlink_to(target.absolute(), target_is_directory=target.is_dir())
    return link
