"""How far a served channel is from its samples before they became 16-bit integers, measured while they became so."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ChannelLoss", "GroupLoss", "coarse", "measure", "noise_of", "pack_losses", "unpack_losses"]

_BLOCK = 1 << 18
_WINDOWS = 256
_WINDOW_SAMPLES = 256
_LEAST_SAMPLES = 8
_ROUNDING = 1e-12
"""Spread of a stretch, as a part of its largest value, that is only the rounding of double precision."""
_DISCRETE = frozenset({"TRIG", "SYSCLOCK", "CTRL"})
_DIGITS = 5
_EXAMPLES = 5


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
    resolution
        Smallest difference between neighbouring samples that differ; 0 when none was seen.
    """

    step: float
    max_error: float
    rms_error: float
    noise: float
    resolution: float

    def is_coarse(self, channel_type: str) -> bool:
        """Whether something of the source is lost in the steps: detail above its noise, or one of two codes.

        What a recorder of few bits never resolved cannot be lost, so the rounding noise of a channel's own resolution
        is part of its noise floor.
        """
        if self.max_error <= 0:
            return False
        if channel_type in _DISCRETE:
            return 0 < self.resolution <= 2 * self.max_error
        return 0 < max(self.noise, self.resolution / math.sqrt(12.0)) < self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLoss:
    """Quantisation of a channel group: its channels' labels, types, units and losses, in row order."""

    group: str
    labels: tuple[str, ...]
    types: tuple[str, ...]
    units: tuple[str, ...]
    channels: tuple[ChannelLoss, ...]


def coarse(losses: Sequence[GroupLoss]) -> str | None:
    """A sentence on the channels whose step is coarser than their noise floor; None without any."""
    found = [
        f"{label} ({one.step:.3g} {unit} a step)"
        for group in losses
        for label, kind, unit, one in zip(group.labels, group.types, group.units, group.channels, strict=True)
        if one.is_coarse(kind)
    ]
    if not found:
        return None
    more = f" and {len(found) - _EXAMPLES} more" if len(found) > _EXAMPLES else ""
    what = "channel has an int16 step" if len(found) == 1 else "channels have int16 steps"
    return f"{len(found)} {what} coarser than the noise floor: {', '.join(found[:_EXAMPLES])}{more}"


def pack_losses(losses: Sequence[GroupLoss]) -> bytes:
    """The losses as an attempt keeps them: five digits of each number, about 20 bytes a channel."""
    rounded = [
        {
            "group": group.group,
            "labels": group.labels,
            "types": group.types,
            "units": group.units,
            "channels": [
                [
                    float(f"{number:.{_DIGITS}g}")
                    for number in (one.step, one.max_error, one.rms_error, one.noise, one.resolution)
                ]
                for one in group.channels
            ],
        }
        for group in losses
    ]
    return zlib.compress(json.dumps(rounded, separators=(",", ":")).encode(), 6)


def unpack_losses(packed: bytes) -> tuple[GroupLoss, ...]:
    """What ``pack_losses`` was given, to five digits."""
    return tuple(
        GroupLoss(
            group=group["group"],
            labels=tuple(group["labels"]),
            types=tuple(group["types"]),
            units=tuple(group["units"]),
            channels=tuple(ChannelLoss(*numbers) for numbers in group["channels"]),
        )
        for group in json.loads(zlib.decompress(packed))
    )


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
    noise, resolution = noise_of(samples)
    return ChannelLoss(scale, worst, math.sqrt(total / count) if count else 0.0, noise, resolution)


def noise_of(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Noise floor and resolution; second differences of white noise have six times its variance, of a slow signal almost none."""
    import numpy as np

    starts = range(0, len(samples), max(len(samples) // _WINDOWS, _WINDOW_SAMPLES))
    whole = [start for start in starts if start + _WINDOW_SAMPLES <= len(samples)]
    tables = [samples[np.add.outer(whole, np.arange(_WINDOW_SAMPLES))]] if whole else []
    tables += [samples[None, start:] for start in starts[len(whole) :] if len(samples) - start >= _LEAST_SAMPLES]
    spreads: list[float] = []
    resolution = math.inf
    with np.errstate(invalid="ignore"):
        for table in tables:
            spread = np.diff(table, 2, axis=1).std(axis=1)
            told = np.isfinite(spread) & (spread > _ROUNDING * np.abs(table).max(axis=1))
            spreads.extend(spread[told] / math.sqrt(6.0))
            resolution = min(resolution, _least_step(table[told]))
    if len(starts) > 2 * len(spreads):  # codes change seldom, and a glance can miss where they do
        for start in range(0, len(samples), _BLOCK):
            resolution = min(resolution, _least_step(samples[None, start : start + _BLOCK + 1]))
    return float(np.median(spreads)) if spreads else 0.0, resolution if math.isfinite(resolution) else 0.0


def _least_step(table: NDArray[np.float64]) -> float:
    """The smallest difference between neighbours in a row that differ."""
    import numpy as np

    steps = np.abs(np.diff(table, axis=1))
    steps = steps[np.isfinite(steps) & (steps > _ROUNDING * np.abs(table[:, 1:]))]
    return float(steps.min()) if steps.size else math.inf
