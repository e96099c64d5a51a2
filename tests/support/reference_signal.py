"""What a served signal must be, derived from the source without any code that wrote the store.

Imports numpy, scipy, mne and pyedflib only.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

# Physical units per SI unit, "" being SI itself. Whatever is none of these was stored as the file has it.
_FROM_SI = {"": 1.0, "V": 1.0, "mV": 1e3, "uV": 1e6, "µV": 1e6, "nV": 1e9, "T": 1.0, "fT": 1e15, "pT": 1e12, "T/m": 1.0}
_DISCRETE = frozenset({"TRIG", "SYSCLOCK", "CTRL"})


@dataclass(frozen=True)
class SourceSignal:
    """The source: ``data`` (channels x samples, float64) in ``units``, one a channel; empty: SI, as MNE reads it."""

    labels: tuple[str, ...]
    rate_hz: float
    data: np.ndarray
    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedSignal:
    """What a store serves, as plain arrays: dequantised ``physical`` (channels x samples) and facts per channel."""

    labels: tuple[str, ...]
    units: tuple[str, ...]
    types: tuple[str, ...]
    scale: np.ndarray
    physical: np.ndarray
    rate_hz: float
    source_rate_hz: float


def read_edf(path: Path, rate_hz: float | None = None) -> SourceSignal:
    """The signals of one rate of an EDF or BDF, by pyedflib; without ``rate_hz`` the file must have only one."""
    import pyedflib

    with pyedflib.EdfReader(str(path)) as reader:
        rates = [float(rate) for rate in reader.getSampleFrequencies()]
        if rate_hz is None:
            (rate_hz,) = set(rates)
        count = [i for i, rate in enumerate(rates) if math.isclose(rate, rate_hz, rel_tol=1e-6)]
        data = np.stack([reader.readSignal(i) for i in count])
        units = tuple(reader.getPhysicalDimension(i).strip() for i in count)
        labels = reader.getSignalLabels()
        return SourceSignal(tuple(labels[i].strip() for i in count), rates[count[0]], data, units)


def read_mne(path: Path) -> SourceSignal:
    """Anything else, by MNE, in SI units."""
    import mne

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.is_dir() and (path / "config").exists():
            raw = mne.io.read_raw_bti(path / "c,rfDC", head_shape_fname="hs_file", preload=True, verbose="ERROR")
        else:
            raw = mne.io.read_raw(path, preload=True, verbose="ERROR")
        return SourceSignal(tuple(raw.ch_names), float(raw.info["sfreq"]), raw.get_data())


def expected(source: SourceSignal, served: ServedSignal, cap_hz: float) -> np.ndarray:
    """The source at the rate and in the units that the store declares, which must be those that it may declare.

    The rate is the source's, or the cap where that is lower: exactly, or within a hundred-thousandth where the two have
    no ratio of terms up to 50,000. Continuous channels: ``scipy.signal.resample_poly`` by the ratio of the declared
    rates (zero phase, its default Kaiser window), cut or edge-padded to ``round(samples x ratio)``. Discrete ones: the
    nearest sample.
    """
    assert math.isclose(served.source_rate_hz, source.rate_hz, rel_tol=1e-6)
    target = min(source.rate_hz, cap_hz)
    assert target * (1 - 2e-5) <= served.rate_hz <= target * (1 + 1e-6)
    ratio = Fraction(served.rate_hz / served.source_rate_hz).limit_denominator(50_000)
    assert abs(float(ratio) * served.source_rate_hz - served.rate_hz) * 36_000 < 1  # less than a sample in ten hours
    length = round(source.data.shape[1] * ratio)
    rows = []
    units = source.units or ("",) * len(source.data)
    for row, own, unit, kind in zip(source.data, units, served.units, served.types, strict=True):
        # between two units that are no known ones the store must not have converted anything
        factor = _FROM_SI[unit] / _FROM_SI[own] if own in _FROM_SI and unit in _FROM_SI else 1.0
        rows.append(_resampled(row * factor, ratio, length, discrete=kind in _DISCRETE))
    return np.stack(rows)


def _resampled(row: np.ndarray, ratio: Fraction, length: int, *, discrete: bool) -> np.ndarray:
    if ratio == 1:
        return row
    if discrete:
        nearest = np.round(np.arange(length) / float(ratio)).astype(int)
        return row[np.minimum(nearest, len(row) - 1)]
    out = resample_poly(row, ratio.numerator, ratio.denominator)[:length]
    return np.pad(out, (0, length - len(out)), mode="edge")


def disagreements(served: ServedSignal, wanted: np.ndarray) -> list[str]:
    """Labels of the channels that are off by more than one quantisation step anywhere; a wrong shape is every channel."""
    if served.physical.shape != wanted.shape:
        return list(served.labels)
    off = np.abs(served.physical - wanted).max(axis=1)
    # double precision can tell no more than this of a value that is itself a difference of large ones
    allowed = served.scale + np.abs(wanted).max(axis=1) * 2.0**-48
    return [label for label, worst, most in zip(served.labels, off, allowed, strict=True) if worst > most]
