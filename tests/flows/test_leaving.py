"""An external cluster whose workers are drained or asked to end: nobody is charged."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command import Zarrmill
from distributed import Client
from fan_out_bench import FORMAT, MB, SUPPORT, Shop, wait_until
from scene import AT_LEAST, Innocents
from sqlalchemy import Engine

from db.migrate import upgrade
from infra.database import engine as make_engine
from infra.home import Home
from infra.postgres import PostgresServer, embedded_binaries
from infra.postgres_place import place, socket_folder

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("i1", "i2", "i3", "i4", "i5", "i6")
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

    def start_worker(self, name: str) -> None:
        zarrmill = str(Path(sys.executable).with_name("zarrmill"))
        command = [zarrmill, "worker", "--scheduler", self.address, "--memory", "600MiB", "--slots", "6"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(command, env=self.environment(), stdout=log, stderr=log)

    def stop(self) -> None:
        for process in [*self.workers.values(), self.scheduler]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def external(tmp_path_factory: pytest.TempPathFactory) -> Iterator[External]:
    folder = tmp_path_factory.mktemp("external")
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
        made = External(folder, postgres, free_port())
        stack.callback(made.stop)
        made.start_scheduler()
        for name in ("one", "two"):
            made.start_worker(name)
        yield made


@pytest.fixture(scope="module")
def engine(external: External) -> Iterator[Engine]:
    made = make_engine(external.database_url)
    yield made
    made.dispose()


@pytest.fixture
def client(external: External) -> Iterator[Client]:
    def connected() -> bool:
        try:
            found.append(Client(external.address, set_as_default=False, timeout=5))
        except OSError:
            return False
        return True

    found: list[Client] = []
    wait_until(connected, 120)
    (made,) = found
    made.wait_for_workers(len(external.workers), timeout=240)
    yield made
    made.close(timeout=5)


@pytest.fixture
def innocents(engine: Engine, tmp_path: Path) -> Innocents:
    made = Innocents(Shop.open(engine, tmp_path / "innocent"), tmp_path)
    made.put(*NAMES)
    return made


def at_fault(innocents: Innocents, fault: Callable[[], None], then: Callable[[], bool]) -> Callable[[], str | None]:
    """Do ``fault`` once at least five innocents are converting; open their gate when ``then`` holds."""
    done: list[int] = []

    def watch() -> str | None:
        if not done:
            if innocents.converting() >= AT_LEAST:
                done.append(innocents.converting())
                fault()
        elif not innocents.gate.exists() and then():
            innocents.open_gate()
        return None

    return watch


def test_with_every_worker_drained_a_run_ends_and_leaves_the_rest_due(
    external: External, client: Client, innocents: Innocents, tmp_path: Path
) -> None:
    zarrmill = Zarrmill(external.folder / "home", tmp_path, {"ZARRMILL_DATABASE_URL": external.database_url})
    zarrmill.run("drain")
    run = innocents.shop.begin()
    assert innocents.shop.convert(client, run, **innocents.orders()) == {}
    innocents.shop.end(run)
    assert {(state.due, state.attempts) for state in innocents.shop.states().values()} == {("pending", 0)}
    zarrmill.run("drain", "--undo")
    innocents.open_gate()
    run = innocents.shop.begin()
    innocents.shop.convert(client, run, **innocents.orders())
    innocents.assert_unharmed()
    innocents.shop.end(run)


def test_a_worker_that_is_asked_to_end_lets_what_runs_finish_or_go_and_is_gone(
    external: External, client: Client, innocents: Innocents
) -> None:
    shop = innocents.shop
    leaving = external.workers.pop("one")

    def ask() -> None:
        leaving.send_signal(signal.SIGTERM)

    run = shop.begin()
    watch = at_fault(innocents, ask, lambda: leaving.poll() is not None)
    reports = shop.convert(client, run, should_stop=watch, **innocents.orders(permitted_bytes=150 * MB))
    assert leaving.poll() is not None
    assert {report.outcome for report in reports.values()} == {"done"}
    innocents.assert_unharmed()
    outcomes = {attempt.outcome for name in NAMES for attempt in shop.attempts(name)}
    assert outcomes <= {"done", "released"}, "whatever ran there was let go by the worker itself"
    assert shop.reserved() == 0
    shop.end(run)
