"""The packing of one mix on a real cluster: worker processes of unlike size, children that allocate what their recording says.

Each recording is a file of the format that misbehaves on purpose (``tests/support/fault_format``): its child allocates nearly what it is permitted, holds that
for its duration, and then converts a tiny signal. What each worker's children really hold is read from the kernel twenty times a second, by
a process that knows nothing of the ledger. Called by ``packing.py --real``.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from mixes import FLEETS, Task, lower_bound, make, side_by_side_bound

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from distributed import Client
from external import External, external_cluster
from fan_out_bench import Shop

from flows.ledger import Capacity
from infra.database import engine as make_engine
from infra.host import process_memory
from tasks.convert.order import AttemptReport

__all__ = ["RealRow", "measure_real"]

MEMORY_SCALE = 1 / 8
"""A machine of 24 GB plays workers of 30 GiB together."""
_OWN_BYTES = 20 << 20  # what the conversion of the tiny signal takes itself
_SAMPLE_S = 0.05


@dataclass(frozen=True)
class RealRow:
    """One run. Ratios are makespan over a bound; ``held_at_most`` is the most a worker's children held, over its MEMORY.

    ``ratio`` rests on the seconds that each recording sleeps; ``own_ratio`` on what its conversion really took, so that it leaves out what
    starting children and converting costs on this machine.
    """

    workers: str
    mix: str
    tasks: int
    seed: int
    time_scale: float
    span_s: float
    ratio: float
    beside: float
    own_ratio: float
    held_at_most: float
    permitted_at_most: float
    samples: int
    outcomes: dict[str, int]
    counted: int


@dataclass
class Sampler:
    """The most that the children of each worker held at once, above their birth, by the kernel's account."""

    processes: dict[str, subprocess.Popen[bytes]]
    most_bytes: dict[str, int] = field(default_factory=dict)
    samples: int = 0
    _left: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until told to stop."""
        servers: dict[str, psutil.Process] = {}
        while not self._left.wait(_SAMPLE_S):
            for name, process in self.processes.items():
                if name not in servers:
                    found = _fork_server(process.pid)
                    if found is None:
                        continue
                    servers[name] = found
                self.most_bytes[name] = max(self.most_bytes.get(name, 0), _held_below(servers[name]))
            self.samples += 1

    def stop(self) -> None:
        """Look no more."""
        self._left.set()


def _fork_server(pid: int) -> psutil.Process | None:
    try:
        for process in psutil.Process(pid).children(recursive=True):
            if "tasks.convert.fork_server" in " ".join(process.cmdline()) and process.parent() is not None:
                parent = process.parent()
                if parent is not None and "fork_server" not in " ".join(parent.cmdline()):
                    return process
    except psutil.Error:
        return None
    return None


def _held_below(server: psutil.Process) -> int:
    at_birth = process_memory(server.pid)
    held = 0
    for child in server.children():
        now = process_memory(child.pid)
        if now is not None and at_birth is not None:
            held += max(now.real_bytes - at_birth.real_bytes, 0)
    return held


def scaled(fleet: Sequence[Capacity]) -> list[Capacity]:
    """The fleet with as much less memory as the recordings have."""
    return [
        Capacity(memory_bytes=int(one.memory_bytes * MEMORY_SCALE), scratch_bytes=1 << 60, slots=one.slots)
        for one in fleet
    ]


@contextmanager
def _cluster(folder: Path, fleet: Sequence[Capacity]) -> Iterator[External]:
    """Worker processes of these sizes beside a scheduler and a Postgres of their own."""
    with external_cluster(folder, workers=()) as made:
        for number, one in enumerate(fleet):
            made.start_worker(f"w{number}", memory=str(one.memory_bytes), slots=one.slots)
        yield made


def _attempts(shop: Shop) -> list[Any]:
    return [attempt for name in shop.steps for attempt in shop.attempts(name)]


def _permitted_at_most(attempts: Sequence[Any], sizes: dict[str, int]) -> float:
    """The most that was permitted on one worker at any instant, over what it has, by what Postgres keeps of each attempt's conversion."""
    changes: dict[str, list[tuple[float, int]]] = {}
    for one in attempts:
        end = one.ended_at.timestamp() - one.stage_seconds.get("upload", 0.0)
        begun = end - one.stage_seconds.get("child", 0.0)
        changes.setdefault(one.worker, []).extend([(begun, one.permitted_bytes), (end, -one.permitted_bytes)])
    worst = 0.0
    for worker, steps in changes.items():
        now = 0
        for _at, change in sorted(steps):
            now += change
            worst = max(worst, now / sizes[worker])
    return worst


def measure_real(workers: str, mix: str, count: int, seed: int, *, time_scale: float) -> RealRow:
    """Convert one mix on real workers; how it went."""
    fleet = scaled(FLEETS[workers])
    tasks = [
        Task(int(one.memory_bytes * MEMORY_SCALE), one.seconds * time_scale, one.expected_s * time_scale)
        for one in make(mix, count, seed)
    ]
    with tempfile.TemporaryDirectory() as folder, _cluster(Path(folder), fleet) as external:
        engine = make_engine(external.database_url)
        client = Client(external.address, set_as_default=False, timeout=60)
        client.wait_for_workers(len(fleet), timeout=240)
        time.sleep(5)  # the fork servers preload
        shop = Shop.open(engine, Path(folder) / "dataset")
        names = [f"{number:04}" for number in range(count)]
        for name, task in zip(names, tasks, strict=True):
            held = max(task.memory_bytes - _OWN_BYTES, 0)
            shop.put(name, {"do": "hold", "bytes": held, "seconds": task.seconds})
        orders: dict[str, dict[str, Any]] = {
            name: {
                "permitted_bytes": one.memory_bytes,
                "projected_bytes": one.memory_bytes,
                "expected_s": one.expected_s,
            }
            for name, one in zip(names, tasks, strict=True)
        }
        sampler = Sampler(dict(external.workers))
        thread = threading.Thread(target=sampler.run, daemon=True)
        thread.start()
        run = shop.begin()
        began = time.monotonic()
        reports: dict[str, AttemptReport] = shop.convert(client, run, **orders)
        span = time.monotonic() - began
        sampler.stop()
        thread.join()
        attempts = _attempts(shop)
        sizes = {f"w{number}": one.memory_bytes for number, one in enumerate(fleet)}
        by_name = {identity.name: memory_bytes for identity, memory_bytes in _identities(client).items()}
        shop.end(run)
        client.close()
        engine.dispose()
    took = [
        Task(one.memory_bytes, float(reports[name].stage_seconds.get("child", one.seconds)))
        for name, one in zip(names, tasks, strict=True)
    ]
    outcomes: dict[str, int] = {}
    for report in reports.values():
        outcomes[report.outcome] = outcomes.get(report.outcome, 0) + 1
    return RealRow(
        workers=workers,
        mix=mix,
        tasks=count,
        seed=seed,
        time_scale=time_scale,
        span_s=round(span, 2),
        ratio=span / lower_bound(tasks, fleet),
        beside=span / side_by_side_bound(tasks, fleet),
        own_ratio=span / lower_bound(took, fleet),
        held_at_most=max(sampler.most_bytes[name] / sizes[name] for name in sampler.most_bytes),
        permitted_at_most=_permitted_at_most(attempts, by_name),
        samples=sampler.samples,
        outcomes=outcomes,
        counted=sum(one.counted for one in attempts),
    )


def _identities(client: Client) -> dict[Any, int]:
    """The MEMORY of each worker by its identity."""
    from infra.worker_questions import identify

    info = client.scheduler_info(n_workers=-1)["workers"]
    found = identify(client, list(info), within_s=60.0)
    return {identity: int(info[address]["resources"]["MEMORY"]) for address, identity in found.items()}
