"""Two runs on one cluster, simulated: how soon 20 recordings start beside 25,000, and that nothing is over-committed.

    python benchmarks/fair_share.py [--json] [--quick]

Each run has its own ``flows.admission``; every 2 simulated seconds it reads what the other holds and wants (``flows.fair_share``). What is
permitted on each worker is kept in books of the simulation's own, which refuse what does not fit as Postgres does. Beside it stands the same
without shares, where each run takes whatever is free. How to read the table is written in README.md here.
"""

from __future__ import annotations

import argparse
import heapq
import json
import subprocess
from dataclasses import asdict, dataclass, field

from mixes import Task, capacity, make

from flows.admission import Admission
from flows.fair_share import Party, may_take
from flows.ledger import Capacity, Request

LOOK_S = 2.0


@dataclass(frozen=True)
class Row:
    """One line of the table, in seconds of simulated time. ``long_alone_s``: the long run by itself."""

    shares: bool
    priority: int
    workers: int
    long_tasks: int
    longest_task_s: float
    short_first_start_s: float
    short_all_started_s: float
    short_ended_s: float
    long_ended_s: float
    long_alone_s: float
    permitted_at_most: float


@dataclass
class Run:
    """One run: its tasks, its policy, and what it holds of each worker."""

    name: str
    priority: int
    tasks: list[Task]
    begins_s: float
    admission: Admission = field(default_factory=Admission)
    memory: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    started: list[float] = field(default_factory=list)
    ended_s: float = 0.0


class Cluster:
    """Workers that runs share."""

    def __init__(self, fleet: list[Capacity], runs: list[Run], *, shares: bool) -> None:
        self.fleet = {f"w{number:03}": one for number, one in enumerate(fleet)}
        self.runs, self.shares = runs, shares
        self.most = 0.0
        for run in runs:
            for name, one in self.fleet.items():
                run.admission.set_worker(name, one)
                run.memory[name] = run.slots[name] = 0
            for key, task in enumerate(run.tasks):
                run.admission.add(Request(key=key, memory_bytes=task.memory_bytes, seconds=task.expected_s))

    def go(self) -> None:
        """Simulate to the end."""
        now, look_at, ends = 0.0, 0.0, list[tuple[float, str, int, str]]()
        by_name = {run.name: run for run in self.runs}
        while True:
            active = [run for run in self.runs if run.begins_s <= now]
            if now >= look_at:
                look_at = now + LOOK_S
                for run in active:
                    self._look(run, active)
            for run in active:
                for at, key, worker in self._place(run, now):
                    heapq.heappush(ends, (at, run.name, key, worker))
            if not ends and all(run.begins_s <= now and not len(run.admission) for run in self.runs):
                return
            if ends and ends[0][0] <= look_at:
                now, name, key, worker = heapq.heappop(ends)
                run = by_name[name]
                run.memory[worker] -= run.tasks[key].memory_bytes
                run.slots[worker] -= 1
                run.ended_s = now
                run.admission.release(key)
            else:
                now = look_at

    def _look(self, run: Run, active: list[Run]) -> None:
        for name, one in self.fleet.items():
            memory = one.memory_bytes - sum(other.memory[name] for other in active)
            slots = one.slots - sum(other.slots[name] for other in active)
            if self.shares:
                memory = may_take(one.memory_bytes, memory, run.name, self._parties(active, name, in_bytes=True))
                slots = may_take(one.slots, slots, run.name, self._parties(active, name, in_bytes=False))
            run.admission.withhold(name, free_memory_bytes=memory, free_scratch_bytes=1 << 60, free_slots=slots)

    def _parties(self, active: list[Run], name: str, *, in_bytes: bool) -> list[Party]:
        return [
            Party(
                name=run.name,
                priority=run.priority,
                held=run.memory[name] if in_bytes else run.slots[name],
                wanted=run.admission.waiting_bytes if in_bytes else len(run.admission),
            )
            for run in active
        ]

    def _place(self, run: Run, now: float) -> list[tuple[float, int, str]]:
        begun = []
        for placement in run.admission.place(now):
            key, worker = placement.request.key, placement.worker
            assert isinstance(key, int)
            task, one = run.tasks[key], self.fleet[worker]
            memory = sum(other.memory[worker] for other in self.runs) + task.memory_bytes
            if memory > one.memory_bytes or sum(other.slots[worker] for other in self.runs) >= one.slots:
                run.admission.release(key)
                run.admission.add(placement.request)
                continue
            run.memory[worker] += task.memory_bytes
            run.slots[worker] += 1
            self.most = max(self.most, memory / one.memory_bytes)
            run.started.append(now)
            begun.append((now + task.seconds, key, worker))
        return begun


def measure(workers: int, long_tasks: int, *, shares: bool, priority: int) -> Row:
    """One line of the table."""
    fleet = [capacity(8 + 4 * (number % 5), 4 + number % 5) for number in range(workers)]
    mix = "duration by memory"
    alone = Run("alone", 10, make(mix, long_tasks, 1), 0.0)
    Cluster(fleet, [alone], shares=False).go()
    long = Run("long", 10, make(mix, long_tasks, 1), 0.0)
    short = Run("short", priority, make(mix, 20, 2), alone.ended_s / 4)
    cluster = Cluster(fleet, [long, short], shares=shares)
    cluster.go()
    begun = short.begins_s
    return Row(
        shares=shares,
        priority=priority,
        workers=workers,
        long_tasks=long_tasks,
        longest_task_s=max(task.seconds for task in long.tasks),
        short_first_start_s=min(short.started) - begun,
        short_all_started_s=max(short.started) - begun,
        short_ended_s=short.ended_s - begun,
        long_ended_s=long.ended_s,
        long_alone_s=alone.ended_s,
        permitted_at_most=cluster.most,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="2,000 recordings instead of 25,000")
    given = parser.parse_args()
    count = 2000 if given.quick else 25_000
    rows = [
        measure(workers, count, shares=shares, priority=priority)
        for workers in (4, 16)
        for shares, priority in ((False, 10), (True, 10), (True, 40))
    ]
    if given.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        print(json.dumps({"commit": commit, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(
        f"{'shares':6} {'priority':>8} {'workers':>7} {'long':>6} {'task <=':>7} {'first':>7} {'all 20':>7} {'ended':>7} "
        f"{'long ends':>9} {'alone':>7} {'permitted':>9}"
    )
    for row in rows:
        print(
            f"{row.shares!s:6} {row.priority:8} {row.workers:7} {row.long_tasks:6} {row.longest_task_s:7.1f} "
            f"{row.short_first_start_s:7.1f} {row.short_all_started_s:7.1f} {row.short_ended_s:7.1f} {row.long_ended_s:9.1f} "
            f"{row.long_alone_s:7.1f} {row.permitted_at_most:9.3f}"
        )


if __name__ == "__main__":
    main()
