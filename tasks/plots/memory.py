"""What plots of memory show, before it is drawn: points, sums over time, colours, ticks. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from db.measurements import MeasuredAttempt

__all__ = ["COLOURS", "MARKERS", "Lane", "byte_ticks", "lanes", "plotted", "ranks", "steps", "thinned", "time_unit"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#5D3A9B")
"""Okabe and Ito's, which people with any colour vision tell apart; the markers differ too."""
MARKERS = "osD^vPX*h"


def plotted(attempts: Iterable[MeasuredAttempt]) -> list[MeasuredAttempt]:
    """The attempts that were measured to their end: conversions, and those that ran out of memory."""
    return [one for one in attempts if one.measured_bytes and (one.outcome == "done" or one.reason == "memory_budget")]


def ranks(names: Iterable[str]) -> dict[str, int]:
    """The place of each name in the order of all, which chooses its colour and marker."""
    return {name: at % len(COLOURS) for at, name in enumerate(sorted(set(names)))}


def steps(attempts: Sequence[MeasuredAttempt], what: str, began: datetime) -> tuple[list[float], list[int]]:
    """Moments in seconds at which the sum over what was converting changed, and the sum from then on."""
    changes: dict[float, int] = defaultdict(int)
    for one in attempts:
        held = getattr(one, what) or 0
        changes[(one.started_at - began).total_seconds()] += held
        changes[(one.held_until - began).total_seconds()] -= held
    moments, values, total = [0.0], [0], 0
    for moment in sorted(changes):
        total += changes[moment]
        moments.append(moment)
        values.append(total)
    return moments, values


def thinned(
    moments: Sequence[float], values: Sequence[int], *, end_s: float, columns: int
) -> tuple[list[float], list[int]]:
    """The same steps with at most two a column: no peak is lost, what lies between peaks may be. Few steps stay as they are."""
    if len(moments) <= 2 * columns:
        return list(moments), list(values)
    width = max(end_s, 1e-9) / columns
    kept: dict[int, tuple[int, int]] = {}
    for moment, value in zip(moments, values, strict=True):
        column = min(int(moment / width), columns - 1)
        highest = kept[column][0] if column in kept else 0
        kept[column] = (max(highest, value), value)
    fewer: tuple[list[float], list[int]] = ([], [])
    for column, (highest, last) in sorted(kept.items()):
        for at, value in ((column * width, highest), ((column + 0.5) * width, last)):
            fewer[0].append(at)
            fewer[1].append(value)
    return fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One worker over a run: seconds since its first attempt began, and from each on what was permitted and measured in all, in bytes.

    The measured sum is of the peaks of what was converting, as if all had peaked together: never below what was in use.
    """

    worker: str
    attempts: int
    permitted: tuple[list[float], list[int]]
    measured: tuple[list[float], list[int]]

    @property
    def highest_bytes(self) -> int:
        """The largest sum that was permitted."""
        return max(self.permitted[1])


def lanes(attempts: Sequence[MeasuredAttempt], *, columns: int, limit: int) -> tuple[list[Lane], float, int]:
    """The lanes of at most so many workers, by name; how many seconds they last; how many more workers there were."""
    by_worker: dict[str, list[MeasuredAttempt]] = defaultdict(list)
    for one in attempts:
        by_worker[one.worker].append(one)
    if not by_worker:
        return [], 0.0, 0
    began = min(one.started_at for one in attempts)
    lasts = (max(one.held_until for one in attempts) - began).total_seconds()
    found = [
        Lane(
            worker=worker,
            attempts=len(by_worker[worker]),
            permitted=thinned(*steps(by_worker[worker], "permitted_bytes", began), end_s=lasts, columns=columns),
            measured=thinned(*steps(by_worker[worker], "measured_bytes", began), end_s=lasts, columns=columns),
        )
        for worker in sorted(by_worker)[:limit]
    ]
    return found, lasts, len(by_worker) - len(found)


def time_unit(seconds: float) -> tuple[float, str]:
    """How many seconds the unit has in which such a time is shown, and its name."""
    if seconds < 300:
        return 1.0, "s"
    return (60.0, "min") if seconds < 3 * 3600 else (3600.0, "h")


def byte_ticks(highest: float, *, most: int = 6) -> list[float]:
    """Round sizes from nothing to the highest, some ``most`` of them at most."""
    rough = max(highest, 1.0) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * many for many in (1, 2, 5, 10) if power * many >= rough)
    return [at * step for at in range(math.floor(highest / step) + 1)]
