"""The recordings that wait, in the order in which they had best start. Pure.

The order is by weight: memory over the largest worker's, plus half the expected seconds over the expected length of the whole work. So the
large go first, because they fit in few places; the long go first as far as their length matters for the end; and where
seconds follow memory, or are not known, the order is that of memory.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from sortedcontainers import SortedList

from flows.ledger import Request

__all__ = ["Scale", "WaitingRoom"]

_BUCKETS_PER_OCTAVE: Final = 4
_LOOK_AHEAD: Final = 64  # candidates tried before the one with the least scratch, and then the smallest, are
_SECONDS_WEIGHT: Final = 0.5  # of 0.3 to 8, the least harm where estimates are wrong (benchmarks/README.md)

_Entry = tuple[
    float, int, Request
]  # weight, bytes or seconds; serial number; request. Unique, so never compared further
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Scale:
    """What memory and seconds are measured against: the largest worker, and the least time that all of the work takes."""

    memory_bytes: float
    seconds: float

    def weight(self, request: Request) -> float:
        """How early ``request`` had best start; more is earlier."""
        return request.memory_bytes / self.memory_bytes + _SECONDS_WEIGHT * request.seconds / self.seconds

    def is_far_from(self, other: Scale) -> bool:
        """Whether so much has changed that the order should be made anew."""
        return not (0.8 <= self.memory_bytes / other.memory_bytes <= 1.25 and self.seconds <= 2 * other.seconds)


class WaitingRoom:
    """Recordings by weight within buckets of like memory. Adding, removing and finding cost O(log n)."""

    def __init__(self) -> None:
        self._scale = Scale(1.0, 1.0)
        self._buckets: dict[int, SortedList[_Entry]] = {}
        self._by_memory: SortedList[_Entry] = SortedList()
        self._by_scratch: SortedList[_Entry] = SortedList()
        self._serials: dict[Hashable, int] = {}
        self._next_serial = 0
        self.total_bytes = 0
        self.total_seconds = 0.0
        self.total_byte_seconds = 0.0

    def __len__(self) -> int:
        return len(self._by_memory)

    def add(self, request: Request) -> None:
        """Let ``request`` wait."""
        serial = self._serials[request.key] = self._next_serial
        self._next_serial -= 1  # the last of equals in a list is the first that came
        self._by_memory.add((request.memory_bytes, serial, request))
        self._by_scratch.add((request.scratch_bytes, serial, request))
        bucket = self._buckets.setdefault(_bucket(request.memory_bytes), SortedList())
        bucket.add((self._scale.weight(request), serial, request))
        self._count(request, 1)

    def remove(self, request: Request) -> None:
        """Let ``request`` wait no longer. Raises KeyError when it does not."""
        serial = self._serials.pop(request.key)
        self._by_memory.remove((request.memory_bytes, serial, request))
        self._by_scratch.remove((request.scratch_bytes, serial, request))
        at = _bucket(request.memory_bytes)
        self._buckets[at].remove((self._scale.weight(request), serial, request))
        if not self._buckets[at]:
            del self._buckets[at]
        self._count(request, -1)

    def _count(self, request: Request, sign: int) -> None:
        self.total_bytes += sign * request.memory_bytes
        self.total_seconds += sign * request.seconds
        self.total_byte_seconds += sign * request.seconds * request.memory_bytes
        if not self._by_memory:  # no drift from one run of the work to the next
            self.total_seconds = self.total_byte_seconds = 0.0

    def measure_by(self, scale: Scale) -> None:
        """Order by another scale when it is far from the one in use."""
        if not scale.is_far_from(self._scale):
            return
        self._scale = scale
        for bucket in self._buckets.values():
            entries = [(scale.weight(request), serial, request) for _weight, serial, request in bucket]
            bucket.clear()
            bucket.update(entries)

    def weight(self, request: Request) -> float:
        """How early ``request`` had best start; more is earlier."""
        return self._scale.weight(request)

    def by_memory(self) -> Iterator[Request]:
        """All that wait, the largest first."""
        return (entry[2] for entry in reversed(self._by_memory))

    def largest(self, most_bytes: int, suits: Callable[[Request], bool]) -> Request | None:
        """Return the largest that needs at most ``most_bytes`` and suits."""
        at = self._by_memory.bisect_left((most_bytes + 1,)) - 1
        for index in range(at, max(at - _LOOK_AHEAD, -1), -1):
            request: Request = self._by_memory[index][2]
            if suits(request):
                return request
        return None

    def memory_quantile(self, fraction: float) -> int:
        """Memory that this fraction of what waits stays below. There must be something."""
        return int(self._by_memory[int(len(self._by_memory) * fraction)][0])

    def first(self, most_bytes: int, found: Callable[[Request], _T | None]) -> _T | None:
        """What ``found`` says of the first in order that needs at most ``most_bytes`` and of which it says anything."""
        heads = [
            (-bucket[-1][0], at, len(bucket) - 1) for at, bucket in self._buckets.items() if at <= _bucket(most_bytes)
        ]
        heapq.heapify(heads)
        for _ in range(_LOOK_AHEAD):
            if not heads:
                return None
            _weight, at, index = heads[0]
            request: Request = self._buckets[at][index][2]
            if request.memory_bytes <= most_bytes and (answer := found(request)) is not None:
                return answer
            if index:
                heapq.heapreplace(heads, (-self._buckets[at][index - 1][0], at, index - 1))
            else:
                heapq.heappop(heads)
        for frugal in (self._by_scratch[0][2], self._by_memory[0][2]):
            if (answer := found(frugal)) is not None:
                return answer
        return None


def _bucket(memory_bytes: int) -> int:
    return int(_BUCKETS_PER_OCTAVE * math.log2(max(memory_bytes, 1)))
