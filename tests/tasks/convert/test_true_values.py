"""Rates, impulses and units that can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conversion import Bench, recording_at, with_sidecars
from open_store import served
from small_files import brainvision, edf_bytes, fif


def with_impulses(rate_hz: float, n_samples: int, onsets_s: tuple[float, ...]) -> np.ndarray:
    data = np.random.default_rng(0).integers(-50, 50, size=(1, n_samples)).astype(np.int16)
    for onset_s in onsets_s:
        data[0, round(onset_s * rate_hz)] = 30_000
    return data


@pytest.mark.parametrize(
    ("native", "modality", "rate"), [(1000, "eeg", 250), (512, "eeg", 250), (2048, "ieeg", 1000), (600, "emg", 600)]
)
def test_an_impulse_stays_at_its_time(tmp_path: Path, native: int, modality: str, rate: int) -> None:
    onsets_s = (1.0, 2.5, 7.5)  # each a whole sample of both
    data = with_impulses(native, 10 * native, onsets_s)
    brainvision(tmp_path / f"source/sub-01/{modality}", f"sub-01_{modality}", data * 0.1, native)
    bench = Bench(tmp_path)
    bench.convert(recording_at(f"sub-01/{modality}/sub-01_{modality}.vhdr", "brainvision", modality))
    (signal,) = served(bench.store, f"{modality}_{rate}hz").physical
    peaks = [int(at) for at in np.argsort(signal)[-3:]]
    assert sorted(peaks) == [round(onset_s * rate) for onset_s in onsets_s]


UNITS = [
    # declared, what 1.5 uV is in it, whether the samples were converted
    ("V", 1.5e-6, "V"),
    ("mV", 1.5e-3, "mV"),
    ("uV", 1.5, "uV"),
    ("\N{MICRO SIGN}V", 1.5, "\N{MICRO SIGN}V"),
    ("\N{GREEK SMALL LETTER MU}V", 1.5, "\N{GREEK SMALL LETTER MU}V"),
    ("nV", 1500.0, "nV"),
    ("n/a", 1.5, "uV"),
    ("", 1.5, "uV"),
    ("T", 1.5, "uV"),
    ("furlong", 1.5, "uV"),
]


def test_every_unit_is_what_its_values_are_in(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    labels = [f"c{i}" for i in range(len(UNITS))]
    data = np.tile(np.r_[np.zeros(200), np.full(200, 15)], (len(UNITS), 1))  # a tenth of a uV each
    bench.put("sub-01/eeg/sub-01_eeg.edf", edf_bytes(labels, data=data))
    rows = "".join(f"{label}\tEEG\t{declared}\n" for label, (declared, _, _) in zip(labels, UNITS, strict=True))
    bench.put("channels.tsv", "name\ttype\tunits\n" + rows)
    bench.convert(with_sidecars(recording_at("sub-01/eeg/sub-01_eeg.edf", "edf", "eeg"), channels="channels.tsv"))
    signal = served(bench.store, "eeg_100hz")
    assert signal.units == tuple(unit for _, _, unit in UNITS)
    steps = signal.physical[:, 300] - signal.physical[:, 100]
    np.testing.assert_allclose(steps, [value for _, value, _ in UNITS], rtol=1e-3)


@pytest.mark.parametrize(("declared", "factor"), [("T", 1.0), ("fT", 1e15), ("pT", 1e12), ("n/a", 1.0)])
def test_a_field_is_in_the_unit_that_is_declared(tmp_path: Path, declared: str, factor: float) -> None:
    bench = Bench(tmp_path)
    data = np.tile(np.r_[np.zeros(500), np.full(500, 2e-12)], (3, 1))
    fif(bench.source / "sub-01/meg/sub-01_meg.fif", data, 250.0)
    bench.put("channels.tsv", "name\ttype\tunits\n" + "".join(f"MEG{i:04d}\tMEGMAG\t{declared}\n" for i in range(3)))
    bench.convert(with_sidecars(recording_at("sub-01/meg/sub-01_meg.fif", "fif", "meg"), channels="channels.tsv"))
    signal = served(bench.store, "meg_250hz")
    assert set(signal.units) == {"T" if declared == "n/a" else declared}
    np.testing.assert_allclose(signal.physical[:, 750] - signal.physical[:, 250], 2e-12 * factor, rtol=1e-3)
