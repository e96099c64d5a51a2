"""The Dask cluster that a command uses: one of its own for its length, or the one of ``ZARRMILL_DASK_ADDRESS``.

Our own is a scheduler and one worker under a nanny, each a process under the dask command, all on 127.0.0.1. The worker is one
process whatever the number of slots, because it only supervises: each conversion is a child of its own. Both processes end when
the command does, however it ends: the kernel sends them SIGKILL as soon as a pipe that only the command holds open closes. A nanny
starts its worker again; a nanny that is killed itself is started again from here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from contract.errors import Refused, ZarrmillError
from contract.layout import CONVERSION_REVISION
from infra.dask_security import check_reach, client_security
from infra.home import Home, private_folder
from infra.host import (
    host_key,
    host_memory,
    is_memory_backed,
    memory_budget_bytes,
    process_started,
    processor_count,
    scratch_budget_bytes,
)
from infra.lifeline import start_bound
from infra.settings import Settings, inherited_environment, load_settings

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "ClusterFailed",
    "WorkerIdentity",
    "child_environment",
    "cluster",
    "default_slots",
    "worker_command",
    "worker_environment",
    "worker_identity",
]

_LOG = logging.getLogger("zarrmill.cluster")
_START_TIMEOUT_S: Final = 60.0
_ANSWERS_WITHIN_S: Final = 6.0
_STOP_PATIENCE_S: Final = 3.0
_LOOK_S: Final = 1.0
_AGAIN_AT_MOST: Final = 3  # what kills a nanny more often than that will kill the next one too
_LOG_BYTES: Final = 16 << 20
_EXTRA_THREADS: Final = 12  # threads for fetching, uploading and the edges of recordings beside those that convert

_CHILD_VARIABLES: Final = {
    # pyarrow's allocator would start a thread in the fork server, and its own pool reserves a gigabyte of VmData.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
_DASK_VARIABLES: Final = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",  # we decide what runs again, and alone
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    "DASK_DISTRIBUTED__WORKER__DAEMON": "False",
    "DASK_LOGGING__DISTRIBUTED": "warning",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
    # What Dask does a hundred times a second for dashboards that we do not serve took a third of the processor time of a worker.
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__DISK": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False",
}
_SECRETS_OF_THE_COMMAND: Final = ("ZARRMILL_CALLBACK_TOKEN", "ZARRMILL_DATABASE_URL")


class ClusterFailed(ZarrmillError):
    """Our own scheduler or worker did not start."""

    code = "cluster_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerIdentity:
    """Who a Dask worker is: what it runs, which process of which machine it is, and what all workers there may use.

    ``memory_limit_bytes`` is what its machine or cgroup has at all, whatever the worker was given of it.
    """

    version: str
    conversion_revision: int
    host: str
    host_name: str
    pid: int
    started: int | None
    scratch_in_memory: bool
    host_memory_bytes: int
    host_scratch_bytes: int
    memory_limit_bytes: int

    @property
    def name(self) -> str:
        """A name of this process, never of the one that a nanny starts at the same address after it."""
        return f"{self.host_name}/{self.pid}/{self.started}"


def child_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The environment of the fork server and its children: one thread each, and none of the command's secrets."""
    kept = {name: value for name, value in base.items() if name not in _SECRETS_OF_THE_COMMAND}
    return {**kept, **_CHILD_VARIABLES}


def worker_environment(settings: Settings, database_url: str | None = None) -> dict[str, str]:
    """The environment of a worker. It carries what tasks must not: where the database is, the home and the scratch folder."""
    if database_url is None and settings.database_url is not None:
        database_url = settings.database_url.get_secret_value()
    return inherited_environment(
        ZARRMILL_DATABASE_URL=database_url,
        ZARRMILL_HOME=str(settings.home),
        ZARRMILL_SCRATCH=str(settings.scratch),
        ZARRMILL_DASK_ADDRESS=None,
        ZARRMILL_CALLBACK_TOKEN=None,
        ZARRMILL_CALLBACK_URL=None,
        **_CHILD_VARIABLES,
        **_DASK_VARIABLES,
    )


def default_slots() -> int:
    """How many recordings a worker converts at once when nobody says: the cores it may use, or its cgroup's quota of them."""
    return processor_count()


def worker_command(
    settings: Settings,
    *,
    scheduler: str,
    memory_bytes: int | None = None,
    scratch_bytes: int | None = None,
    slots: int | None = None,
    workers_lock: Path | None = None,
    options: tuple[str, ...] = (),
) -> list[str]:
    """The arguments of a Dask worker that converts. ``scheduler`` is an address, or the path of a scheduler file.

    It declares MEMORY and SCRATCH in bytes, from this host's limits less headroom unless given, anew as those change, and SLOT, the number
    of recordings it converts at once. ``workers_lock`` is held shared (flock) by the worker process while it lives.
    """
    scratch = private_folder(settings.scratch)
    slots = slots or default_slots()
    memory = memory_budget_bytes(settings.memory_headroom) if memory_bytes is None else memory_bytes
    disk = scratch_budget_bytes(scratch) if scratch_bytes is None else scratch_bytes
    # With a scheduler file the address is not looked at, but without one Dask would take our own option for it.
    where = [scheduler] if "://" in scheduler else ["--scheduler-file", scheduler, "named-by-its-file"]
    return [
        *(sys.executable, "-P", "-m", "dask", "worker", *where),
        *("--nworkers", "1", "--nthreads", str(2 * slots + _EXTRA_THREADS)),
        *("--resources", f"MEMORY={memory},SCRATCH={disk},SLOT={slots}"),
        *("--memory-limit", "0", "--no-dashboard", "--local-directory", str(scratch / "dask")),
        # By name: infra knows of no task, a Dask worker imports what it is told to.
        *("--preload", "infra.worker_start", "--preload", "tasks.convert.worker_room"),
        *("--preload-nanny", "infra.nanny_signals"),
        *options,
        *(() if workers_lock is None else (f"--workers-lock={workers_lock}",)),
        *(() if memory_bytes is None else (f"--given-memory={memory_bytes}",)),
        *(() if scratch_bytes is None else (f"--given-scratch={scratch_bytes}",)),
    ]


def worker_identity() -> WorkerIdentity:
    """The identity of the worker process that calls it."""
    settings = load_settings()
    return WorkerIdentity(
        version=version("zarrmill"),
        conversion_revision=CONVERSION_REVISION,
        host=host_key(),
        host_name=socket.gethostname(),
        pid=os.getpid(),
        started=process_started(os.getpid()),
        scratch_in_memory=is_memory_backed(settings.scratch),
        memory_limit_bytes=host_memory().limit_bytes,
        host_memory_bytes=int(host_memory().limit_bytes * (1 - settings.memory_headroom)),
        host_scratch_bytes=scratch_budget_bytes(settings.scratch),
    )


@contextmanager
def cluster(
    settings: Settings,
    *,
    database_url: str | None = None,
    workers: int | None = None,
    memory_bytes: int | None = None,
    workers_lock: Path | None = None,
    patience_s: float = 0.0,
) -> Iterator[Client]:
    """A Dask client whose scheduler has at least one worker of ours. Usable from any thread.

    Parameters
    ----------
    database_url
        The database for our own workers; default that of the settings.
    workers
        Recordings converted at once, default one per core. For our own cluster only, as are the following.
    memory_bytes
        Memory that conversions may use together, default this machine's free memory less headroom.
    workers_lock
        File that each of our own workers holds shared (flock) until it is gone.
    patience_s
        How long a scheduler of ``ZARRMILL_DASK_ADDRESS`` that does not answer is waited for, because somebody starts it again.

    Raises
    ------
    Refused
        The scheduler of ``ZARRMILL_DASK_ADDRESS`` does not answer, or a worker of it runs another version.
    ClusterFailed
        Our own scheduler or worker did not start.
    """
    with ExitStack() as stack:
        if settings.dask_address is not None:
            client = _client_of(settings, settings.dask_address, patience_s)
        else:
            client = _client_of_our_own(
                stack, settings, database_url, slots=workers, memory_bytes=memory_bytes, workers_lock=workers_lock
            )
        stack.callback(client.close, timeout=2)
        yield client


def _client_of(settings: Settings, address: str, patience_s: float) -> Client:
    """A client that waits a minute for its scheduler to come back; that it is there now is asked before, and quickly."""
    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    check_reach(settings, address)
    security = client_security(settings, address)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with socket.create_connection(get_address_host_port(address), timeout=_ANSWERS_WITHIN_S):
                pass
            return Client(address, set_as_default=False, timeout=_START_TIMEOUT_S, security=security)  # type: ignore[no-untyped-call]  # as above
        except OSError as error:
            if time.monotonic() < deadline:
                time.sleep(0.5)
                continue
            raise Refused(
                f"the Dask scheduler {address} does not answer; start it, or unset ZARRMILL_DASK_ADDRESS",
                detail=str(error),
            ) from error


def _client_of_our_own(
    stack: ExitStack,
    settings: Settings,
    database_url: str | None,
    *,
    slots: int | None,
    memory_bytes: int | None,
    workers_lock: Path | None,
) -> Client:
    """A client of a scheduler and a worker that are started now, side by side, and that end with ``stack``."""
    from distributed import Client

    home = Home(settings.home)
    scheduler_file = home.run / f"dask-{os.getpid()}-{uuid4().hex[:8]}.json"
    stack.callback(scheduler_file.unlink, missing_ok=True)
    command = worker_command(
        settings,
        scheduler=str(scheduler_file),
        memory_bytes=memory_bytes,
        slots=slots,
        workers_lock=workers_lock,
        options=("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"),
    )
    ours = _Processes(home.logs / "workers.log", worker_environment(settings, database_url))
    stack.callback(ours.stop)
    ours.start(_scheduler_command(scheduler_file))
    ours.start(command)
    ours.look_after(command)
    address = ours.address(scheduler_file)
    return Client(address, set_as_default=False, timeout=_START_TIMEOUT_S)  # type: ignore[no-untyped-call]  # as above


def _scheduler_command(scheduler_file: Path) -> list[str]:
    # --no-dashboard alone still opens the HTTP server, on port 8787 of every interface.
    return [
        *(sys.executable, "-P", "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0"),
        *("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(scheduler_file)),
    ]


class _Processes:
    """Processes that end with this one."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._environment = dict(environment)
        self._running: list[tuple[subprocess.Popen[bytes], int]] = []
        self._left = threading.Event()
        self._looking: list[threading.Thread] = []
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > _LOG_BYTES:
                os.truncate(log, 0)

    def start(self, command: list[str]) -> None:
        """Start one; its output goes to the log."""
        process, lifeline = start_bound(command, self._environment, self._log)
        self._running.append((process, lifeline))

    def look_after(self, command: list[str]) -> None:
        """Start the last one again whenever a signal kills it, a few times. One that ends by itself, or was asked to, stays ended."""
        at = len(self._running) - 1
        thread = threading.Thread(target=self._look_after, args=(command, at), name="zarrmill-own-worker", daemon=True)
        self._looking.append(thread)
        thread.start()

    def _look_after(self, command: list[str], at: int) -> None:
        again = 0
        while not self._left.wait(_LOOK_S):
            process, lifeline = self._running[at]
            code = process.poll()
            if code is None:
                continue
            if code >= 0 or again == _AGAIN_AT_MOST:
                return
            again += 1
            _LOG.warning("our own worker was killed by signal %d; another one is started", -code)
            self._running[at] = start_bound(command, self._environment, self._log)
            os.close(lifeline)

    def address(self, scheduler_file: Path) -> str:
        """The scheduler's address, once it has written its file."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError, KeyError):
                return str(json.loads(scheduler_file.read_text())["address"])
            if any(process.poll() is not None for process, _lifeline in self._running):
                break
            time.sleep(0.02)
        raise ClusterFailed(f"our own Dask scheduler did not start; see {self._log}")

    def stop(self) -> None:
        """Ask each to end, the last started first, and kill what does not."""
        self._left.set()
        for thread in self._looking:
            thread.join()
        for process, lifeline in reversed(self._running):
            process.terminate()
            try:
                process.wait(_STOP_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(lifeline)
        self._running.clear()
