"""BrainVision: the header's sections, and the sample file mapped as it lies there (Brain Products, core data format 1.0)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.verify.recording.protocol import SourceChannel
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["BrainVisionReading"]

_TYPES = {"INT_16": "i2", "UINT_16": "u2", "INT_32": "i4", "IEEE_FLOAT_32": "f4", "IEEE_FLOAT_64": "f8"}
_ENDINGS = (".eeg", ".dat", ".EEG", ".DAT")


class BrainVisionReading:
    """A .vhdr with binary samples."""

    def __init__(self, header: Path) -> None:
        sections = _sections(header)
        common, binary = sections.get("common infos", {}), sections.get("binary infos", {})
        kind = binary.get("binaryformat", "").upper()
        if common.get("dataformat", "BINARY").upper() != "BINARY" or kind not in _TYPES:
            raise Unverifiable("its samples are text, or of a type that is read by one library only")
        count = int(common["numberofchannels"])
        order = ">" if binary.get("usebigendianorder", "").upper() == "YES" else "<"
        stored: Any = np.memmap(_samples(header, common.get("datafile", "")), np.dtype(order + _TYPES[kind]), "r")
        n_samples = len(stored) // count
        stored = stored[: n_samples * count]
        vectorized = common.get("dataorientation", "").upper() == "VECTORIZED"
        self._stored = stored.reshape(count, n_samples) if vectorized else stored.reshape(n_samples, count).T
        rate_hz = 1e6 / float(common["samplinginterval"])
        told = [_channel(sections.get("channel infos", {}).get(f"ch{i + 1}", "")) for i in range(count)]
        self._resolution = np.array([resolution for _, resolution, _ in told])
        self.channels: Sequence[SourceChannel] = [
            SourceChannel(label, rate_hz, n_samples, unit, bool(label)) for label, _, unit in told
        ]

    def read(self, rows: Sequence[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples in the units of the header; see ``Reading.read``."""
        taken: NDArray[np.float64] = self._stored[:, start:stop][list(rows)].astype(np.float64)
        taken *= self._resolution[list(rows), None]
        return taken

    def close(self) -> None:
        """Let the file go."""
        del self._stored


def _channel(line: str) -> tuple[str, float, str]:
    """Label, resolution and unit; a comma of a label is written as a backslash and a one, and a missing unit is microvolts."""
    parts = [part.strip().replace("\\1", ",") for part in line.split(",")] + [""] * 4
    return parts[0], float(parts[2] or 1.0), parts[3] or "µV"


def _samples(header: Path, named: str) -> Path:
    named = named.replace("$b", header.stem)
    names = [named] if named and "/" not in named and "\\" not in named else []
    for name in (*names, *(header.stem + ending for ending in _ENDINGS)):
        if header.with_name(name).exists():
            return header.with_name(name)
    raise Unverifiable("its samples are not there")


def _sections(path: Path) -> dict[str, dict[str, str]]:
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in (line.strip() for line in text.splitlines()):
        if line.lower() == "[comment]":
            break
        if line.startswith("[") and line.endswith("]"):
            current = found.setdefault(line[1:-1].lower(), {})
        elif "=" in line and not line.startswith(";"):
            key, value = line.split("=", 1)
            current.setdefault(key.strip().lower(), value.strip())
    return found
