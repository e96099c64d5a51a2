"""From a source's samples to those that are served, one channel at a time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

__all__ = ["resample", "served_length"]


def served_length(n_samples: int, ratio: Fraction) -> int:
    """Samples that ``n_samples`` of the source become, rounded as biosigIO does."""
    return round(n_samples * ratio.numerator / ratio.denominator)


def resample(samples: Samples, ratio: Fraction, *, discrete: bool) -> Samples:
    """``samples`` (1-D) at ``ratio`` times their rate.

    A continuous channel goes through ``scipy.signal.resample_poly``: zero phase, so that sample k of the result lies at
    the time of sample k / ratio of the source, with its default Kaiser window. A discrete one (codes, clocks) is
    sampled at the nearest sample, so that no code is invented between two others. Cut or edge-padded to
    ``served_length``.
    """
    import numpy as np
    from scipy.signal import resample_poly

    if ratio == 1:
        return samples
    length = served_length(len(samples), ratio)
    if discrete:
        nearest = np.round(np.arange(length) * (ratio.denominator / ratio.numerator)).astype(np.int64)
        taken: Samples = samples[np.minimum(nearest, len(samples) - 1)]
        return taken
    window = _window(max(ratio.numerator, ratio.denominator))
    out: Samples = resample_poly(samples, ratio.numerator, ratio.denominator, window=window)[:length]
    return np.pad(out, (0, length - len(out)), mode="edge") if len(out) < length else out


@lru_cache(maxsize=4)
def _window(most: int) -> Any:
    """The filter that ``resample_poly`` designs for itself in every call: half a second for a ratio of large terms."""
    from scipy.signal import firwin

    return firwin(20 * most + 1, 1.0 / most, window=("kaiser", 5.0))
