"""Everything that a dataset serves beside what its sources say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from open_store import served as opened
from reference_signal import ServedSignal, SourceSignal, expected, read_edf, read_mne
from served_dataset import Served

CAPS_HZ = {"eeg": 250.0, "meg": 250.0, "ieeg": 1000.0, "emg": 1000.0}

SPOILED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "shifted": lambda signal: np.roll(signal, 1, axis=1),
    "scaled": lambda signal: signal * 2,
    "swapped": lambda signal: signal[::-1],
}
"""Ways in which a served signal can be wrong, each of which a comparison must notice."""


@dataclass(frozen=True)
class Comparison:
    path: str
    served: ServedSignal
    wanted: np.ndarray


def comparisons(served: Served, dataset: Path) -> list[Comparison]:
    """One for each store of a dataset whose stores have one channel group."""
    found = []
    for entry in served.index["stores"]:
        (group,) = entry["groups"]
        source = _read(dataset / entry["path"])
        signal = opened(served.base / entry["zarr"], group["name"])
        assert group["n_samples"] == signal.physical.shape[1]
        found.append(Comparison(entry["path"], signal, expected(source, signal, CAPS_HZ[entry["modalities"][0]])))
    return found


def _read(path: Path) -> SourceSignal:
    return read_edf(path) if path.suffix in {".edf", ".bdf"} else read_mne(path)
