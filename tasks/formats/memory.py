"""What a conversion needs above the memory of a fresh child: formulas fitted to measurements, in bytes.

Notation: C channels, N source samples per channel, M served samples, S samples of one shard. The constants are fitted by ``benchmarks/projection.py`` to the peak above a child's birth, which says how near they are (docs/memory.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from contract.layout import SHARD_SECONDS

__all__ = [
    "BLOCK_BYTES",
    "FLOOR_BYTES",
    "HELD_BYTES",
    "SMALLEST_BYTES",
    "WINDOW_BYTES",
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

_STREAMED_FIXED_BYTES = 10 * 1024**2
"""The same streamed, where mapped files do not count: 1.7 to 4.6 MiB were measured for 4 channels x 10 s, 9.5 MiB for 64 channels x 60 s beside
its codes, and a child that has converted before keeps up to 2 MiB more of that."""


BLOCK_BYTES = 32 * 1024**2
"""Of a table with one sample of every channel after another, as many channels are taken out at once as fit this in the file's
own type: reading fewer passes over the file more often, and half a cache line of it for nothing."""

WINDOW_BYTES = 8 * 1024**2
"""What is read at once, in double precision, by a reader that gives all channels of a stretch of time."""

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


def in_memory_bytes(shape: Shape, *, bytes_per_value: float) -> int:
    """Peak of the in-memory route: fixed + ``bytes_per_value`` x C x N + codes up to 16 MiB + a block that is turned round + one channel or one shard as when streamed."""
    source = bytes_per_value * shape.n_channels * shape.n_samples
    codes = _held(_CODE_BYTES * shape.n_channels * shape.served_samples)
    channel = 26 * shape.n_samples + 30 * shape.served_samples
    shard = 4 * shape.n_channels * min(shape.served_samples, SHARD_SECONDS * shape.served_rate_hz)
    block = min(4 * shape.n_channels * shape.n_samples, BLOCK_BYTES)
    return int(_FIXED_BYTES + 1.05 * source + codes + block + max(channel, shard))


def streamed_bytes(
    shape: Shape,
    *,
    block_bytes: float = BLOCK_BYTES,
    by_windows: bool = False,
    window_samples: int = 0,
    window_copies: float = 4.5,
) -> int:
    """Peak anonymous memory of the streamed route, and a tenth: fixed + what is held + what is read + what is made of it.

    Held are the codes and, where a reader gives windows, the samples, either of them up to 16 MiB and mapped above that. Read are windows, or a block of
    channels up to ``block_bytes``; what is freed of it stays with the process while the rest is made: one whole channel in double precision
    beside its resampled copy and what is derived of that (26 N + 30 M: few, long, fast channels are bound by it), or one shard while it is encoded.

    Parameters
    ----------
    block_bytes
        Of the file, what its reader takes out at once.
    by_windows
        Whether its reader gives windows of 8 MiB; of ``window_samples`` if that is more. ``window_copies`` of one are there at once.
    """
    everything = 8 * shape.n_channels * shape.n_samples
    codes = _held(_CODE_BYTES * shape.n_channels * shape.served_samples)
    read = min(everything, block_bytes)
    channel = 26 * shape.n_samples + 30 * shape.served_samples
    shard = 4 * shape.n_channels * min(shape.served_samples, SHARD_SECONDS * shape.served_rate_hz)
    samples = 0.0
    if by_windows:
        samples = _held(everything)
        window = max(WINDOW_BYTES, 8 * shape.n_channels * min(window_samples, shape.n_samples))
        read = window_copies * min(everything, window)
    needed = _STREAMED_FIXED_BYTES + codes + samples + read + max(channel, shard)
    return max(int(1.1 * needed), SMALLEST_BYTES)


def _held(size_bytes: float) -> float:
    """Of an array that is mapped when it is big, what stays in memory."""
    return size_bytes if size_bytes <= HELD_BYTES else 0.0


def streamed_scratch_bytes(shape: Shape, *, kept_sample_bytes: int) -> int:
    """Disk of the streamed route beside the store itself: (10/3) C M, and ``kept_sample_bytes`` C N where samples are kept; exact.

    Less than 16 MiB of either stays in memory.
    """
    kept = kept_sample_bytes * shape.n_channels * shape.n_samples
    return int(kept + _CODE_BYTES * shape.n_channels * shape.served_samples) + 1
