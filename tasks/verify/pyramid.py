"""Every sample of level 0 is decoded once, and every view level is compared with the envelope that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.verification import Check
from tasks.verify.groups import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tasks.verify.groups import ServedGroup
    from tasks.verify.report import Report
    from tasks.verify.served import ServedStore

__all__ = ["Extremes", "check_pyramid"]

_BLOCK_BYTES = 32 << 20
_LEAST_COLUMNS = 512
"""Levels are added while the one below has more columns than this."""
_MOST_LEVELS = 12


@dataclass(frozen=True, slots=True)
class Extremes:
    """Least and greatest code of each channel over the whole recording."""

    least: NDArray[np.int16]
    greatest: NDArray[np.int16]

    def is_flat(self, row: int) -> bool:
        """Whether the channel is one constant, which its offset holds."""
        return bool(self.least[row] == 0 == self.greatest[row])


@dataclass(slots=True)
class _Level:
    """A view level while it is compared: what of it is worked out and waits, and how far it was read."""

    number: int
    array: Any
    carry: NDArray[np.int16]
    waiting: list[NDArray[np.int16]] = field(default_factory=list)
    waiting_columns: int = 0
    column: int = 0
    wrong: int = 0
    broken: bool = False


def check_pyramid(served: ServedStore, group: ServedGroup, report: Report) -> Extremes | None:
    """Decode all of the group's arrays; the extremes of its channels, or None when something cannot be decoded.

    Level 1 is the least and greatest code of each ``view_downsample`` samples of level 0, each further level of the columns of
    the one below; what does not fill a column is left out. 32 MiB of level 0 are held at a time.
    """
    n_channels, n_samples = group.level0.shape
    _check_levels(group, report)
    levels = [
        _Level(number, array, np.empty((2, n_channels, 0), np.int16))
        for number, array in sorted(group.views.items())
        if array.ndim == 3
    ]
    least = np.full(n_channels, np.iinfo(np.int16).max, np.int16)
    greatest = np.full(n_channels, np.iinfo(np.int16).min, np.int16)
    whole = True
    for start, stop in _blocks(group):
        codes = decoded(served, lambda start=start, stop=stop: np.asarray(group.level0[:, start:stop]))
        if isinstance(codes, Exception):
            report.fail(Check.DECODING, f"{group.name}: samples {start} to {stop} cannot be decoded")
            whole = False
            continue
        report.checked += 1
        least, greatest = np.minimum(least, codes.min(axis=1)), np.maximum(greatest, codes.max(axis=1))
        if whole:
            _pour(served, group, levels, np.stack([codes, codes]), report)
    for level in levels:
        _compare(served, group, level, report)
        if whole and not level.broken:
            detail = f"{group.name}: view level {level.number} is wrong in {level.wrong} columns of {level.column}"
            report.hold(Check.PYRAMID, not level.wrong and level.column == level.array.shape[2], detail)
    return Extremes(least, greatest) if whole and n_samples else None


def _check_levels(group: ServedGroup, report: Report) -> None:
    """The levels that are declared are those that must exist, in their shapes."""
    n_channels, columns = group.level0.shape
    factor, number = group.says.view_downsample, 0
    while columns > _LEAST_COLUMNS and number < _MOST_LEVELS:
        columns, number = columns // factor, number + 1
        array = group.views.get(number)
        shape = None if array is None else tuple(array.shape)
        detail = f"{group.name}: view level {number} has the shape {shape} instead of {(2, n_channels, columns)}"
        report.hold(Check.PYRAMID, shape == (2, n_channels, columns), detail)
    declared = (group.says.n_view_levels, tuple(group.says.view_levels))
    detail = f"{group.name} declares {declared[0]} view levels, {number} follow from its length"
    report.hold(Check.PYRAMID, declared == (number, tuple(range(1, number + 1))), detail)


def _blocks(group: ServedGroup) -> Iterator[tuple[int, int]]:
    """Stretches of whole chunks that together are all of level 0, so that no chunk is decoded twice."""
    n_channels, n_samples = group.level0.shape
    chunk = group.level0_says.chunk_samples
    length = max(_BLOCK_BYTES // (2 * n_channels * chunk), 1) * chunk
    # a shard that cannot be decoded must be told from its neighbours
    length = min(length, group.level0_says.shard_samples)
    for start in range(0, n_samples, length):
        yield start, min(start + length, n_samples)


def _pour(
    served: ServedStore, group: ServedGroup, levels: list[_Level], pair: NDArray[np.int16], report: Report
) -> None:
    """Fold a stretch of (least, greatest) through the levels."""
    factor = group.says.view_downsample
    for level in levels:
        pair = np.concatenate([level.carry, pair], axis=2)
        columns = pair.shape[2] // factor
        level.carry = pair[:, :, columns * factor :]
        folded = pair[:, :, : columns * factor].reshape(2, pair.shape[1], columns, factor)
        pair = np.stack([folded[0].min(axis=2), folded[1].max(axis=2)]) if columns else pair[:, :, :0]
        level.waiting.append(pair)
        level.waiting_columns += columns
        if level.waiting_columns >= group.says.view_chunk_columns:
            _compare(served, group, level, report)


def _compare(served: ServedStore, group: ServedGroup, level: _Level, report: Report) -> None:
    """Compare what waits with what is served, and forget it."""
    wanted = np.concatenate(level.waiting, axis=2) if level.waiting else None
    level.waiting, level.waiting_columns = [], 0
    if wanted is None or not wanted.shape[2] or level.broken:
        return
    start, stop = level.column, level.column + wanted.shape[2]
    codes = decoded(served, lambda: np.asarray(level.array[:, :, start:stop]))
    level.column = stop
    if isinstance(codes, Exception):
        level.broken = True
        report.fail(Check.DECODING, f"{group.name}: view level {level.number} cannot be decoded")
        return
    report.checked += 1
    if codes.shape != wanted.shape:
        level.wrong += wanted.shape[2]
    else:
        level.wrong += int((codes != wanted).any(axis=(0, 1)).sum())
