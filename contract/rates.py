"""Up to which rate a modality is served, and by which ratio of whole numbers it gets there."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RATE_CAPS_HZ", "resampling_ratio", "served_rate"]

RATE_CAPS_HZ: Mapping[str, float] = MappingProxyType({"EEG": 250.0, "MEG": 250.0, "IEEG": 1000.0, "EMG": 1000.0})
"""Caps by modality, as biosigIO spells them. iEEG is SEEG, ECoG and DBS alike; a modality without a cap is native."""

_LARGEST_TERM = 50_000
"""Bound of a ratio's terms: the filter has 20 taps for each, and 333.33 Hz needs 33,333."""
_SAME = Fraction(1, 10**6)
_EXACT = Fraction(1, 10**12)
_TEN_HOURS_S = 36_000.0
_HARMLESS_SAMPLES = 0.01


@lru_cache(maxsize=64)
def resampling_ratio(native_hz: float, modality: str | None) -> Fraction:
    """Served samples per sample of the source, at most 1; numerator and denominator are what a resampler is given.

    ``cap / native`` where its terms are at most 50,000, which holds for every whole rate up to 50 kHz and for every
    number of hundredths up to 500 Hz; else the nearest such ratio, a larger one only when it exceeds the cap by less
    than a millionth. 1 for a rate that does so itself: a resampler could not tell it from the cap.

    Raises
    ------
    ValueError
        ``native_hz`` is no finite number above zero.
    """
    native = _fraction(native_hz)
    cap = RATE_CAPS_HZ.get(modality.upper()) if modality else None
    if cap is None or native <= Fraction(cap) * (1 + _SAME):
        return Fraction(1)
    wanted = Fraction(cap) / native
    if wanted < Fraction(1, _LARGEST_TERM):
        return Fraction(1, math.ceil(1 / wanted))
    near = wanted.limit_denominator(_LARGEST_TERM)
    return near if near <= wanted * (1 + _SAME) else _next_below(near)


def served_rate(native_hz: float, modality: str | None) -> float:
    """The rate of level 0 in Hz: the native rate times ``resampling_ratio``, and so true to the last sample.

    It is the modality's cap, or the native rate where that is lower, but for native rates whose ratio to the cap has no
    terms below 50,000; of those, too, it is the cap where the difference is below a hundredth of a sample in ten hours.
    ``modality`` in any case; None and unknown modalities have no cap (store contract, "rate caps").
    """
    ratio = resampling_ratio(native_hz, modality) if 0 < native_hz < math.inf else 1
    if ratio == 1:
        return native_hz
    served_hz = float(_fraction(native_hz) * ratio)
    cap = RATE_CAPS_HZ[modality.upper()] if modality else served_hz
    return cap if abs(served_hz - cap) * _TEN_HOURS_S < _HARMLESS_SAMPLES else served_hz


def _fraction(rate_hz: float) -> Fraction:
    """The simple number that a rate stands for: 1000/3 for 333.333..., 33333/100 for 333.33."""
    if not 0 < rate_hz < math.inf:
        raise ValueError(f"a rate of {rate_hz} Hz is no rate")
    exact = Fraction(rate_hz)
    simple = exact.limit_denominator(1_000_000)
    return simple if abs(simple - exact) <= exact * _EXACT else exact


def _next_below(ratio: Fraction) -> Fraction:
    """The largest ratio below this one whose denominator is no larger than the bound (its neighbour in a Farey sequence)."""
    inverse = pow(ratio.numerator, -1, ratio.denominator) if ratio.denominator > 1 else 0
    denominator = inverse + ratio.denominator * ((_LARGEST_TERM - inverse) // ratio.denominator)
    return Fraction((ratio.numerator * denominator - 1) // ratio.denominator, denominator)
