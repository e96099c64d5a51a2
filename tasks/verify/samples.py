"""Real samples: windows of level 0, dequantised, against the source resampled by the documented formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.rates import resampling_ratio
from contract.verification import Check
from tasks.verify.channels import DISCRETE
from tasks.verify.groups import decoded
from tasks.verify.report import NoVerdict, Unverifiable
from tasks.verify.units import factor_between

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tasks.verify.channels import Rows
    from tasks.verify.pyramid import Extremes
    from tasks.verify.recording.protocol import Reading
    from tasks.verify.report import Report
    from tasks.verify.served import ServedStore

__all__ = ["check_samples", "expected_window", "windows"]

_WINDOW_SAMPLES = 512
_WINDOWS = 8
_HALF_TAPS = 10
"""Of the filter of ``resample_poly``: ten samples of the slower rate to each side."""
_STEPS = 1.0 + 1e-6
_DOUBLE = 2.0**-46
"""What double precision can tell of a value that is itself a difference of large ones."""


def windows(n_samples: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Up to eight stretches of 512 samples: the first, the last, and others where ``rng`` says; a short recording whole."""
    if n_samples <= _WINDOW_SAMPLES * _WINDOWS:
        return [(0, n_samples)] if n_samples else []
    last = n_samples - _WINDOW_SAMPLES
    starts = {0, last, *(int(start) for start in rng.integers(1, last, size=_WINDOWS - 2))}
    return [(start, start + _WINDOW_SAMPLES) for start in sorted(starts)]


@dataclass(frozen=True, slots=True)
class _Channel:
    label: str
    scale: float
    offset: float
    factor: float
    discrete: bool
    flat: bool


def check_samples(
    served: ServedStore,
    one: Rows,
    reading: Reading,
    *,
    extremes: Extremes | None,
    rng: np.random.Generator,
    report: Report,
) -> None:
    """Compare every channel of a group in each window, within one quantisation step."""
    group = one.group
    ratio = resampling_ratio(reading.channels[one.source[0]].rate_hz, group.says.modality)
    channels = [
        _Channel(
            channel.label,
            channel.scale,
            channel.offset,
            _factor(reading.channels[row].unit, channel.unit),
            channel.channel_type in DISCRETE,
            extremes is not None and extremes.is_flat(channel.row_index) and channel.scale == 1.0,
        )
        for channel, row in zip(group.channels, one.source, strict=True)
    ]
    wrong: dict[str, float] = {}
    for start, stop in windows(group.says.n_samples, rng):
        codes = decoded(served, lambda start=start, stop=stop: np.asarray(group.level0[:, start:stop]))
        if isinstance(codes, Exception):
            report.fail(Check.DECODING, f"{group.name}: samples {start} to {stop} cannot be decoded")
            continue
        wanted = _wanted(reading, one.source, ratio, (start, stop), [channel.discrete for channel in channels])
        for channel, code, want in zip(channels, codes, wanted, strict=True):
            off = _worst(channel, code, want)
            report.checked += 1
            if off > 1.0:
                wrong[channel.label] = max(wrong.get(channel.label, 0.0), off)
    for label, off in wrong.items():
        report.fail(Check.SAMPLES, f"{label} of {group.name} is off by up to {off:.3g} of what may be")


def _factor(own: str, wanted: str) -> float:
    """From the recording's unit to the store's; between units that are none that are known nothing may be converted."""
    factor = factor_between(own, wanted)
    return 1.0 if factor is None else factor


def _worst(channel: _Channel, codes: NDArray[Any], wanted: NDArray[np.float64]) -> float:
    """The largest difference, as a part of what is allowed: one quantisation step, but none of a channel without steps."""
    physical = codes * channel.scale + channel.offset
    want = wanted * channel.factor
    want = np.where(np.isfinite(want), want, _clamped_zero(channel))  # a gap is served as zero, and said so
    allowed = (0.0 if channel.flat else abs(channel.scale) * _STEPS) + _DOUBLE * float(np.abs(want).max(initial=0.0))
    off = float(np.abs(physical - want).max(initial=0.0))
    return off / allowed if allowed else (0.0 if off == 0 else np.inf)


def _clamped_zero(channel: _Channel) -> float:
    """Zero, or the value of the nearest code where no code means zero."""
    low, high = sorted((-32768 * channel.scale + channel.offset, 32767 * channel.scale + channel.offset))
    return min(max(0.0, low), high)


def _wanted(
    reading: Reading, rows: Sequence[int], ratio: Fraction, window: tuple[int, int], discrete: Sequence[bool]
) -> NDArray[np.float64]:
    n_samples = reading.channels[rows[0]].n_samples
    try:
        return expected_window(lambda a, b: reading.read(rows, a, b), n_samples, ratio, window, discrete)
    except (OSError, MemoryError) as error:
        raise NoVerdict(f"the source could not be read: {type(error).__name__}") from error
    except (ValueError, RuntimeError, IndexError) as error:
        raise Unverifiable(f"the source cannot be read a second way: {type(error).__name__}") from error


def expected_window(
    read: Any, n_samples: int, ratio: Fraction, window: tuple[int, int], discrete: Sequence[bool]
) -> NDArray[np.float64]:
    """The served samples of a ``window`` (start, stop) of channels of ``n_samples``, as the documentation defines them (docs/fidelity.md).

    ``scipy.signal.resample_poly`` by ``ratio`` with its own window, zeros beyond both ends, or the nearest sample where
    ``discrete`` says so. Only what the filter reaches is read, by ``read(first, last)``. Past the end of what the source gives
    the last sample is repeated.
    """
    from scipy.signal import resample_poly

    start, stop = window
    up, down = ratio.numerator, ratio.denominator
    if ratio == 1:
        taken: NDArray[np.float64] = read(start, stop)
        return taken
    last_served = -(-n_samples * up // down)
    end = min(stop, last_served)
    reach = -(-_HALF_TAPS * max(up, down) // up) + 1
    # a segment must start where a served sample lies, else its samples lie between those that are wanted
    first = max(0, (start * down // up - reach) // down * down)
    last = min(n_samples, -(-end * down // up) + reach + 1)
    segment = read(first, last)
    shift = first * up // down
    out = np.empty((len(discrete), stop - start))
    for row, is_discrete in enumerate(discrete):
        if is_discrete:
            nearest = np.round(np.arange(start, stop) * (down / up)).astype(np.int64)
            out[row] = segment[row][np.minimum(nearest, n_samples - 1) - first]
            continue
        resampled = resample_poly(segment[row], up, down, window=_taps(max(up, down)))[start - shift : end - shift]
        out[row, : end - start] = resampled
        out[row, end - start :] = resampled[-1] if len(resampled) else 0.0
    return out


@lru_cache(maxsize=4)
def _taps(most: int) -> Any:
    """The filter that ``resample_poly`` designs when it is given no other: Kaiser, beta 5, 20 taps a phase."""
    from scipy.signal import firwin

    return firwin(2 * _HALF_TAPS * most + 1, 1.0 / most, window=("kaiser", 5.0))
