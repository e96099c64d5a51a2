"""What a worker may use: from the limits of either kind of cgroup and of the host, read again while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from flows.admission import Admission
from flows.fleet import Fleet
from flows.ledger import Request
from infra.cluster import worker_command, worker_environment
from infra.host import HostFiles, HostMemory, host_key, host_memory
from infra.settings import load_settings
from infra.worker_budget import Given, current_budget

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
MB, GB = 1 << 20, 1 << 30
V1_UNLIMITED = 9223372036854771712


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # replaced whole, as a reader of the kernel's files never sees half of one
    new = path.with_suffix(".new")
    new.write_text(f"{text}\n")
    new.replace(path)


def host(tree: Path, *, total: int, available: int, groups: str) -> HostFiles:
    write(tree / "proc/meminfo", f"MemTotal: {total >> 10} kB\nMemFree: 1 kB\nMemAvailable: {available >> 10} kB")
    write(tree / "proc/self/cgroup", groups)
    (tree / "cgroup").mkdir(exist_ok=True)
    (tree / "scratch").mkdir(exist_ok=True)
    return HostFiles(proc=tree / "proc", cgroup=tree / "cgroup")


def v1(tree: Path, where: str, *, limit: int, used: int, cache: int = 0) -> None:
    folder = tree / "cgroup/memory" / where
    write(folder / "memory.limit_in_bytes", limit)
    write(folder / "memory.usage_in_bytes", used)
    write(folder / "memory.stat", f"cache 1\ninactive_file 1\ntotal_inactive_file {cache}")


def v2(tree: Path, where: str, *, limit: int | None, used: int, cache: int = 0) -> None:
    folder = tree / "cgroup" / where
    write(tree / "cgroup/cgroup.controllers", "memory")
    write(folder / "memory.max", "max" if limit is None else limit)
    write(folder / "memory.current", used)
    write(folder / "memory.stat", f"anon 1\ninactive_file {cache}")


def test_two_containers_of_cgroup_version_1_are_two_hosts_though_each_sees_its_group_at_the_root(
    tmp_path: Path,
) -> None:
    def container(name: str) -> HostFiles:
        tree = tmp_path / name
        tree.mkdir()
        files = host(tree, total=16 * GB, available=16 * GB, groups=f"5:memory:/docker/{name}")
        write(tree / "proc/sys/kernel/random/boot_id", "boot")
        v1(tree, "", limit=3 * GB, used=0)
        return files

    one, other = container("one"), container("other")
    assert host_memory(one) == host_memory(other) == HostMemory(3 * GB, 3 * GB)
    assert host_key(one) != host_key(other)
    assert host_key(one) == host_key(one)


def test_a_host_without_limits_has_what_the_kernel_says(tmp_path: Path) -> None:
    assert host_memory(host(tmp_path, total=8 * GB, available=5 * GB, groups="0::/")) == HostMemory(8 * GB, 5 * GB)


def test_version_1_the_tightest_group_above_decides_and_its_cache_counts_as_free(tmp_path: Path) -> None:
    files = host(tmp_path, total=64 * GB, available=40 * GB, groups="4:cpu:/x\n7:memory:/jobs/42\n0::/")
    v1(tmp_path, "jobs/42", limit=V1_UNLIMITED, used=1 * GB)
    v1(tmp_path, "jobs", limit=4 * GB, used=3 * GB, cache=1 * GB)
    v1(tmp_path, "", limit=V1_UNLIMITED, used=30 * GB)
    assert host_memory(files) == HostMemory(4 * GB, 2 * GB)


def test_version_2_the_tightest_group_above_decides_and_its_cache_counts_as_free(tmp_path: Path) -> None:
    files = host(tmp_path, total=64 * GB, available=40 * GB, groups="0::/slice/job")
    v2(tmp_path, "slice/job", limit=6 * GB, used=5 * GB, cache=2 * GB)
    v2(tmp_path, "slice", limit=None, used=9 * GB)
    assert host_memory(files) == HostMemory(6 * GB, 3 * GB)


@pytest.mark.parametrize("groups", ["7:memory:/docker/abc", "0::/docker/abc"])
def test_a_container_sees_its_own_group_at_the_root_of_the_mount(tmp_path: Path, groups: str) -> None:
    files = host(tmp_path, total=64 * GB, available=40 * GB, groups=groups)
    if groups.startswith("7"):
        v1(tmp_path, "", limit=2 * GB, used=1 * GB)
    else:
        v2(tmp_path, "", limit=2 * GB, used=1 * GB)
    assert host_memory(files) == HostMemory(2 * GB, 1 * GB)


def test_a_budget_leaves_headroom_and_is_never_more_than_was_given(tmp_path: Path) -> None:
    files = host(tmp_path, total=100 * GB, available=90 * GB, groups="0::/")

    def budget(given: Given) -> int:
        return current_budget(given, headroom=0.25, scratch=tmp_path / "scratch", files=files).memory_bytes

    # what this process uses itself is its own to use
    assert 65 * GB <= budget(Given()) <= 75 * GB
    assert budget(Given(memory_bytes=3 * GB)) == 3 * GB
    assert budget(Given(memory_bytes=300 * GB)) == 100 * GB


def test_what_lies_in_its_scratch_is_a_workers_own(tmp_path: Path) -> None:
    files = host(tmp_path, total=100 * GB, available=90 * GB, groups="0::/")
    scratch = tmp_path / "scratch"
    (scratch / "attempt").mkdir()
    (scratch / "attempt/store").write_bytes(os.urandom(64 * MB))
    os.sync()
    with_it = current_budget(Given(), headroom=0.25, scratch=scratch, files=files).scratch_bytes
    elsewhere = tmp_path / "empty"
    elsewhere.mkdir()
    without = current_budget(Given(), headroom=0.25, scratch=elsewhere, files=files).scratch_bytes
    # other processes write to the same disk meanwhile
    assert abs(with_it - without - 64 * MB) < 48 * MB or with_it > without
    assert current_budget(Given(scratch_bytes=5), headroom=0.25, scratch=scratch, files=files).scratch_bytes == 5


def wait_until(true: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A real worker process that follows the made-up tree ``tmp_path``."""
    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as local:
        settings = load_settings(
            home=tmp_path / "home",
            database_url="postgresql://nobody@127.0.0.1:1/none",
            dask_address=local.scheduler_address,
        )
        command = worker_command(settings, scheduler=local.scheduler_address, slots=3, options=("--host", "127.0.0.1"))
        # in place of the product's own look at the kernel's files, the same look at made-up ones
        command = ["moving_budget" if part == "infra.worker_start" else part for part in command]
        environment = worker_environment(settings) | {
            "PYTHONPATH": f"{ROOT}:{SUPPORT}",
            "MOVING_BUDGET": str(tmp_path),
        }
        with (tmp_path / "log").open("wb") as log:
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd="/")
        try:
            with Client(local.scheduler_address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=120)
                yield client
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait()


@pytest.mark.parametrize("version", [1, 2])
def test_a_worker_whose_limit_moves_is_given_more_or_less(tmp_path: Path, client: Client, version: int) -> None:
    def limit(size: int) -> None:
        if version == 1:
            v1(tmp_path, "job", limit=size, used=0)
        else:
            v2(tmp_path, "job", limit=size, used=0)

    limit(4 * GB)
    host(tmp_path, total=64 * GB, available=64 * GB, groups="7:memory:/job" if version == 1 else "0::/job")
    fleet, admission = Fleet(client), Admission()
    fleet.refresh()
    (worker,) = fleet.workers.values()

    def has(size: int) -> bool:
        fleet.refresh()
        admission.set_worker(worker.address, worker.capacity)
        return worker.capacity.memory_bytes == size

    wait_until(lambda: has(3 * GB))
    admission.add(Request(key="first", memory_bytes=2 * GB))
    admission.add(Request(key="large", memory_bytes=5 * GB))
    assert [one.request.key for one in admission.place(0)] == ["first"]
    limit(2 * GB)
    wait_until(lambda: has(int(1.5 * GB)))
    admission.add(Request(key="small", memory_bytes=MB))
    assert admission.place(1) == [], "it owes what it was given before"
    # Dask's own guard follows too: what is running there holds what it holds
    assert client.scheduler_info(n_workers=-1)["workers"][worker.address]["resources"]["MEMORY"] == 1.5 * GB
    limit(16 * GB)
    wait_until(lambda: has(12 * GB))
    assert {one.request.key for one in admission.place(2)} == {"large", "small"}
    assert client.submit(int, 7, resources={"MEMORY": 11 * GB}, workers=[worker.address]).result(timeout=90) == 7
