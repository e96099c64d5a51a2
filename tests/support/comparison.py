"""Everything that a dataset serves beside what its sources say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
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
    """One for each channel group of each store of a dataset."""
    found = []
    for entry in served.index["stores"]:
        cap_hz = CAPS_HZ[entry["modalities"][0]]
        for group in entry["groups"]:
            signal = opened(served.base / entry["zarr"], group["name"])
            source = _read(dataset / entry["path"], group["source_rate_hz"])
            assert group["n_samples"] == signal.physical.shape[1]
            assert group["duration_s"] == pytest.approx(source.data.shape[1] / source.rate_hz, abs=1 / group["rate"])
            name = f"{entry['path']} {group['name']}"
            found.append(Comparison(name, signal, expected(source, signal, cap_hz)))
    return found


def _read(path: Path, rate_hz: float) -> SourceSignal:
    return read_edf(path, rate_hz) if path.suffix in {".edf", ".bdf"} else read_mne(path)
