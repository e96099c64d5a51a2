"""The size of a recording for the memory formulas, with cautious guesses where its header is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.formats.memory import Shape

if TYPE_CHECKING:
    from tasks.formats.protocol import Header

__all__ = ["group_shapes", "shape_of"]

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


def group_shapes(
    header: Header, size_bytes: int, served_rate_hz: float | None, *, file_sample_bytes: float
) -> tuple[Shape, ...]:
    """The size of each group of a recording; groups are converted one after another, each by itself.

    One shape, as ``shape_of`` has it, unless the header tells channels of several rates.
    """
    groups = header.native_groups()
    if len(groups) < 2 or any(group.n_samples is None for group in groups):
        return (shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=file_sample_bytes),)
    return tuple(
        Shape(
            len(group.rows),
            group.n_samples or 0,
            group.rate_hz,
            group.rate_hz if served_rate_hz is None else min(group.rate_hz, served_rate_hz),
        )
        for group in groups
    )
