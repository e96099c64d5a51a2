"""What a served signal must be, derived from the source without any code that wrote the store.

Imports numpy, scipy, mne and pyedflib only.
"""

from __future__ import annotations

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


def read_edf(path: Path) -> SourceSignal:
    """An EDF or BDF of one rate, by pyedflib."""
    import pyedflib

    with pyedflib.EdfReader(str(path)) as reader:
        rates = {float(rate) for rate in reader.getSampleFrequencies()}
        (rate,) = rates
        count = range(reader.signals_in_file)
        data = np.stack([reader.readSignal(i) for i in count])
        units = tuple(reader.getPhysicalDimension(i).strip() for i in count)
        return SourceSignal(tuple(label.strip() for label in reader.getSignalLabels()), rate, data, units)


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
    """The source at the served rate in the served units.

    Continuous channels: ``scipy.signal.resample_poly`` by the ratio of the whole rates (zero phase, its default Kaiser
    window), cut or edge-padded to ``round(samples x ratio)``. Discrete ones: the nearest sample.
    """
    whole = round(source.rate_hz)
    target = min(whole, round(cap_hz))
    length = round(source.data.shape[1] * target / whole)
    rows = []
    units = source.units or ("",) * len(source.data)
    for row, own, unit, kind in zip(source.data, units, served.units, served.types, strict=True):
        # between two units that are no known ones the store must not have converted anything
        factor = _FROM_SI[unit] / _FROM_SI[own] if own in _FROM_SI and unit in _FROM_SI else 1.0
        rows.append(_resampled(row * factor, whole, target, length, discrete=kind in _DISCRETE))
    return np.stack(rows)


def _resampled(row: np.ndarray, whole: int, target: int, length: int, *, discrete: bool) -> np.ndarray:
    if target == whole:
        return row
    if discrete:
        nearest = np.round(np.arange(length) * whole / target).astype(int)
        return row[np.minimum(nearest, len(row) - 1)]
    ratio = Fraction(target, whole)
    out = resample_poly(row, ratio.numerator, ratio.denominator)[:length]
    return np.pad(out, (0, length - len(out)), mode="edge")


def disagreements(served: ServedSignal, wanted: np.ndarray) -> list[str]:
    """Labels of the channels that are off by more than one quantisation step anywhere; a wrong shape is every channel.

    A streaming converter passes samples through single precision, so half a unit in the last place of the largest value
    is allowed beside the step: it matters only where a large constant dwarfs a tiny signal (a DC input of one file
    moves by one of its recorder's steps around 940,000 uV).
    """
    if served.physical.shape != wanted.shape:
        return list(served.labels)
    off = np.abs(served.physical - wanted).max(axis=1)
    allowed = served.scale + np.abs(wanted).max(axis=1) * 2.0**-24
    return [label for label, worst, most in zip(served.labels, off, allowed, strict=True) if worst > most]
