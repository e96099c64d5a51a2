"""What a conversion needs above the memory of a fresh child: formulas fitted to measurements, in bytes.

Notation: C channels, N source samples per channel, M served samples, S samples of one shard. The constants are fitted by ``benchmarks/projection.py`` to the peak above a child's birth: C = 2..256, 4 s to 2 hours, 125 Hz to
30 kHz, with and without resampling; measured over formula was 0.42 to 0.97 (streamed) and 0.4 to 0.9 (in memory).
"""

from __future__ import annotations

from dataclasses import dataclass

from contract.layout import SHARD_SECONDS

__all__ = [
    "BLOCK_BYTES",
    "FLOOR_BYTES",
    "HELD_BYTES",
    "SMALLEST_BYTES",
    "Shape",
    "in_memory_bytes",
    "streamed_bytes",
    "streamed_scratch_bytes",
]

HELD_BYTES = 16 * 1024**2
"""Samples in double precision, or the codes of a group, up to this size stay in memory; more are mapped files in scratch. Below it a
file costs more processor time than it saves memory."""

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


BLOCK_BYTES = 32 * 1024**2
"""Of a table with one sample of every channel after another, as many channels are taken out at once as fit this in the file's
own type: reading fewer passes over the file more often, and half a cache line of it for nothing."""

_WINDOWS_BYTES = 28 * 1024**2
_CODE_BYTES = 10 / 3  # level 0 in 16 bits, and the envelopes above it


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


def streamed_bytes(shape: Shape, *, block_bytes: int = BLOCK_BYTES, block_samples: int = 0) -> int:
    """Peak anonymous memory of the streamed route: fixed + 10/3 C M up to 16 MiB + the neediest of what follows one another.

    These are the windows of a reader (28 MiB, or 36 bytes for each sample of a window that it insists on); a block of channels, up to
    ``block_bytes``, with one whole channel in double precision beside its resampled copy and what is derived of that (26 N + 30 M:
    few, long, fast channels are bound by it); one shard while it is encoded (6 C S).
    """
    everything = 8 * shape.n_channels * shape.n_samples
    windows = max(min(everything, _WINDOWS_BYTES), 36 * shape.n_channels * min(block_samples, shape.n_samples))
    block = min(everything, block_bytes) + 26 * shape.n_samples + 30 * shape.served_samples
    shard = 6 * shape.n_channels * min(shape.served_samples, SHARD_SECONDS * shape.served_rate_hz)
    codes = min(_CODE_BYTES * shape.n_channels * shape.served_samples, HELD_BYTES)
    return int(_STREAMED_FIXED_BYTES + codes + max(windows, block, shard))


def streamed_scratch_bytes(shape: Shape, *, kept_sample_bytes: int) -> int:
    """Disk of the streamed route beside the store itself: (10/3) C M, and ``kept_sample_bytes`` C N where samples are kept; exact.

    Less than 16 MiB of either stays in memory.
    """
    kept = kept_sample_bytes * shape.n_channels * shape.n_samples
    return int(kept + _CODE_BYTES * shape.n_channels * shape.served_samples) + 1
