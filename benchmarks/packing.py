"""How well recordings are packed onto workers, simulated: makespan over a lower bound, and placements per second.

The lower bound knows what fits where: for every worker size it takes the recordings that fit no smaller worker, and asks for their
memory-seconds and slot-seconds of the workers that can take them. Beside the policy of ``flows.admission`` stand first-fit in order of
arrival and Dask's own order (a recording goes at once to the worker with the least to do; each worker runs its queue in order).

    python benchmarks/packing.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from flows.admission import Admission, Capacity, Request

GIB = 1 << 30


@dataclass(frozen=True)
class Task:
    """One recording: what it is charged and how long it takes."""

    memory_bytes: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One line of the table; ratios are makespan over the lower bound, the last column is a part of the makespan."""

    workers: str
    mix: str
    tasks: int
    seeds: int
    ours_median: float
    ours_worst: float
    first_fit_median: float
    dask_order_median: float
    largest_waits_at_most: float


def _capacity(gib: float, slots: int) -> Capacity:
    return Capacity(memory_bytes=int(gib * GIB), scratch_bytes=1 << 60, slots=slots)


FLEETS = {
    "2 equal": [_capacity(10, 4)] * 2,
    "8 equal": [_capacity(10, 4)] * 8,
    "3 unlike": [_capacity(16, 6), _capacity(10, 4), _capacity(4, 4)],
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


def make(mix: str, count: int, seed: int) -> list[Task]:
    """Seeded recordings of one mix; sizes are log-uniform from 0.2 to 8 GiB."""
    rng = random.Random(seed)
    sizes = [2 ** rng.uniform(-2.3, 3) for _ in range(count)]
    return [Task(int(size * GIB), MIXES[mix](size, rng)) for size in sizes]


def lower_bound(tasks: Sequence[Task], workers: Sequence[Capacity]) -> float:
    """Seconds that no schedule can beat."""
    bound = max(task.seconds for task in tasks)
    for size in {0, *(worker.memory_bytes for worker in workers)}:
        only = [task for task in tasks if task.memory_bytes > size]
        able = [worker for worker in workers if worker.memory_bytes > size]
        if only and able:
            memory = sum(task.memory_bytes * task.seconds for task in only) / sum(one.memory_bytes for one in able)
            slots = sum(task.seconds for task in only) / sum(one.slots for one in able)
            bound = max(bound, memory, slots)
    return bound


def ours(tasks: Sequence[Task], workers: Sequence[Capacity]) -> tuple[float, float]:
    """Makespan, and when the largest task started."""
    admission = Admission()
    for number, capacity in enumerate(workers):
        admission.set_worker(f"w{number:03}", capacity)
    for key, task in enumerate(tasks):
        admission.add(Request(key=key, memory_bytes=task.memory_bytes))
    largest = max(range(len(tasks)), key=lambda key: tasks[key].memory_bytes)
    now, largest_at, ends = 0.0, 0.0, list[tuple[float, int]]()
    while True:
        for placement in admission.place(now):
            key = placement.request.key
            assert isinstance(key, int)
            if key == largest:
                largest_at = now
            heapq.heappush(ends, (now + tasks[key].seconds, key))
        if not ends:
            return now, largest_at
        now, key = heapq.heappop(ends)
        admission.release(key)


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


def measure(workers: str, mix: str, count: int, seeds: int) -> Row:
    """One line of the table."""
    fleet = FLEETS[workers]
    ratios, fits, dasks, waits = [], [], [], []
    for seed in range(seeds):
        tasks = make(mix, count, seed)
        bound = lower_bound(tasks, fleet)
        span, largest_at = ours(tasks, fleet)
        ratios.append(span / bound)
        waits.append(largest_at / span)
        fits.append(first_fit(tasks, fleet) / bound)
        dasks.append(dask_order(tasks, fleet) / bound)
    return Row(
        workers,
        mix,
        count,
        seeds,
        statistics.median(ratios),
        max(ratios),
        statistics.median(fits),
        statistics.median(dasks),
        max(waits),
    )


def decisions_per_second(count: int, workers: int) -> float:
    """Placements a second of a whole simulated run."""
    fleet = [_capacity(16 + number, 8) for number in range(workers)]
    tasks = make("heavy tail", count, 1)
    begun = time.perf_counter()
    ours(tasks, fleet)
    return count / (time.perf_counter() - begun)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    seeds, counts = (3, (200,)) if given.quick else (20, (200, 2000))
    rows = [
        measure(workers, mix, count, seeds if count < 1000 else min(seeds, 5))
        for workers in FLEETS
        for mix in MIXES
        for count in counts
    ]
    speed = decisions_per_second(25_000, 64)
    if given.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "decisions_per_s": speed}))
        return
    print(
        f"{'workers':10} {'mix':22} {'tasks':>5} {'ours':>6} {'worst':>6} {'first fit':>9} {'dask order':>10} {'largest at':>10}"
    )
    for row in rows:
        print(
            f"{row.workers:10} {row.mix:22} {row.tasks:5} {row.ours_median:6.3f} {row.ours_worst:6.3f} "
            f"{row.first_fit_median:9.3f} {row.dask_order_median:10.3f} {row.largest_waits_at_most:10.3f}"
        )
    print(f"25,000 recordings on 64 workers: {speed:.0f} placements a second")


if __name__ == "__main__":
    main()
