"""How far a served channel is from its samples before they became 16-bit integers, measured while they became so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ChannelLoss", "measure"]

_BLOCK = 1 << 18
_WINDOWS = 256
_WINDOW_SAMPLES = 256
_LEAST_SAMPLES = 8
_ROUNDING = 1e-12
"""Spread of a stretch, as a part of its largest value, that is only the rounding of double precision."""


@dataclass(frozen=True, slots=True)
class ChannelLoss:
    """Quantisation of one channel, in the channel's physical unit.

    Parameters
    ----------
    step
        Value of one digital step.
    max_error, rms_error
        Greatest and root-mean-square distance between a sample and what is served for it, over finite samples.
    noise
        Noise floor: the median, over up to 256 stretches of 256 samples that are not flat, of the standard deviation of
        second differences over the square root of 6; 0 when every stretch is flat.
    """

    step: float
    max_error: float
    rms_error: float
    noise: float

    @property
    def is_coarse(self) -> bool:
        """Whether one step is coarser than the noise, so that what is served has less detail than the source."""
        return 0 < self.noise < self.step and self.max_error > 0


def measure(samples: NDArray[np.float64], digital: NDArray[np.int16], scale: float, offset: float) -> ChannelLoss:
    """The loss of one channel; ``samples`` and ``digital`` are 1-D and equally long.

    Works in blocks, so that it needs no second copy of a channel.
    """
    import numpy as np

    worst, total, count = 0.0, 0.0, 0
    for start in range(0, len(samples), _BLOCK):
        block = samples[start : start + _BLOCK]
        off = np.abs(block - (digital[start : start + _BLOCK] * scale + offset))
        off = off[np.isfinite(off)]
        if len(off):
            worst = max(worst, float(off.max()))
            total += float(np.dot(off, off))
            count += len(off)
    rms = math.sqrt(total / count) if count else 0.0
    return ChannelLoss(step=scale, max_error=worst, rms_error=rms, noise=_noise(samples))


def _noise(samples: NDArray[np.float64]) -> float:
    """Second differences of white noise have six times its variance, and those of a slow signal almost none.

    Never less than the rounding noise of the samples' own resolution, which is their smallest difference: what a
    recorder of few bits never resolved cannot be lost.
    """
    import numpy as np

    found, resolution = [], math.inf
    for start in range(0, len(samples), max(len(samples) // _WINDOWS, _WINDOW_SAMPLES)):
        window = samples[start : start + _WINDOW_SAMPLES]
        spread = float(np.std(np.diff(window, 2))) if len(window) >= _LEAST_SAMPLES else 0.0
        if not math.isfinite(spread) or spread <= _ROUNDING * float(np.abs(window).max()):
            continue
        found.append(spread / math.sqrt(6.0))
        steps = np.abs(np.diff(window))
        resolution = min(resolution, float(steps[steps > 0].min()))
    return max(float(np.median(found)), resolution / math.sqrt(12.0)) if found else 0.0
