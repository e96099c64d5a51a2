"""Seeded mixes of recordings, fleets of workers, bounds that no schedule can beat, and two simpler orders to compare with."""

from __future__ import annotations

import bisect
import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flows.ledger import Capacity, places_ahead

__all__ = ["FLEETS", "GIB", "MIXES", "Task", "dask_order", "first_fit", "lower_bound", "make", "side_by_side_bound"]

GIB = 1 << 30


@dataclass(frozen=True)
class Task:
    """One recording: what it is charged, how long it takes, and how long it was expected to take."""

    memory_bytes: int
    seconds: float
    expected_s: float = 1.0


def capacity(gib: float, slots: int) -> Capacity:
    """A worker as the product makes them."""
    return Capacity(memory_bytes=int(gib * GIB), scratch_bytes=1 << 60, slots=slots, ahead=places_ahead(slots))


FLEETS = {
    "2 equal": [capacity(10, 4)] * 2,
    "8 equal": [capacity(10, 4)] * 8,
    "3 unlike": [capacity(16, 6), capacity(10, 4), capacity(4, 4)],
    "8 unlike": [
        capacity(gib, slots) for gib, slots in ((32, 8), (16, 4), (16, 8), (10, 4), (10, 4), (8, 2), (4, 4), (4, 2))
    ],
}


def _proportional(memory_gib: float, rng: random.Random) -> float:
    return 0.5 + memory_gib * rng.uniform(0.7, 1.3)


def _independent(_memory_gib: float, rng: random.Random) -> float:
    return rng.uniform(1, 5)


def _heavy_tail(_memory_gib: float, rng: random.Random) -> float:
    return min(rng.paretovariate(1.5), 40.0)


MIXES: dict[str, Callable[[float, random.Random], float]] = {
    "duration by memory": _proportional,
    "duration independent": _independent,
    "heavy tail": _heavy_tail,
}


def make(mix: str, count: int, seed: int, *, error: float | None = 0.25) -> list[Task]:
    """Seeded recordings of one mix; sizes are log-uniform from 0.2 to 8 GiB.

    ``error`` is the standard deviation of the logarithm of expected over true seconds; None: nothing is expected of any.
    """
    rng, wrong = random.Random(seed), random.Random(seed + 1_000_003)
    tasks = []
    for size in [2 ** rng.uniform(-2.3, 3) for _ in range(count)]:
        seconds = MIXES[mix](size, rng)
        expected = 1.0 if error is None else seconds * wrong.lognormvariate(0, error)
        tasks.append(Task(int(size * GIB), seconds, expected))
    return tasks


def lower_bound(tasks: Sequence[Task], workers: Sequence[Capacity]) -> float:
    """Seconds that no schedule can beat.

    For every worker size it takes the recordings that fit no smaller worker, and asks for their memory-seconds and slot-seconds of
    the workers that can take them.
    """
    bound = max(task.seconds for task in tasks)
    for size in {0, *(worker.memory_bytes for worker in workers)}:
        only = [task for task in tasks if task.memory_bytes > size]
        able = [worker for worker in workers if worker.memory_bytes > size]
        if only and able:
            memory = sum(task.memory_bytes * task.seconds for task in only) / sum(one.memory_bytes for one in able)
            slots = sum(task.seconds for task in only) / sum(one.slots for one in able)
            bound = max(bound, memory, slots)
    return bound


def side_by_side_bound(tasks: Sequence[Task], workers: Sequence[Capacity]) -> float:
    """The larger of ``lower_bound`` and one that knows what fits beside what.

    Of recordings of at least m bytes a worker takes at most ``memory // m`` at once. With n places for them on all workers,
    each place works off its share of their seconds; and of the k n + 1 longest, one place has k + 1 after one another.
    """
    bound = lower_bound(tasks, workers)
    longest: list[float] = []  # ascending, of those of at least so many bytes
    for number, task in enumerate(sorted(tasks, key=lambda task: -task.memory_bytes), 1):
        bisect.insort(longest, task.seconds)
        if len(tasks) > 500 and number % 16:
            continue  # any threshold gives a bound; not all are needed
        places = sum(min(worker.slots, worker.memory_bytes // task.memory_bytes) for worker in workers)
        bound = max(bound, sum(longest) / places)
        for each in range(1, (number - 1) // places + 1):
            start = number - 1 - each * places
            bound = max(bound, sum(longest[start : start + each + 1]))
    return bound


def first_fit(tasks: Sequence[Task], workers: Sequence[Capacity]) -> float:
    """Makespan in order of arrival, each on the first worker with room, later ones passing those that do not fit."""
    free = [[worker.memory_bytes, worker.slots] for worker in workers]
    waiting = list(range(len(tasks)))
    now, ends = 0.0, list[tuple[float, int, int]]()
    while True:
        left = []
        for key in waiting:
            at = next(
                (n for n, (memory, slots) in enumerate(free) if slots and memory >= tasks[key].memory_bytes), None
            )
            if at is None:
                left.append(key)
                continue
            free[at][0] -= tasks[key].memory_bytes
            free[at][1] -= 1
            heapq.heappush(ends, (now + tasks[key].seconds, key, at))
        waiting = left
        if not ends:
            return now
        now, key, at = heapq.heappop(ends)
        free[at][0] += tasks[key].memory_bytes
        free[at][1] += 1


def dask_order(tasks: Sequence[Task], workers: Sequence[Capacity]) -> float:
    """Makespan when each goes to a worker at once, and each worker runs its own queue in order."""
    queues: list[deque[int]] = [deque() for _ in workers]
    for key, task in enumerate(tasks):
        able = [n for n, worker in enumerate(workers) if worker.memory_bytes >= task.memory_bytes]
        queues[min(able, key=lambda n: len(queues[n]) / workers[n].slots)].append(key)
    free = [[worker.memory_bytes, worker.slots] for worker in workers]
    now, ends = 0.0, list[tuple[float, int, int]]()
    while True:
        for at, queue in enumerate(queues):
            # Only the head is looked at: a large one holds up all that stand behind it.
            while queue and free[at][1] and free[at][0] >= tasks[queue[0]].memory_bytes:
                key = queue.popleft()
                free[at][0] -= tasks[key].memory_bytes
                free[at][1] -= 1
                heapq.heappush(ends, (now + tasks[key].seconds, key, at))
        if not ends:
            return now
        now, key, at = heapq.heappop(ends)
        free[at][0] += tasks[key].memory_bytes
        free[at][1] += 1
