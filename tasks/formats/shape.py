"""The size of a recording for the memory formulas, with cautious guesses where its header is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.formats.memory import Shape

if TYPE_CHECKING:
    from tasks.formats.protocol import Header

__all__ = ["shape_of"]

_ASSUMED_CHANNELS = 64
_ASSUMED_RATE_HZ = 1000.0


def shape_of(header: Header, size_bytes: int, served_rate_hz: float | None, *, file_sample_bytes: float) -> Shape:
    """Channels, samples and rates of a recording.

    Where the header names no number of samples it is what ``size_bytes`` can hold at ``file_sample_bytes`` per
    sample, so an unknown recording is never charged nothing.
    """
    n_channels = header.n_channels or _ASSUMED_CHANNELS
    rate_hz = header.rate_hz or _ASSUMED_RATE_HZ
    n_samples = header.n_samples
    if n_samples is None:
        n_samples = int(size_bytes / (n_channels * file_sample_bytes)) + 1
    return Shape(n_channels, n_samples, rate_hz, rate_hz if served_rate_hz is None else served_rate_hz)
