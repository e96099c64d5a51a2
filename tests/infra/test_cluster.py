"""Our own cluster as processes: what it listens on, what it holds, and how it ends with its command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import LocalCluster

from contract.errors import Refused
from infra.cluster import child_environment, cluster, worker_command, worker_environment
from infra.host import (
    host_key,
    host_memory,
    is_memory_backed,
    memory_budget_bytes,
    process_is_gone,
    process_memory,
    process_started,
    scratch_budget_bytes,
)
from infra.locks import try_take
from infra.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
MB = 1 << 20

COMMAND = """
import sys, time
from pathlib import Path
from infra.cluster import cluster
from infra.worker_questions import identify
from infra.settings import load_settings
home, lock, said = map(Path, sys.argv[1:4])
with cluster(load_settings(home=home), database_url="postgresql://nobody@127.0.0.1:1/none", workers=2,
             memory_bytes=1 << 30, workers_lock=lock) as client:
    client.wait_for_workers(1, timeout=120)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    ((address, worker),) = workers.items()
    ((_, identity),) = identify(client, [address]).items()
    said.with_suffix(".part").write_text(f"{client.run_on_scheduler(__import__('os').getpid)} {identity.pid} {worker['resources']}")
    said.with_suffix(".part").rename(said)
    time.sleep(120)
"""


def wait_until(true: Callable[[], bool], seconds: float) -> float:
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < seconds, "it did not come to pass"
        time.sleep(0.02)
    return time.monotonic() - begun


def test_a_cluster_listens_on_loopback_alone_and_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    lock, said = tmp_path / "workers.lock", tmp_path / "said"
    arguments = [sys.executable, "-c", COMMAND, str(tmp_path / "home"), str(lock), str(said)]
    with subprocess.Popen(arguments, cwd=ROOT) as command:
        wait_until(said.exists, 90)
        scheduler, worker, resources = said.read_text().split(" ", 2)
        assert "'MEMORY': 1073741824.0" in resources
        assert "'SLOT': 2.0" in resources
        family = [psutil.Process(command.pid), *psutil.Process(command.pid).children(recursive=True)]
        assert {int(scheduler), int(worker)} <= {process.pid for process in family}
        listening = {
            one.laddr.ip
            for process in family
            if process.is_running()
            for one in process.net_connections("inet")
            if one.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}
        assert try_take(lock) is None, "the worker holds its lock"
        started = {process.pid: process_started(process.pid) for process in family[1:]}
        command.kill()
    wait_until(lambda: all(process_is_gone(pid, at) for pid, at in started.items()), 60)
    handle = try_take(lock)
    assert handle is not None
    os.close(handle)


def test_a_worker_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other" / "zarrmill-9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: zarrmill\nVersion: 9.9\n")
    url = "postgresql://nobody@127.0.0.1:1/none"
    from flows.fleet import Fleet

    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as local:
        settings = load_settings(home=tmp_path / "home", database_url=url, dask_address=local.scheduler_address)
        command = worker_command(
            settings, scheduler=local.scheduler_address, memory_bytes=64 * MB, slots=1, options=("--host", "127.0.0.1")
        )
        environment = worker_environment(settings) | {"PYTHONPATH": f"{tmp_path / 'other'}:{ROOT}"}
        with (tmp_path / "log").open("wb") as log:
            worker = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd="/")
        try:
            with cluster(settings) as client:
                client.wait_for_workers(1, timeout=120)
                with pytest.raises(Refused, match=r"zarrmill 9\.9"):
                    Fleet(client).refresh()
        finally:
            worker.send_signal(signal.SIGKILL)
            worker.wait()


def test_a_scheduler_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, database_url="postgresql://u@127.0.0.1/d", dask_address="tcp://127.0.0.1:9")
    with pytest.raises(Refused, match="does not answer"), cluster(settings):
        pass


def test_children_get_one_thread_each_and_no_secret() -> None:
    made = child_environment({"ZARRMILL_DATABASE_URL": "secret", "ZARRMILL_CALLBACK_TOKEN": "secret", "PATH": "/bin"})
    assert "secret" not in made.values()
    assert made["PATH"] == "/bin"
    assert made["JE_ARROW_MALLOC_CONF"] == "background_thread:false"
    assert made["OPENBLAS_NUM_THREADS"] == "1"


def test_the_host_says_what_it_has() -> None:
    memory = host_memory()
    assert 0 < memory.available_bytes <= memory.limit_bytes <= psutil.virtual_memory().total
    assert memory_budget_bytes(0.5) < memory_budget_bytes(0.0) <= memory.limit_bytes
    assert host_key() == host_key()
    assert scratch_budget_bytes(ROOT) < psutil.disk_usage(str(ROOT)).total
    assert scratch_budget_bytes(ROOT / "not" / "yet") > 0, "before the first conversion makes it"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no tmpfs here")
def test_a_tmpfs_is_told_from_a_disk(tmp_path: Path) -> None:
    assert is_memory_backed(Path("/dev/shm"))
    assert is_memory_backed(tmp_path) == (_file_system(tmp_path) == "tmpfs")


def _file_system(folder: Path) -> str:
    answer: Any = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=True)
    return str(answer.stdout.strip())


def test_a_process_is_known_by_its_start_and_not_by_its_number_alone() -> None:
    own = process_started(os.getpid())
    assert own is not None
    assert not process_is_gone(os.getpid(), own)
    assert process_is_gone(os.getpid(), own + 1)
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        at = process_started(child.pid)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_is_gone(child.pid, at), "a zombie does nothing any more"
    assert process_memory(child.pid) is None
    memory = process_memory()
    assert memory is not None
    assert 0 < memory.real_bytes <= memory.rss_bytes <= memory.peak_bytes
