"""Which recording starts next, and on which worker: the policy on top of the ledgers. Pure.

The policy: of what fits some worker, the first in the order of ``flows.waiting`` (the large, and the long as far as it matters) goes to the
worker where it fits most tightly. Where slots are as scarce as memory, a large one goes only where the small ones that wait can still fill
the slots beside it: otherwise the large would all run first with idle slots, and the small last with idle memory. A recording that is the
largest waiting and has been passed over for ``age_s`` gets a worker drained for it. A recording that runs *alone* (its worker died under
it, or it ran out of memory) waits until nothing else waits, and has an empty worker to itself.

Costs O(log n) per placement in the number of waiting recordings and O(workers) in the number of workers.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sortedcontainers import SortedList

from flows.ledger import Capacity, Ledger, Request
from flows.waiting import Scale, WaitingRoom

__all__ = ["AGE_S", "Admission", "Placement"]

AGE_S: Final = 600.0  # far above a usual conversion: at 5 s on a 12 s workload, draining cost a fifth of the makespan
_SLOTS_ARE_SCARCE: Final = 0.9  # at this ratio of what is asked of the slots to what is asked of the memory
_MEMORY_ABOUNDS: Final = 2.0  # at this ratio, memory that is charged to what queues is not missed
_NEARLY: Final = 0.75  # of the weight of the first in order: as good a choice, when its files are there
_FILLER_QUANTILE: Final = 0.15  # memory of the small ones that slots beside a large one are kept fillable with


@dataclass(frozen=True, slots=True)
class Placement:
    """A request and the worker it has been charged to.

    ``ahead``: for its scratch only, it is to be fetched and no more. What was fetched ahead to one worker may be placed on another that had
    room first; it is then fetched again.
    """

    request: Request
    worker: str
    ahead: bool = False


@dataclass(slots=True)
class _Open:
    """Workers that take something new, by the largest that each may take: what is free, less what keeps its other slots fillable."""

    filler_bytes: int = 0
    smallest_bytes: int = 0
    entries: list[tuple[int, str, Ledger]] = field(default_factory=list)

    def put(self, name: str, ledger: Ledger) -> None:
        """Add a worker, if it takes something new."""
        if ledger.is_open:
            bisect.insort(self.entries, (self._most(ledger), name, ledger), key=_by_room)

    def moved(self, name: str) -> None:
        """Put a worker where it now belongs, or out."""
        at = next((at for at, entry in enumerate(self.entries) if entry[1] == name), None)
        if at is not None:
            self.put(name, self.entries.pop(at)[2])

    def _most(self, ledger: Ledger) -> int:
        return most_beside(ledger.usable_memory_bytes, ledger.usable_slots - 1, self.filler_bytes, self.smallest_bytes)

    def tightest(self, request: Request, there: str | None) -> str | None:
        """Return the worker with the least room of those where ``request`` fits; before all others, where its files are ``there``."""
        able = [name for most, name, ledger in self.entries if most >= request.memory_bytes and ledger.fits(request)]
        return there if there in able else next(iter(able), None)

    def first_ahead(self, weight: Callable[[Request], float]) -> tuple[Request, str] | None:
        """Of what is fetched to these workers, the first in order that there is room for, with its worker."""
        there = [
            (weight(request), name, request)
            for most, name, ledger in self.entries
            for request in ledger.ahead()
            if most >= request.memory_bytes and ledger.fits(request)
        ]
        if not there:
            return None
        _weight, name, request = max(there, key=lambda entry: entry[:2])
        return request, name


def _by_room(entry: tuple[int, str, Ledger]) -> tuple[int, str]:
    return entry[:2]


def most_beside(free_bytes: int, other_slots: int, filler_bytes: int, smallest_bytes: int) -> int:
    """Memory of the largest recording that leaves so much for each of the other free slots; the smallest may always go."""
    return max(free_bytes - other_slots * filler_bytes, min(free_bytes, smallest_bytes))


class Admission:
    """Waiting recordings and workers; ``place`` says what starts now. Times are seconds of any one clock."""

    def __init__(self, *, age_s: float = AGE_S) -> None:
        self._age_s = age_s
        self._workers: dict[str, Ledger] = {}
        self._where: dict[Hashable, str] = {}
        self._room = WaitingRoom()
        self._unfetched = WaitingRoom()  # of these, what is far away and not fetched ahead
        self._alone: SortedList[tuple[int, int, Request]] = SortedList()
        self._waiting: dict[Hashable, int] = {}
        self._next_serial = 0
        self._passed_over: tuple[Request, float] | None = None
        self._draining: tuple[Request, str] | None = None
        self._ahead_at: dict[Hashable, str] = {}
        self._memory_abounds = False
        self._stirred: set[str] = set()  # workers that changed since the last look
        self._resized()

    def __len__(self) -> int:
        """How many recordings wait."""
        return len(self._waiting)

    @property
    def draining(self) -> tuple[str, int] | None:
        """The worker that takes nothing new because a large recording waits for it, and the memory of that one."""
        return None if self._draining is None else (self._draining[1], self._draining[0].memory_bytes)

    @property
    def waiting_bytes(self) -> int:
        """Memory of all that waits together."""
        alone: int = sum(entry[0] for entry in self._alone)
        return self._room.total_bytes + alone

    def ledger(self, worker: str) -> Ledger:
        """The ledger of one worker. Raises KeyError."""
        return self._workers[worker]

    def workers(self) -> dict[str, Capacity]:
        """Every worker and what it has."""
        return {name: ledger.capacity for name, ledger in self._workers.items()}

    def add(self, request: Request) -> None:
        """Let ``request`` wait. Raises ValueError when its key waits already."""
        if request.key in self._waiting:
            raise ValueError(f"{request.key} waits already")
        serial = self._waiting[request.key] = self._next_serial
        self._next_serial += 1
        if request.alone:
            self._alone.add((request.memory_bytes, serial, request))
        else:
            self._room.add(request)
            if request.is_remote:
                self._unfetched.add(request)

    def withdraw(self, request: Request) -> None:
        """Let ``request`` wait no longer. Raises KeyError when it does not."""
        serial = self._waiting.pop(request.key)
        if request.alone:
            self._alone.remove((request.memory_bytes, serial, request))
            return
        self._room.remove(request)
        if self._ahead_at.pop(request.key, None) is None and request.is_remote:
            self._unfetched.remove(request)
        if self._draining is not None and self._draining[0] is request:
            self._draining = None

    def waiting(self) -> Iterator[Request]:
        """Everything that waits, fetched or not: the largest first, those that run alone last."""
        yield from self._room.by_memory()
        for entry in reversed(self._alone):
            yield entry[2]

    def set_worker(self, worker: str, capacity: Capacity) -> None:
        """Let a worker join, or change what it has."""
        if worker in self._workers:
            self._workers[worker].resize(capacity)
        else:
            self._workers[worker] = Ledger(capacity)
        self._stirred.add(worker)
        self._resized()

    def withhold(self, worker: str, *, free_memory_bytes: int, free_scratch_bytes: int, free_slots: int) -> None:
        """Say what this ledger may use of a worker beside what is placed here: others hold the rest of it, or are owed it."""
        self._stirred.add(worker)
        ledger = self._workers[worker]
        ledger.withheld_memory_bytes = max(ledger.free_memory_bytes - free_memory_bytes, 0)
        ledger.withheld_scratch_bytes = max(ledger.free_scratch_bytes - free_scratch_bytes, 0)
        ledger.withheld_slots = max(ledger.free_slots - free_slots, 0)

    def remove_worker(self, worker: str) -> list[Hashable]:
        """Let a worker leave; the recordings that were placed on it, which wait for nobody now."""
        ledger = self._workers.pop(worker, None)
        if ledger is None:
            return []
        self._stirred.discard(worker)
        self._resized()
        if self._draining is not None and self._draining[1] == worker:
            self._draining = None
        for request in ledger.ahead():
            self.withdraw(request)
        lost = ledger.keys()
        for key in lost:
            del self._where[key]
        return lost

    def fetched(self, key: Hashable) -> None:
        """Note that the files of a placed recording are on its worker. One whose worker left is fine."""
        worker = self._where.get(key)
        if worker is not None:
            self._workers[worker].fetched(key)
            self._stirred.add(worker)

    def converted(self, key: Hashable) -> None:
        """Give back the memory and slot of a placed recording. One whose worker left is fine."""
        worker = self._where.get(key)
        if worker is not None:
            self._workers[worker].converted(key)
            self._stirred.add(worker)

    def release(self, key: Hashable) -> None:
        """Give back all a placed recording holds. One whose worker left is fine."""
        worker = self._where.pop(key, None)
        if worker is not None:
            for request in self._workers[worker].ahead():
                if request.key == key:
                    self.withdraw(request)
            self._workers[worker].release(key)
            self._stirred.add(worker)

    def misfits(self) -> list[Request]:
        """Waiting recordings that no worker here could take even when empty, largest first."""
        ledgers = list(self._workers.values())
        waiting = (one for one in self.waiting() if one.key not in self._ahead_at)
        return [one for one in waiting if not any(ledger.could_ever_fit(one) for ledger in ledgers)]

    def stranded(self) -> list[Hashable]:
        """What was fetched ahead on a worker that has shrunk since and could not take it even when empty."""
        return [
            request.key
            for ledger in self._workers.values()
            for request in ledger.ahead()
            if not ledger.could_ever_fit(request)
        ]

    def place(self, now: float) -> list[Placement]:
        """Charge and return what starts now, and then what is fetched ahead."""
        placements: list[Placement] = []
        open_ = self._open_workers()
        while True:
            found = self._drained() or self._next(open_)
            if found is None:
                break
            placements.append(self._take(*found))
            open_.moved(found[1])
        placements += self._queue(open_)
        placements += self._fetch_ahead(open_)
        self._stirred.clear()
        self._keep_clock(now)
        return placements

    def _take(self, request: Request, worker: str) -> Placement:
        there = self._ahead_at.get(request.key)
        if there is not None and there != worker:
            self._workers[there].release(request.key)
            self._stirred.add(there)
        self.withdraw(request)
        self._workers[worker].take(request)
        self._where[request.key] = worker
        self._stirred.add(worker)
        return Placement(request, worker)

    def _resized(self) -> None:
        """Add up what all workers have."""
        capacities = [ledger.capacity for ledger in self._workers.values()]
        self._memory_bytes = sum(one.memory_bytes for one in capacities)
        self._slots = sum(one.slots for one in capacities)
        self._largest_bytes = max((one.memory_bytes for one in capacities if one.slots), default=-1)

    def _open_workers(self) -> _Open:
        """Workers that take something new, with what is kept of each for the slots beside a large one."""
        open_ = _Open()
        if len(self._room) and self._memory_bytes > 0 and self._slots > 0:
            of_memory = self._room.total_byte_seconds / self._memory_bytes
            of_slots = self._room.total_seconds / self._slots
            scale = Scale(self._largest_bytes, max(of_memory, of_slots, 1e-9))
            self._room.measure_by(scale)
            self._unfetched.measure_by(scale)
            self._memory_abounds = of_slots > _MEMORY_ABOUNDS * of_memory
            open_.smallest_bytes = self._room.memory_quantile(0)
            if of_slots > _SLOTS_ARE_SCARCE * of_memory:
                open_.filler_bytes = self._room.memory_quantile(_FILLER_QUANTILE)
        drained = None if self._draining is None else self._draining[1]
        for name, ledger in self._workers.items():
            if ledger.free_slots > ledger.withheld_slots and name != drained:
                open_.put(name, ledger)
        return open_

    def _drained(self) -> tuple[Request, str] | None:
        if self._draining is None:
            return None
        request, worker = self._draining
        return self._draining if self._workers[worker].fits(request) else None

    def _next(self, open_: _Open) -> tuple[Request, str] | None:
        """What had best start now, with its worker."""
        if not open_.entries:
            return None
        if len(self._room):
            best = self._first_of(self._room, open_)
            if best is not None:
                return self._without_fetching(best, open_)
            if self._largest_placeable() is not None:
                return None
        for entry in reversed(self._alone):
            worker = open_.tightest(entry[2], None)
            if worker is not None:
                return entry[2], worker
        return None

    def _first_of(self, room: WaitingRoom, open_: _Open) -> tuple[Request, str] | None:
        def found(request: Request) -> tuple[Request, str] | None:
            worker = open_.tightest(request, self._ahead_at.get(request.key))
            return None if worker is None else (request, worker)

        return room.first(open_.entries[-1][0], found)

    def _without_fetching(self, best: tuple[Request, str], open_: _Open) -> tuple[Request, str]:
        """What weighs nearly as much as ``best`` and is fetched to where it could start, or at least to nowhere else."""
        request, worker = best
        there = self._ahead_at.get(request.key)
        if there == worker:
            return best
        enough = _NEARLY * self._room.weight(request)
        near = open_.first_ahead(self._room.weight)
        if near is not None and self._room.weight(near[0]) >= enough:
            return near
        if there is not None:
            near = self._first_of(self._unfetched, open_) if len(self._unfetched) else None
            if near is not None and self._room.weight(near[0]) >= enough:
                return near
        return best

    def _queue(self, open_: _Open) -> Iterator[Placement]:
        """Where memory abounds, let the next ones stand in line while all slots are taken, so that no slot waits for us."""
        if not self._memory_abounds or self._draining is not None:
            return
        for name in sorted(self._stirred):
            ledger = self._workers[name]
            while ledger.may_queue and len(self._room) >= self._slots:
                most = most_beside(ledger.usable_memory_bytes, 0, open_.filler_bytes, open_.smallest_bytes)
                request = self._room.first(most, partial(self._may_line_up, name))
                if request is None:
                    break
                yield self._take(request, name)

    def _may_line_up(self, worker: str, request: Request) -> Request | None:
        is_here = self._ahead_at.get(request.key, worker) == worker
        return request if is_here and self._workers[worker].may_line_up(request) else None

    def _fetch_ahead(self, open_: _Open) -> Iterator[Placement]:
        """Fetch what would start on a busy worker if one of the oldest of its conversions ended now, one for each of these."""
        for name in sorted(self._stirred):
            ledger = self._workers[name]
            slots = max(ledger.usable_slots, 0)
            there = list(ledger.ahead())
            for comes_free in ledger.held_by_conversions()[: ledger.capacity.ahead]:
                if len(ledger.ahead()) >= ledger.capacity.ahead or not len(self._unfetched):
                    break
                free = ledger.usable_memory_bytes + comes_free
                most = most_beside(free, slots, open_.filler_bytes, open_.smallest_bytes)
                if (one := next((request for request in there if request.memory_bytes <= most), None)) is not None:
                    there.remove(one)  # it fills this gap, and the next conversion to end leaves another
                    continue
                request = self._unfetched.first(most, partial(_ahead_to, ledger, most))
                if request is not None:
                    self._unfetched.remove(request)
                    ledger.fetch_ahead(request)
                    self._where[request.key] = self._ahead_at[request.key] = name
                    yield Placement(request, name, ahead=True)

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
        ledgers = self._workers.values()
        return self._room.largest(
            self._largest_bytes, lambda request: any(ledger.could_ever_fit(request) for ledger in ledgers)
        )


def _ahead_to(ledger: Ledger, most_bytes: int, request: Request) -> Request | None:
    fits = request.is_remote and request.memory_bytes <= most_bytes and ledger.fits_ahead(request)
    return request if fits else None
