"""A Dask scheduler and workers as an operator starts them, with a Postgres of their own, each of which a test may end and start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fan_out_bench import FORMAT, ROOT, SUPPORT

from db.migrate import upgrade
from infra.home import Home
from infra.postgres import PostgresServer, embedded_binaries
from infra.postgres_place import place, socket_folder

GRACE_S = 3


@dataclass
class External:
    """A scheduler and workers as an operator starts them, with a Postgres of their own."""

    folder: Path
    postgres: PostgresServer
    port: int
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        return self.postgres.url("external")

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{SUPPORT}:{FORMAT}",
            "ZARRMILL_HOME": str(self.folder / "home"),
            "ZARRMILL_DATABASE_URL": self.database_url,
            "ZARRMILL_STOP_GRACE_S": str(GRACE_S),
        }

    def start_scheduler(self) -> None:
        command = [sys.executable, "-P", "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(self.port)]
        more = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        environment = self.environment() | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
        with (self.folder / "scheduler.log").open("ab") as log:
            self.scheduler = subprocess.Popen([*command, *more], env=environment, stdout=log, stderr=log)

    def start_worker(self, name: str, *, memory: str = "600MiB", slots: int = 6) -> None:
        zarrmill = str(Path(sys.executable).with_name("zarrmill"))
        command = [zarrmill, "worker", "--scheduler", self.address, "--memory", memory, "--slots", str(slots)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)

    def restart_scheduler(self) -> None:
        """Kill the scheduler and start another one at its address."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()
        self.start_scheduler()

    def look_after_workers(self) -> None:
        """Start those again that have ended, as whatever runs them does."""
        for name, process in self.workers.items():
            if process.poll() is not None:
                self.start_worker(name)

    def stop(self) -> None:
        for process in [*self.workers.values(), self.scheduler]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def external_cluster(folder: Path, *, workers: Sequence[str] = ("one", "two")) -> Iterator[External]:
    """A scheduler and these workers, each of 600 MiB and six slots."""
    home = Home(folder)
    with ExitStack() as stack:
        postgres = PostgresServer(
            embedded_binaries(), place(home), socket_folder(home), fsync=False, die_with_parent=True
        )
        stack.callback(postgres.stop, patience_s=5)
        postgres.initialise()
        postgres.start()
        postgres.create_database("external")
        upgrade(postgres.url("external"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = int(listener.getsockname()[1])
        made = External(folder, postgres, port)
        stack.callback(made.stop)
        made.start_scheduler()
        for name in workers:
            made.start_worker(name)
        yield made
