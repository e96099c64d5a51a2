"""The packing of one mix on a real cluster: worker processes of unlike size, children that allocate what their recording says.

Each recording is a file of the format that misbehaves on purpose (``tests/support/fault_format``): its child allocates nearly what it is permitted, holds that
for its duration, and then converts a tiny signal. What each worker's children really hold is read from the kernel twenty times a second, by
a process that knows nothing of the ledger. Called by ``packing.py --real``.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from mixes import FLEETS, Task, lower_bound, make, side_by_side_bound

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from distributed import Client
from external import External, external_cluster
from fan_out_bench import Shop
from real_orders import ORDERS, convert_in_order

from flows.ledger import Capacity
from infra.database import engine as make_engine
from infra.host import process_memory

__all__ = ["ORDERS", "RealRow", "measure_real"]

MEMORY_SCALE = 1 / 8
"""A machine of 24 GB plays workers of 30 GiB together."""
_OWN_BYTES = 20 << 20  # what the conversion of the tiny signal takes itself
_SAMPLE_S = 0.05


@dataclass(frozen=True)
class RealRow:
    """One run in one order.

    Attributes
    ----------
    span_s
        From the first order handed to the flow, with all workers there and warm, to the last store that is served.
    ratio, beside
        ``span_s`` over ``lower_bound`` and ``side_by_side_bound`` of the seconds that each recording sleeps, so with what starting children,
        converting and publishing cost.
    own_ratio
        ``span_s`` over ``lower_bound`` of the seconds that each conversion really took.
    held_at_most
        The most that a worker's children held in any of ``samples`` looks, over its MEMORY. What was permitted is not reckoned here: Postgres
        knows when the upload of a store began, which is later than its memory was given back.
    largest_at
        When the largest recording's conversion began, as a part of ``span_s``.
    load
        Of the machine in the minute before.
    """

    order: str
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
    largest_at: float
    samples: int
    outcomes: dict[str, int]
    counted: int
    load: float


class Sampler:
    """A process that reads the most that the children of each worker held at once, above their birth, by the kernel's account."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._told, theirs = fresh.Pipe()
        self._process = fresh.Process(target=_sample, args=(dict(pids), theirs), daemon=True)
        self._process.start()
        self._told.recv()  # it looks

    def stop(self) -> tuple[dict[str, int], int]:
        """Look no more; the most bytes of each worker, and how often was looked."""
        self._told.send(None)
        found: tuple[dict[str, int], int] = self._told.recv()
        self._process.join()
        return found


def _sample(pids: dict[str, int], told: Connection) -> None:
    most: dict[str, int] = {}
    servers: dict[str, psutil.Process] = {}
    samples = 0
    told.send(None)
    due = time.monotonic()
    while not told.poll(max(due - time.monotonic(), 0)):
        due = max(due + _SAMPLE_S, time.monotonic())
        for name, pid in pids.items():
            server = servers.get(name) or _fork_server(pid)
            if server is not None:
                servers[name] = server
                most[name] = max(most.get(name, 0), _held_below(server))
        samples += 1
    told.send((most, samples))


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


@dataclass(frozen=True)
class _Conversion:
    """One conversion as Postgres keeps it: where, from when to when in seconds since the epoch."""

    path: str
    worker: str
    begun: float
    ended: float
    counted: bool


def _conversions(shop: Shop, where: Mapping[UUID, str]) -> list[_Conversion]:
    found = []
    for name in shop.steps:
        for one in shop.attempts(name):
            ended = one.ended_at.timestamp() - one.stage_seconds.get("upload", 0.0)
            begun = ended - one.stage_seconds.get("child", 0.0)
            worker = where.get(one.attempt_id, one.worker)
            found.append(_Conversion(shop.path(name), worker, begun, ended, one.counted))
    return found


def measure_real(
    workers: str, mix: str, count: int, seed: int, *, time_scale: float, orders: Sequence[str] = ORDERS
) -> list[RealRow]:
    """Convert one mix on real workers, anew in each order on the same ones; how it went."""
    fleet = scaled(FLEETS[workers])
    tasks = [
        Task(int(one.memory_bytes * MEMORY_SCALE), one.seconds * time_scale, one.expected_s * time_scale)
        for one in make(mix, count, seed)
    ]
    with tempfile.TemporaryDirectory() as folder, _cluster(Path(folder), fleet) as external:
        client = Client(external.address, set_as_default=False, timeout=60)
        client.wait_for_workers(len(fleet), timeout=240)
        time.sleep(5)  # the fork servers preload
        rows = []
        for order in orders:
            measured = _measure(order, client, external, tasks, fleet)
            rows.append(
                RealRow(
                    order=order, workers=workers, mix=mix, tasks=count, seed=seed, time_scale=time_scale, **measured
                )
            )
        client.close()
    return rows


def _measure(
    order: str, client: Client, external: External, tasks: Sequence[Task], fleet: Sequence[Capacity]
) -> dict[str, Any]:
    """The figures of one order; see ``RealRow``."""
    engine = make_engine(external.database_url)
    shop = Shop.open(engine, external.folder / f"dataset-{order}")
    by_path: dict[str, Task] = {}
    for number, task in enumerate(tasks):
        held = max(task.memory_bytes - _OWN_BYTES, 0)
        by_path[shop.put(f"{number:04}", {"do": "hold", "bytes": held, "seconds": task.seconds})] = task
    run = shop.begin()
    made = []
    for name in shop.steps:
        task = by_path[shop.path(name)]
        permitted = {"permitted_bytes": task.memory_bytes, "projected_bytes": task.memory_bytes}
        made.append(shop.order(run, name, expected_s=task.expected_s, **permitted))
    load = os.getloadavg()[0]
    sampler = Sampler({name: process.pid for name, process in external.workers.items()})
    with shop.renewed(run):
        began, begun_at = time.monotonic(), time.time()
        reports, where = convert_in_order(order, client, shop, run, made)
        span = time.monotonic() - began
    most, samples = sampler.stop()
    conversions = _conversions(shop, where)
    shop.end(run)
    engine.dispose()
    largest = max(by_path, key=lambda path: by_path[path].memory_bytes)
    took = [
        Task(by_path[one.path].memory_bytes, float(one.stage_seconds.get("child", by_path[one.path].seconds)))
        for one in reports
    ]
    sizes = {f"w{number}": one.memory_bytes for number, one in enumerate(fleet)}
    outcomes: dict[str, int] = {}
    for report in reports:
        outcomes[report.outcome] = outcomes.get(report.outcome, 0) + 1
    return {
        "span_s": round(span, 2),
        "ratio": span / lower_bound(tasks, fleet),
        "beside": span / side_by_side_bound(tasks, fleet),
        "own_ratio": span / lower_bound(took, fleet),
        "held_at_most": max(most[name] / sizes[name] for name in most),
        "largest_at": (min(one.begun for one in conversions if one.path == largest) - begun_at) / span,
        "samples": samples,
        "outcomes": outcomes,
        "counted": sum(one.counted for one in conversions),
        "load": round(load, 2),
    }
