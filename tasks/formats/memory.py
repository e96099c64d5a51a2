"""What a conversion needs above the memory of a fresh child: formulas fitted to measurements, in bytes.

Notation: C channels, N source samples per channel, M served samples, W samples of one read window, S samples of one
shard. The constants were fitted to peak resident memory over C = 32..256 and 10..60 minutes at 1000 Hz with residuals
below 0.5 % (in memory) and 30 MB (streamed); the import baseline is left out because a child is born with it.
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

SMALLEST_BYTES = 32 * 1024**2
"""Least that is ever promised, whatever was learnt: a child that imports one more library must not die of it."""

_FIXED_BYTES = 48 * 1024**2
"""Codecs, shard buffers and one-off imports of any conversion: above a preloaded child's birth 40 MB were measured for
64 channels x 10 min streamed from EDF, BrainVision and FIF, of which the other terms explain 15."""


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
    """Peak anonymous memory of the streamed route: 17 C W + 4.5 C S + 15 N + fixed.

    The 15 N is one channel in double precision beside its resampled copy: few, long, fast channels are bound by it.
    """
    window = max(READ_CHUNK_SECONDS * shape.rate_hz, block_samples)
    window = min(window, shape.n_samples)
    shard = min(shape.served_samples, SHARD_SECONDS * shape.served_rate_hz)
    return int(_FIXED_BYTES + 17 * shape.n_channels * window + 4.5 * shape.n_channels * shard + 15 * shape.n_samples)


def streamed_scratch_bytes(shape: Shape) -> int:
    """Disk of the streamed route beside the store itself: 4 C N + (10/3) C M; exact to 0.3 %.

    It must be free before the conversion starts: the scratch is sparse mapped files, so a full disk is a SIGBUS.
    """
    return int(4 * shape.n_channels * shape.n_samples + 10 / 3 * shape.n_channels * shape.served_samples) + 1
