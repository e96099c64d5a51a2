"""How many requests an address may send: a bucket of tokens each, in this process."""

from __future__ import annotations

import time
from collections import OrderedDict

__all__ = ["Rates"]

_MOST_ADDRESSES = 20_000


class Rates:
    """``per_minute`` requests for each address, all at once or spread; used from one event loop only.

    The address that was heard of longest ago is forgotten when there are more than 20,000, so memory stays bounded.
    """

    def __init__(self, per_minute: int) -> None:
        self._most = float(per_minute)
        self._per_s = per_minute / 60
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> float:
        """0 when the request may be answered, else the seconds after which another one may be."""
        now = time.monotonic()
        left, seen = self._left.pop(address, (self._most, now))
        left = min(self._most, left + (now - seen) * self._per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._per_s
        self._left[address] = (left - 1 if wait_s == 0 else left, now)
        if len(self._left) > _MOST_ADDRESSES:
            self._left.popitem(last=False)
        return wait_s
