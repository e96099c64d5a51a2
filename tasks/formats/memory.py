"""What a conversion needs above the memory of a fresh child: formulas fitted to measurements, in bytes.

Notation: C channels, N source samples per channel, M served samples, W samples of one read window, S samples of one
shard. The constants are fitted by ``benchmarks/projection.py`` to the peak above a child's birth: C = 2..256, 4 s to 2 hours, 125 Hz to
30 kHz, with and without resampling; measured over formula was 0.42 to 0.97 (streamed) and 0.4 to 0.9 (in memory).
"""

from __future__ import annotations

from dataclasses import dataclass

from contract.layout import SHARD_SECONDS

__all__ = [
    "FLOOR_BYTES",
    "READ_CHUNK_SECONDS",
    "SMALLEST_BYTES",
    "Shape",
    "in_memory_bytes",
    "streamed_bytes",
    "streamed_scratch_bytes",
]

READ_CHUNK_SECONDS = 8.0
"""Window of the streaming reader: byte-identical output to biosigIO's 30 s, 18 % less CPU and 50 MB less memory at 128 channels."""

FLOOR_BYTES = 256 * 1024**2
"""Charged at least for a recording whose header is not known, so that unknown is never nothing."""

SMALLEST_BYTES = 12 * 1024**2
"""Least that is ever promised, whatever was learnt: a child that imports one more library must not die of it."""

_FIXED_BYTES = 48 * 1024**2
"""Codecs, buffers and one-off imports in memory, where pages of libraries that the child is the first to touch count: 19 MiB were
measured for the smallest .fdt, 36 MiB for the smallest MATLAB 7.3."""

_STREAMED_FIXED_BYTES = 12 * 1024**2
"""The same streamed, where mapped files do not count: 6.5 to 9.5 MiB were measured for 4 channels x 10 s, and a child that has
converted before keeps up to 2 MiB more of that."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of one recording: channels, source samples per channel, source rate and served rate in Hz."""

    n_channels: int
    n_samples: int
    rate_hz: float
    served_rate_hz: float

    @property
    def served_samples(self) -> float:
        """Samples per channel after resampling."""
        return self.n_samples * self.served_rate_hz / self.rate_hz if self.rate_hz > 0 else float(self.n_samples)


def in_memory_bytes(shape: Shape, *, bytes_per_value: float, bytes_per_served_value: float = 0.0) -> int:
    """Peak of the in-memory route: ``bytes_per_value`` x C x N + ``bytes_per_served_value`` x C x M + fixed."""
    source = bytes_per_value * shape.n_channels * shape.n_samples
    served = bytes_per_served_value * shape.n_channels * shape.served_samples
    return int(_FIXED_BYTES + 1.05 * (source + served))


def streamed_bytes(shape: Shape, *, block_samples: int = 0) -> int:
    """Peak anonymous memory of the streamed route: 15.5 C W + 80 C V + 4 C S + 13 N + 36 M + fixed.

    W is a window of source samples, V the same window once served. The 13 N + 36 M is one whole channel in double precision
    beside its resampled copy and what is derived of that: few, long, fast channels are bound by it.
    """
    window = max(READ_CHUNK_SECONDS * shape.rate_hz, block_samples)
    window = min(window, shape.n_samples)
    served_window = window * shape.served_rate_hz / shape.rate_hz if shape.rate_hz > 0 else window
    shard = min(shape.served_samples, SHARD_SECONDS * shape.served_rate_hz)
    of_all_channels = shape.n_channels * (15.5 * window + 80 * served_window + 4 * shard)
    return int(_STREAMED_FIXED_BYTES + of_all_channels + 13 * shape.n_samples + 36 * shape.served_samples)


def streamed_scratch_bytes(shape: Shape) -> int:
    """Disk of the streamed route beside the store itself: 4 C N + (10/3) C M; exact to 0.3 %.

    It must be free before the conversion starts: the scratch is sparse mapped files, so a full disk is a SIGBUS.
    """
    return int(4 * shape.n_channels * shape.n_samples + 10 / 3 * shape.n_channels * shape.served_samples) + 1
