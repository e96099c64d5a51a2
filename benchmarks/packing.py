"""How well recordings are packed onto workers, simulated: makespan over a lower bound, and decisions per second.

    python benchmarks/packing.py [--json] [--quick]
    python benchmarks/packing.py --real [--order ours|fifo|dask] [--json] [--quick]

The policy is that of ``flows.admission``, with what it fetches ahead and what it lets queue. Beside it stand first-fit in order of arrival and
Dask's own order. What is permitted on each worker is added up in books of the simulation's own after every decision. How to read the table is
written in README.md here.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import statistics
import subprocess
import time
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field

from mixes import FLEETS, MIXES, Task, capacity, dask_order, first_fit, lower_bound, make, side_by_side_bound

from flows.admission import Admission, Placement
from flows.ledger import Capacity, Request

EXPECTATION_ERROR = 0.25
"""Standard deviation of the logarithm of expected over true seconds."""


@dataclass(frozen=True)
class Row:
    """One line of the table. Ratios are makespan over a bound, ``largest_at`` is a part of the makespan.

    ``median`` and ``worst`` are over ``lower_bound``, ``beside_*`` over ``side_by_side_bound``; ``remote_*`` where files come from afar and are
    fetched ahead (of 2,000 tasks the first 5 seeds), ``unknown_median`` where nothing is expected of any duration.
    """

    workers: str
    mix: str
    tasks: int
    seeds: int
    median: float
    worst: float
    beside_median: float
    beside_worst: float
    remote_median: float
    remote_worst: float
    unknown_median: float
    first_fit_median: float
    dask_order_median: float
    largest_at: float
    permitted_at_most: float


@dataclass
class Worker:
    """One simulated worker: Dask's slots, and books that are not the policy's."""

    capacity: Capacity
    free_slots: int
    line: deque[int] = field(default_factory=deque)
    permitted_bytes: int = 0
    most_bytes: int = 0


class Simulation:
    """Runs tasks to their ends under the policy. Fetching takes no time, but what ``is_remote`` the policy fetches ahead."""

    def __init__(self, tasks: Sequence[Task], fleet: Sequence[Capacity], *, is_remote: bool = False) -> None:
        self.tasks = tasks
        self.admission = Admission()
        self.workers = {f"w{number:03}": Worker(one, one.slots) for number, one in enumerate(fleet)}
        for name, worker in self.workers.items():
            self.admission.set_worker(name, worker.capacity)
        for key, task in enumerate(tasks):
            request = Request(key=key, memory_bytes=task.memory_bytes, seconds=task.expected_s, is_remote=is_remote)
            self.admission.add(request)
        self.now = 0.0
        self.started: dict[int, float] = {}
        self.ends: list[tuple[float, int, str]] = []

    def run(self) -> float:
        """Simulate; the makespan."""
        while True:
            for placement in self.admission.place(self.now):
                self._placed(placement)
            if not self.ends:
                assert len(self.started) == len(self.tasks), "everything fits somewhere"
                return self.now
            self.now, key, name = heapq.heappop(self.ends)
            worker = self.workers[name]
            worker.free_slots += 1
            worker.permitted_bytes -= self.tasks[key].memory_bytes
            self.admission.release(key)
            self._start(name)

    def _placed(self, placement: Placement) -> None:
        key, worker = _number(placement.request.key), self.workers[placement.worker]
        if placement.ahead:
            self.admission.fetched(key)
            return
        self.admission.fetched(key)
        worker.permitted_bytes += self.tasks[key].memory_bytes
        worker.most_bytes = max(worker.most_bytes, worker.permitted_bytes)
        worker.line.append(key)
        self._start(placement.worker)

    def _start(self, name: str) -> None:
        worker = self.workers[name]
        while worker.line and worker.free_slots:
            key = worker.line.popleft()
            worker.free_slots -= 1
            self.started[key] = self.now
            heapq.heappush(self.ends, (self.now + self.tasks[key].seconds, key, name))


def _number(key: Hashable) -> int:
    assert isinstance(key, int)
    return key


def measure(workers: str, mix: str, count: int, seeds: int) -> Row:
    """One line of the table."""
    fleet = FLEETS[workers]
    ratios, beside, remote, unknown, fits, dasks, waits, permitted = [], [], [], [], [], [], [], []
    for seed in range(seeds):
        tasks = make(mix, count, seed, error=EXPECTATION_ERROR)
        bound = lower_bound(tasks, fleet)
        simulation = Simulation(tasks, fleet)
        span = simulation.run()
        largest = max(range(count), key=lambda key: tasks[key].memory_bytes)
        ratios.append(span / bound)
        beside.append(span / side_by_side_bound(tasks, fleet))
        if count < 1000 or seed < 5:
            remote.append(Simulation(tasks, fleet, is_remote=True).run() / bound)
            unknown.append(Simulation(make(mix, count, seed, error=None), fleet).run() / bound)
        fits.append(first_fit(tasks, fleet) / bound)
        dasks.append(dask_order(tasks, fleet) / bound)
        waits.append(simulation.started[largest] / span)
        permitted.append(max(one.most_bytes / one.capacity.memory_bytes for one in simulation.workers.values()))
    median = statistics.median
    return Row(
        workers,
        mix,
        count,
        seeds,
        *(median(ratios), max(ratios), median(beside), max(beside)),
        *(median(remote), max(remote), median(unknown)),
        *(median(fits), median(dasks), max(waits), max(permitted)),
    )


def cases(*, quick: bool) -> list[tuple[str, str, int]]:
    """Fleet, mix and number of tasks of each line. 200 tasks are 6 for each slot of the fleets of 8, so those have a line apart."""
    few, many = ("2 equal", "3 unlike"), ("8 equal", "8 unlike")
    counts = [(few, 200), (many, 500)] if quick else [(few, 200), (few, 2000), (many, 500), (many, 2000), (many, 200)]
    return [(workers, mix, count) for fleets, count in counts for workers in fleets for mix in MIXES]


def decisions_per_second(count: int, workers: int) -> float:
    """Decisions per second of processor time of a whole simulated run, its own books included."""
    fleet = [capacity(16 + number, 8) for number in range(workers)]
    tasks = make("heavy tail", count, 1)
    begun = time.process_time()
    Simulation(tasks, fleet).run()
    return count / (time.process_time() - begun)


def real(*, as_json: bool, quick: bool, order: str | None) -> None:
    """Print how real workers of unlike size, whose children really allocate, packed each mix, in our order and in two simpler ones."""
    from on_workers import ORDERS, measure_real

    workers, mix = "3 unlike", "duration independent"
    count, scale, seeds = (40, 0.5, (0,)) if quick else (200, 1.5, (0, 1))
    orders = ORDERS if order is None else (order,)
    rows = [row for seed in seeds for row in measure_real(workers, mix, count, seed, time_scale=scale, orders=orders)]
    if as_json:
        told = {**_made_on(), "seeds": len(seeds), "time_scale": scale, "cores": len(os.sched_getaffinity(0))}
        print(json.dumps({**told, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        f"{'order':5} {'seed':>4} {'tasks':>5} {'span s':>7} {'ratio':>6} {'beside':>6} {'own':>6} {'held':>6} "
        f"{'largest at':>10} {'samples':>7} {'counted':>7} {'load':>5}  outcomes"
    )
    for row in rows:
        print(
            f"{row.order:5} {row.seed:4} {row.tasks:5} {row.span_s:7.1f} {row.ratio:6.3f} {row.beside:6.3f} {row.own_ratio:6.3f} "
            f"{row.held_at_most:6.3f} {row.largest_at:10.3f} {row.samples:7} {row.counted:7} "
            f"{row.load:5.1f}  {row.outcomes}"
        )


def _made_on() -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return {"commit": commit, "machine": platform.platform()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="3 seeds of 200 tasks, and fewer decisions")
    parser.add_argument("--real", action="store_true", help="2 seeds on real workers instead, about 10 minutes")
    parser.add_argument("--order", choices=("ours", "fifo", "dask"), help="of --real this one alone, about 3 minutes")
    given = parser.parse_args()
    if given.real:
        real(as_json=given.json, quick=given.quick, order=given.order)
        return
    seeds, sizes = (3, (1000, 5000)) if given.quick else (20, (1000, 5000, 25_000))
    rows = [measure(*case, seeds) for case in cases(quick=given.quick)]
    speeds = {str(count): decisions_per_second(count, 64) for count in sizes}
    if given.json:
        told = {
            **_made_on(),
            "seeds": seeds,
            "expectation_error": EXPECTATION_ERROR,
            "decisions_per_cpu_s": speeds,
        }
        print(json.dumps({**told, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        f"{'workers':9} {'mix':20} {'tasks':>5} {'median':>6} {'worst':>6} {'beside':>6} {'worst':>6} {'remote':>6} {'worst':>6} {'unknown':>7} "
        f"{'first fit':>9} {'dask':>6} {'largest at':>10} {'permitted':>9}"
    )
    for row in rows:
        print(
            f"{row.workers:9} {row.mix:20} {row.tasks:5} {row.median:6.3f} {row.worst:6.3f} {row.beside_median:6.3f} "
            f"{row.beside_worst:6.3f} {row.remote_median:6.3f} {row.remote_worst:6.3f} {row.unknown_median:7.3f} {row.first_fit_median:9.3f} {row.dask_order_median:6.3f} "
            f"{row.largest_at:10.3f} {row.permitted_at_most:9.3f}"
        )
    for count, speed in speeds.items():
        print(f"{count} recordings on 64 workers: {speed:.0f} decisions per second of processor time")


if __name__ == "__main__":
    main()
