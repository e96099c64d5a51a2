"""On which sample an event falls."""

from __future__ import annotations

import math

__all__ = ["sample_index"]

_INT64 = 2.0**63


def sample_index(onset_s: float | None, rate_hz: float | None) -> int | None:
    """The level-0 sample of an onset, ``floor(onset_s * rate_hz + 0.5)``; None when it has none.

    Ties go up, also below zero. The result is not clamped to the recording: an onset before its start or past its end
    is a property of the data. The product is taken in double precision, so that a reader who recomputes it from the
    published ``onset_s`` gets the same number.

    Parameters
    ----------
    onset_s
        Seconds from the start of the recording. None, NaN and infinities have no sample.
    rate_hz
        The channel group's served rate, not the rate of acquisition. A group without a usable rate has no samples.

    Notes
    -----
    The formula is the index contract's. A product that no int64 column can hold has no sample either.
    """
    if onset_s is None or rate_hz is None or not rate_hz > 0 or math.isinf(rate_hz):
        return None
    position = onset_s * rate_hz + 0.5
    if not -_INT64 <= position < _INT64:
        return None
    return math.floor(position)
