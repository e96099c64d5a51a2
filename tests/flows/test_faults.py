"""Whatever goes wrong on a cluster is blamed on the guilty recording alone, while at least five others convert."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from fan_out_bench import MB, Shop, bench_cluster, wait_until
from scene import AT_LEAST, Innocents, converting
from sqlalchemy import Engine

from contract.codes import PendingReason
from infra.host import process_memory
from infra.settings import Settings, load_settings
from tasks.convert.worker_room import worker_room

SLOTS = 12
CAPACITY_BYTES = 1280 * MB
ALL_BUT_BYTES = 1030 * MB
"""Fits beside the innocents, and no worker has a quarter more: running out of it counts at the first try."""
NAMES = ("i1", "i2", "i3", "i4", "i5", "i6")
INFRA, MEMORY = PendingReason.INFRA_FAILURE, PendingReason.MEMORY_BUDGET


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def client(settings: Settings, bench_database: str) -> Iterator[Client]:
    with bench_cluster(settings, bench_database, slots=SLOTS, memory_bytes=CAPACITY_BYTES) as client:
        yield client


@pytest.fixture
def shop(bench_engine: Engine, tmp_path: Path) -> Shop:
    return Shop.open(bench_engine, tmp_path / "guilty")


@pytest.fixture
def innocents(bench_engine: Engine, tmp_path: Path) -> Innocents:
    made = Innocents(Shop.open(bench_engine, tmp_path / "innocent"), tmp_path)
    made.put(*NAMES)
    return made


def attempt_folders(settings: Settings) -> list[Path]:
    workers = [path for path in settings.scratch.iterdir() if path.name != "dask"]
    return [path for worker in workers for path in worker.iterdir() if path.is_dir()]


@pytest.fixture
def small_group() -> Iterator[Path]:
    """The ``cgroup.procs`` of a new control group that may hold 160 MB; its memory is the kernel's to enforce."""
    name = f"zarrmill-test-{os.getpid()}"

    def is_empty(group: Path) -> bool:
        return (group / "cgroup.procs").read_text() == ""

    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    for root, limit in ((v1, "memory.limit_in_bytes"), (v2, "memory.max")):
        group = root / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(160 * MB))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group / "cgroup.procs"
        finally:
            wait_until(partial(is_empty, group), 60)
            group.rmdir()
        return
    pytest.skip("no control group with a memory limit can be made here")


GUILTY: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str, PendingReason | None, bool]] = {
    # name: steps, changes of the order, outcome, reason, counted
    "segfault": ([{"do": "segfault"}], {}, "pending", INFRA, True),
    "sigkill": ([{"do": "signal", "number": 9}], {}, "pending", INFRA, True),
    "sigbus": ([{"do": "signal", "number": 7}], {}, "pending", INFRA, True),
    "sigabrt": ([{"do": "signal", "number": 6}], {}, "pending", INFRA, True),
    "exit": ([{"do": "exit", "code": 3}], {}, "pending", INFRA, True),
    "hang": ([{"do": "sleep", "seconds": 280}], {"timeout_s": 1.0}, "pending", INFRA, True),
    "gil": ([{"do": "hold_gil", "seconds": 280}], {"timeout_s": 1.0}, "pending", INFRA, True),
    "moved": ([{"do": "change_source"}], {}, "released", None, False),
    # no worker has more than these were given, so running out of it counts at once
    "leak": ([{"do": "leak"}], {"permitted_bytes": ALL_BUT_BYTES}, "pending", MEMORY, True),
    "shared": ([{"do": "shared", "bytes": 1300 * MB}], {"permitted_bytes": ALL_BUT_BYTES}, "pending", MEMORY, True),
    "greedy": ([{"do": "allocate", "bytes": 9000 * MB}], {"permitted_bytes": ALL_BUT_BYTES}, "pending", MEMORY, True),
}


def worker_facts() -> tuple[int, int, int]:
    """Process id, resident bytes and fork server of the worker that runs it."""
    memory = process_memory()
    assert memory is not None
    return os.getpid(), memory.rss_bytes, worker_room().pool.fork_server_pid or 0


def test_each_fault_of_a_conversion_is_blamed_on_the_guilty_recording_alone(
    client: Client, shop: Shop, innocents: Innocents, settings: Settings
) -> None:
    for name, (steps, *_rest) in GUILTY.items():
        shop.put(name, *steps)
    run = shop.begin()
    seen: dict[str, int] = {}
    with converting(innocents, client) as count:
        before = client.run(worker_facts)
        reports = shop.convert(
            client,
            run,
            on_report=lambda report: seen.setdefault(report.path, count()),
            **{name: case[1] for name, case in GUILTY.items()},
        )
        after = client.run(worker_facts)
    assert min(seen.values()) >= AT_LEAST, "innocents were converting at each fault"
    for name, (_steps, _changes, outcome, reason, counted) in GUILTY.items():
        report = reports[name]
        assert (report.outcome, report.reason, report.counted) == (outcome, reason, counted), (name, report)
        assert shop.state(name).attempts == int(counted), name
        assert not shop.is_served(name)
        assert [attempt.counted for attempt in shop.attempts(name)].count(True) == int(counted), name
    innocents.assert_unharmed()
    assert {name: len(innocents.shop.attempts(name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    assert [facts[::2] for facts in after.values()] == [facts[::2] for facts in before.values()], (
        "nothing but children died"
    )
    assert all(rss < 400 * MB for _pid, rss, _server in after.values()), "the worker stays small"
    assert shop.reserved() == 0
    wait_until(lambda: attempt_folders(settings) == [], 90)
    shop.end(run)


def test_a_conversion_that_the_kernel_kills_for_memory_ran_out_of_memory(
    client: Client, shop: Shop, innocents: Innocents, small_group: Path
) -> None:
    # It may hold far more by its order, and no kind of ours ends it: the kernel does.
    shop.put("oom", {"do": "enter_group", "procs": str(small_group)}, {"do": "allocate", "bytes": 400 * MB})
    run = shop.begin()
    with converting(innocents, client) as count:
        report = shop.convert(client, run, oom={"permitted_bytes": ALL_BUT_BYTES})["oom"]
        assert count() >= AT_LEAST
    assert (report.outcome, report.reason, report.counted) == ("pending", MEMORY, True), report
    assert "kernel" in str(report.error)
    assert shop.state("oom").attempts == 1
    innocents.assert_unharmed()
    assert {name: len(innocents.shop.attempts(name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    shop.end(run)


def test_a_worker_that_dies_with_twenty_waiting_takes_nobody_with_it_but_the_recording_that_kills_it(
    client: Client, innocents: Innocents, settings: Settings
) -> None:
    shop = innocents.shop
    trigger = innocents.folder / "trigger"
    shop.put("killer", {"do": "wait", "for": str(trigger)}, {"do": "kill_worker"})
    waiting = [f"w{number:02}" for number in range(24)]
    innocents.put(*waiting)
    run = shop.begin()
    at_fault: list[tuple[int, int]] = []

    def watch() -> str | None:
        if not at_fault and innocents.converting() >= AT_LEAST:
            states = shop.states().values()
            at_fault.append((innocents.converting(), sum(state.due == "pending" for state in states)))
            trigger.touch()
        elif at_fault and not innocents.gate.exists() and shop.attempts("killer")[0].outcome != "converting":
            innocents.open_gate()
        return None

    # so large that only a few fit beside each other
    orders = innocents.orders(permitted_bytes=150 * MB)
    reports = shop.convert(
        client, run, should_stop=watch, killer={"permitted_bytes": 200 * MB, "timeout_s": 280.0}, **orders
    )
    assert at_fault[0][0] >= AT_LEAST
    assert at_fault[0][1] >= 20
    killer = reports["killer"]
    assert (killer.outcome, killer.reason, killer.counted) == ("pending", INFRA, True)
    assert shop.state("killer").attempts == 1
    assert [attempt.counted for attempt in shop.attempts("killer")] == [False, True], "blamed when it died alone"
    innocents.assert_unharmed()
    assert shop.reserved() == 0
    wait_until(lambda: attempt_folders(settings) == [], 90)
    shop.end(run)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB."""
    folder = tmp_path / "scratch"
    folder.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "none", str(folder)], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no small file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_who_fills_the_scratch_disk_is_blamed_and_who_finds_it_full_is_not(
    bench_database: str, innocents: Innocents, tmp_path: Path, small_disk: Path
) -> None:
    settings = load_settings(home=tmp_path / "home", scratch=small_disk)
    shop = innocents.shop
    trigger = tmp_path / "trigger"
    # It takes all there is and holds it until the innocents have met the full disk.
    shop.put(
        "filler", {"do": "wait", "for": str(trigger)}, {"do": "fill", "bytes": 64 * MB, "until": str(tmp_path / "met")}
    )
    run = shop.begin()
    counted_at: list[int] = []

    def watch() -> str | None:
        if not counted_at and innocents.converting() >= AT_LEAST:
            counted_at.append(innocents.converting())
            trigger.touch()
        elif counted_at and (tmp_path / "full").exists():
            innocents.open_gate()
            outcomes = [attempt.outcome for name in NAMES for attempt in shop.attempts(name)]
            if outcomes.count("pending") >= AT_LEAST:
                (tmp_path / "met").touch()
        return None

    with bench_cluster(settings, bench_database, slots=8, memory_bytes=2048 * MB) as client:
        reports = shop.convert(
            client,
            run,
            should_stop=watch,
            filler={"timeout_s": 280.0, "permitted_bytes": 300 * MB},
            **innocents.orders(),
        )
    assert counted_at[0] >= AT_LEAST
    filler = reports["filler"]
    assert (filler.outcome, filler.reason, filler.counted) == ("pending", INFRA, True), filler
    assert shop.state("filler").attempts == 1
    assert "No space left" in str(filler.error)
    innocents.assert_unharmed()
    shop.end(run)
