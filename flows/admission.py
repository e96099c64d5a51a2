"""Which recording starts next, and on which worker: a ledger that cannot over-commit and the policy on top of it. Pure.

The policy: the largest waiting recording that fits some worker goes to the worker where it fits most tightly. A recording that
is the largest waiting and has been passed over for ``age_s`` gets a worker drained for it. A recording that runs *alone*
(its worker died under it, or it ran out of memory) waits until nothing else waits, and has an empty worker to itself.

Costs O(log n) per placement in the number of waiting recordings and O(workers) in the number of workers.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sortedcontainers import SortedList

__all__ = ["Admission", "Capacity", "Ledger", "OverCommitError", "Placement", "Request"]

AGE_S: Final = 600.0  # far above a usual conversion: at 5 s on a 12 s workload, draining cost a fifth of the makespan
_LOOK_AHEAD: Final = 32  # largest-first candidates tried for their scratch before the one with the least scratch is


class OverCommitError(RuntimeError):
    """A placement that a worker has no room for: a defect of the caller, never a condition of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """One recording that waits. ``memory_bytes`` is what it is permitted, and so what it is charged."""

    key: Hashable
    memory_bytes: int
    scratch_bytes: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one worker has. ``scratch_in_memory``: its scratch is a tmpfs, so scratch is charged as memory too."""

    memory_bytes: int
    scratch_bytes: int
    slots: int
    scratch_in_memory: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """A request and the worker it has been charged to."""

    request: Request
    worker: str


@dataclass(slots=True)
class Ledger:
    """What one worker has, and what of it each placed recording holds."""

    capacity: Capacity
    free_memory_bytes: int = field(init=False)
    free_scratch_bytes: int = field(init=False)
    free_slots: int = field(init=False)
    withheld_memory_bytes: int = field(init=False, default=0)
    withheld_scratch_bytes: int = field(init=False, default=0)
    _held: dict[Hashable, tuple[int, int, int]] = field(init=False, default_factory=dict)
    _alone: Hashable | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.free_memory_bytes = self.capacity.memory_bytes
        self.free_scratch_bytes = self.capacity.scratch_bytes
        self.free_slots = self.capacity.slots

    @property
    def usable_memory_bytes(self) -> int:
        """Free memory that nobody outside this ledger uses."""
        return self.free_memory_bytes - self.withheld_memory_bytes

    @property
    def in_use_bytes(self) -> int:
        """Memory charged to what is placed here."""
        return self.capacity.memory_bytes - self.free_memory_bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing is placed here."""
        return not self._held

    @property
    def is_taken_alone(self) -> bool:
        """Whether a recording has this worker to itself."""
        return self._alone is not None

    def charge(self, request: Request) -> int:
        """Memory that ``request`` costs here."""
        return request.memory_bytes + (request.scratch_bytes if self.capacity.scratch_in_memory else 0)

    def could_ever_fit(self, request: Request) -> bool:
        """Whether the worker, empty, has room for ``request``."""
        return (
            self.capacity.slots > 0
            and self.charge(request) <= self.capacity.memory_bytes
            and request.scratch_bytes <= self.capacity.scratch_bytes
        )

    def fits(self, request: Request) -> bool:
        """Whether there is room for ``request`` now."""
        if self._alone is not None or (request.alone and self._held):
            return False
        return (
            self.free_slots > 0
            and self.charge(request) <= self.usable_memory_bytes
            and request.scratch_bytes <= self.free_scratch_bytes - self.withheld_scratch_bytes
        )

    def take(self, request: Request) -> None:
        """Charge ``request``. Raises OverCommitError when it does not fit."""
        if not self.fits(request) or request.key in self._held:
            raise OverCommitError(f"{request} does not fit {self}")
        memory = self.charge(request)
        self._held[request.key] = (memory, request.scratch_bytes, 1)
        self.free_memory_bytes -= memory
        self.free_scratch_bytes -= request.scratch_bytes
        self.free_slots -= 1
        if request.alone:
            self._alone = request.key

    def converted(self, key: Hashable) -> None:
        """Give back memory and slot of ``key``; its scratch stays charged until ``release``."""
        memory, scratch, slots = self._held[key]
        kept = scratch if self.capacity.scratch_in_memory else 0
        if slots:
            self._held[key] = (kept, scratch, 0)
            self.free_memory_bytes += memory - kept
            self.free_slots += slots

    def release(self, key: Hashable) -> None:
        """Give back all that ``key`` still holds. A key that holds nothing is fine."""
        memory, scratch, slots = self._held.pop(key, (0, 0, 0))
        self.free_memory_bytes += memory
        self.free_scratch_bytes += scratch
        self.free_slots += slots
        if self._alone is not None and self._alone == key:
            self._alone = None

    def resize(self, capacity: Capacity) -> None:
        """Change what the worker has. What it lost is owed by the next releases: free amounts may be negative."""
        self.free_memory_bytes += capacity.memory_bytes - self.capacity.memory_bytes
        self.free_scratch_bytes += capacity.scratch_bytes - self.capacity.scratch_bytes
        self.free_slots += capacity.slots - self.capacity.slots
        self.capacity = capacity

    def keys(self) -> list[Hashable]:
        """What is placed here."""
        return list(self._held)


_Open = tuple[int, str, Ledger]


_Entry = tuple[
    int, int, Request
]  # bytes, serial number, request: unique, so that finding an entry never walks its equals


class Admission:
    """Waiting recordings and workers; ``place`` says what starts now. Times are seconds of any one clock."""

    def __init__(self, *, age_s: float = AGE_S) -> None:
        self._age_s = age_s
        self._workers: dict[str, Ledger] = {}
        self._where: dict[Hashable, str] = {}
        self._by_memory: SortedList[_Entry] = SortedList()
        self._by_scratch: SortedList[_Entry] = SortedList()
        self._alone: SortedList[_Entry] = SortedList()
        self._serials: dict[Hashable, int] = {}
        self._next_serial = 0
        self._passed_over: tuple[Request, float] | None = None
        self._draining: tuple[Request, str] | None = None

    def __len__(self) -> int:
        """How many recordings wait."""
        return len(self._by_memory) + len(self._alone)

    @property
    def placed_count(self) -> int:
        """How many recordings are placed and not released."""
        return len(self._where)

    @property
    def draining(self) -> str | None:
        """The worker that takes nothing new because a large recording waits for it."""
        return None if self._draining is None else self._draining[1]

    def ledger(self, worker: str) -> Ledger:
        """The ledger of one worker. Raises KeyError."""
        return self._workers[worker]

    def workers(self) -> dict[str, Capacity]:
        """Every worker and what it has."""
        return {name: ledger.capacity for name, ledger in self._workers.items()}

    def add(self, request: Request) -> None:
        """Let ``request`` wait. Raises ValueError when its key waits already."""
        if request.key in self._serials:
            raise ValueError(f"{request.key} waits already")
        serial = self._serials[request.key] = self._next_serial
        self._next_serial += 1
        if request.alone:
            self._alone.add((request.memory_bytes, serial, request))
        else:
            self._by_memory.add((request.memory_bytes, serial, request))
            self._by_scratch.add((request.scratch_bytes, serial, request))

    def withdraw(self, request: Request) -> None:
        """Let ``request`` wait no longer. Raises KeyError when it does not."""
        serial = self._serials.pop(request.key)
        if request.alone:
            self._alone.remove((request.memory_bytes, serial, request))
        else:
            self._by_memory.remove((request.memory_bytes, serial, request))
            self._by_scratch.remove((request.scratch_bytes, serial, request))
        if self._draining is not None and self._draining[0] is request:
            self._draining = None

    def waiting(self) -> Iterator[Request]:
        """Everything that waits, largest first, those that run alone last."""
        for entry in reversed(self._by_memory):
            yield entry[2]
        for entry in reversed(self._alone):
            yield entry[2]

    def set_worker(self, worker: str, capacity: Capacity) -> None:
        """Let a worker join, or change what it has."""
        if worker in self._workers:
            self._workers[worker].resize(capacity)
        else:
            self._workers[worker] = Ledger(capacity)

    def withhold(self, worker: str, *, free_memory_bytes: int, free_scratch_bytes: int) -> None:
        """Say what is free on a worker's host beside what is placed here: others may hold the rest of it."""
        ledger = self._workers[worker]
        ledger.withheld_memory_bytes = max(ledger.free_memory_bytes - free_memory_bytes, 0)
        ledger.withheld_scratch_bytes = max(ledger.free_scratch_bytes - free_scratch_bytes, 0)

    def remove_worker(self, worker: str) -> list[Hashable]:
        """Let a worker leave; the recordings that were placed on it, which wait for nobody now."""
        ledger = self._workers.pop(worker, None)
        if ledger is None:
            return []
        if self._draining is not None and self._draining[1] == worker:
            self._draining = None
        lost = ledger.keys()
        for key in lost:
            del self._where[key]
        return lost

    def converted(self, key: Hashable) -> None:
        """Give back the memory and slot of a placed recording. One whose worker left is fine."""
        worker = self._where.get(key)
        if worker is not None:
            self._workers[worker].converted(key)

    def release(self, key: Hashable) -> None:
        """Give back all a placed recording holds. One whose worker left is fine."""
        worker = self._where.pop(key, None)
        if worker is not None:
            self._workers[worker].release(key)

    def misfits(self) -> list[Request]:
        """Waiting recordings that no worker here could take even when empty, largest first."""
        ledgers = list(self._workers.values())
        return [one for one in self.waiting() if not any(ledger.could_ever_fit(one) for ledger in ledgers)]

    def place(self, now: float, *, at_most: int | None = None) -> list[Placement]:
        """Charge and return what starts now."""
        placements: list[Placement] = []
        open_ = self._open_workers()
        while at_most is None or len(placements) < at_most:
            found = self._drained() or self._next(open_)
            if found is None:
                break
            request, worker = found
            self._workers[worker].take(request)
            self._where[request.key] = worker
            self.withdraw(request)
            placements.append(Placement(request, worker))
            _moved(open_, worker)
        self._keep_clock(now)
        return placements

    def _open_workers(self) -> list[_Open]:
        """Workers that take something new, the least free memory first."""
        open_ = [
            (ledger.usable_memory_bytes, name, ledger)
            for name, ledger in self._workers.items()
            if ledger.free_slots > 0 and not ledger.is_taken_alone and name != self.draining
        ]
        return sorted(open_, key=lambda entry: entry[:2])

    def _next(self, open_: list[_Open]) -> tuple[Request, str] | None:
        if not open_:
            return None
        if self._by_memory:
            found = self._largest_that_fits(open_)
            if found is not None or self._largest_placeable() is not None:
                return found
        return self._one_alone(open_)

    def _drained(self) -> tuple[Request, str] | None:
        if self._draining is None:
            return None
        request, worker = self._draining
        return self._draining if self._workers[worker].fits(request) else None

    def _keep_clock(self, now: float) -> None:
        """See how long the largest waiting recording has been passed over; drain a worker for it when it is too long."""
        if self._draining is not None:
            return
        head = self._largest_placeable()
        if head is None or self._passed_over is None or self._passed_over[0] is not head:
            self._passed_over = None if head is None else (head, now)
        elif now - self._passed_over[1] >= self._age_s:
            able = [(led.usable_memory_bytes, name) for name, led in self._workers.items() if led.could_ever_fit(head)]
            self._draining = (head, max(able)[1])

    def _largest_placeable(self) -> Request | None:
        """Return the largest waiting recording that some worker could take when empty."""
        ledgers = list(self._workers.values())
        largest = max((ledger.capacity.memory_bytes for ledger in ledgers if ledger.capacity.slots), default=-1)
        at = self._by_memory.bisect_left((largest + 1,)) - 1
        for index in range(at, max(at - _LOOK_AHEAD, -1), -1):
            request: Request = self._by_memory[index][2]
            if any(ledger.could_ever_fit(request) for ledger in ledgers):
                return request
        return None

    def _largest_that_fits(self, open_: list[_Open]) -> tuple[Request, str] | None:
        at = self._by_memory.bisect_left((open_[-1][0] + 1,)) - 1
        for index in range(at, max(at - _LOOK_AHEAD, -1), -1):
            found = _tightest(self._by_memory[index][2], open_)
            if found is not None:
                return found
        # All of the largest need more scratch than there is: what needs the least can still go.
        return _tightest(self._by_scratch[0][2], open_)

    def _one_alone(self, open_: list[_Open]) -> tuple[Request, str] | None:
        for entry in reversed(self._alone):
            found = _tightest(entry[2], open_)
            if found is not None:
                return found
        return None


def _moved(open_: list[_Open], worker: str) -> None:
    """Put ``worker`` where it now belongs in ``open_``, or out of it."""
    at = next((at for at, entry in enumerate(open_) if entry[1] == worker), None)
    if at is None:
        return
    ledger = open_.pop(at)[2]
    if ledger.free_slots > 0 and not ledger.is_taken_alone:
        bisect.insort(open_, (ledger.usable_memory_bytes, worker, ledger), key=lambda entry: entry[:2])


def _tightest(request: Request, open_: list[_Open]) -> tuple[Request, str] | None:
    """Return the request with the worker that has the least memory left of those it fits; ``open_`` ascends by it."""
    for free, name, ledger in open_:
        if free >= request.memory_bytes and ledger.fits(request):
            return request, name
    return None
