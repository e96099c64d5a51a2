"""What earlier conversions teach the next plan: how far from the formula the memory of a kind of recording is, at most.

The formula knows a recording's size; what it cannot know is this machine's libraries and these datasets' habits. So what
is learnt is one number for each format and route, measured over formula, taken high enough that 99 of 100 recordings fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ENOUGH_ATTEMPTS", "FEWEST_ATTEMPTS", "HIGHEST_FACTOR", "LOWEST_FACTOR", "Learnt", "learn"]

FEWEST_ATTEMPTS = 5
"""Fewer than this teach nothing."""
ENOUGH_ATTEMPTS = 50
"""From this many on a plan may also promise less than the formula; before, what was learnt only raises it."""
LOWEST_FACTOR = 0.5
"""Never less than this part of the formula: a quantile of the past is no promise about the largest recording to come."""
HIGHEST_FACTOR = 4.0
"""Never more than this multiple of the formula: one recording that went astray must not keep its whole kind from starting."""
_QUANTILE = 0.99
_MARGIN = 1.1
"""Above the quantile, because 200 attempts know it only roughly and the poll of a child may miss a short peak."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """The factor that the formula is multiplied with, and the number of attempts that it rests on."""

    factor: float
    attempts: int

    def bytes_for(self, floor_bytes: int) -> int:
        """What to promise where the formula says ``floor_bytes``."""
        return math.ceil(self.factor * floor_bytes)


def learn(ratios: Sequence[float]) -> Learnt | None:
    """What measured ÷ formula of recent attempts of one kind teaches; None when there are too few of them.

    The factor is the 0.99 quantile (the next larger of the two values around it, so with up to 100 attempts the largest) and a tenth,
    between ``LOWEST_FACTOR`` and ``HIGHEST_FACTOR``, and at least 1 before ``ENOUGH_ATTEMPTS`` were measured.
    """
    known = sorted(ratio for ratio in ratios if math.isfinite(ratio) and ratio > 0)
    if len(known) < FEWEST_ATTEMPTS:
        return None
    quantile = known[math.ceil(_QUANTILE * len(known)) - 1]
    lowest = LOWEST_FACTOR if len(known) >= ENOUGH_ATTEMPTS else 1.0
    return Learnt(min(max(quantile * _MARGIN, lowest), HIGHEST_FACTOR), len(known))
