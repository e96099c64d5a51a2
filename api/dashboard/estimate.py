"""How long what is left will take, by what was done of late, as a range; unknown rather than guessed."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TimeLeft", "either", "time_left"]

_FEWEST = 3
"""Of fewer parts of the hour with something done in them no spread can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """Seconds until nothing is left. ``longest_s`` is None where the pace varies so much that there is no telling."""

    middle_s: float
    shortest_s: float
    longest_s: float | None


def time_left(left: float, done: Sequence[float], *, part_s: float) -> TimeLeft | None:
    """The time for ``left`` at the pace of the last while; None when that cannot be told.

    Parameters
    ----------
    left
        How much there is to do: recordings, or bytes.
    done
        How much was done in each part of that while, the oldest first. Parts before the first with anything in them
        are left out: nothing had begun.
    part_s
        Seconds of a part.

    Notes
    -----
    With m the mean and s the standard error of the parts, the pace is m, and lies between m - 2 s and m + 2 s.
    """
    if left <= 0:
        return TimeLeft(middle_s=0.0, shortest_s=0.0, longest_s=0.0)
    begun = next((nth for nth, one in enumerate(done) if one > 0), len(done))
    parts = list(done[begun:])
    if sum(one > 0 for one in parts) < _FEWEST:
        return None
    mean = statistics.fmean(parts)
    error = statistics.stdev(parts) / math.sqrt(len(parts))
    slowest = mean - 2 * error
    return TimeLeft(
        middle_s=left / mean * part_s,
        shortest_s=left / (mean + 2 * error) * part_s,
        longest_s=left / slowest * part_s if slowest > 0 else None,
    )


def either(by_size: TimeLeft | None, by_number: TimeLeft | None) -> TimeLeft | None:
    """One estimate of two: the middle of the first, since time follows size, and a range that holds both."""
    if by_size is None or by_number is None:
        return None
    both = (by_size.longest_s, by_number.longest_s)
    return TimeLeft(
        middle_s=by_size.middle_s,
        shortest_s=min(by_size.shortest_s, by_number.shortest_s),
        longest_s=None if None in both else max(one for one in both if one is not None),
    )
