"""SIGKILL of the whole command, at ten moments that Postgres proves; a rerun ends where an undisturbed run ends.

The dataset is served already and every recording of it has changed, so each kill meets a replacement. A moment is held
by locks of our own: the command waits for one of them exactly where it is to be killed.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from command import Zarrmill, finish
from served_dataset import Served, object_digests
from small_dataset import write_recording, write_root

from infra.postgres import PostgresServer

SUBJECTS = ("01", "02", "03", "04")
LONG = "04"


def _write(folder: Path, seed: int) -> None:
    write_root(folder)
    for subject in SUBJECTS:
        # one of many objects, so that there is a moment between two of them
        write_recording(folder, subject, seed=seed, seconds=1800 if subject == LONG else 8)


def _parts(served: Served) -> dict[str, dict[str, tuple[int, str]]]:
    """Each store's objects without its root, which holds the time it was made."""
    stores = sorted(path for path in served.base.rglob("*.zarr") if path.is_dir())
    digests = {str(store.relative_to(served.base)): object_digests(store) for store in stores}
    return {name: {key: value for key, value in found.items() if key != "zarr.json"} for name, found in digests.items()}


@dataclass
class Before:
    """The changed dataset beside what is served of it: files, database, and what an undisturbed run makes of them."""

    folder: Path
    target: Path
    saved: Path
    server: PostgresServer
    prefect_url: str
    template: str
    old: dict[str, Any] = field(default_factory=dict)
    new: dict[str, Any] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)

    def zarrmill(self, database: str, home: Path) -> Zarrmill:
        home.mkdir(mode=0o700, exist_ok=True)
        settings = {
            "ZARRMILL_DATABASE_URL": self.server.url(database),
            "PREFECT_API_URL": self.prefect_url,
            # another file system than the target's, so that stores are copied object by object
            "ZARRMILL_SCRATCH": str(Path("/dev/shm") / f"zarrmill-kills-{os.getpid()}"),
        }
        return Zarrmill(home, self.folder.parent, settings)

    def served(self) -> Served:
        return Served(self.target, "xx000077")

    def restore(self) -> None:
        shutil.rmtree(self.target, ignore_errors=True)
        shutil.copytree(self.saved, self.target)


@pytest.fixture(scope="module")
def before(servers: Any, prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Before]:
    root = tmp_path_factory.mktemp("kills")
    server = servers.migrated(18)
    made = Before(root / "xx000077", root / "served", root / "saved", server, prefect_url, "kills_before")
    server.create_database("kills_before", template="migrated")
    _write(made.folder, seed=1)
    made.zarrmill("kills_before", root / "home").run("convert", made.folder)
    made.old = _parts(made.served())
    shutil.copytree(made.target, made.saved)
    _write(made.folder, seed=2)
    server.create_database("kills_undisturbed", template="kills_before")
    made.zarrmill("kills_undisturbed", root / "home").run("convert", made.folder)
    made.new, made.index = _parts(made.served()), made.served().settled_index()
    assert made.old.keys() == made.new.keys()
    assert all(made.old[name] != made.new[name] for name in made.old)
    try:
        yield made
    finally:
        for name in ("kills_undisturbed", "kills_before"):
            server.drop_database(name)
        shutil.rmtree(Path("/dev/shm") / f"zarrmill-kills-{os.getpid()}", ignore_errors=True)


def _each(processes: list[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            act(one)


@dataclass
class Victim:
    """One command to be killed, and eyes in its database."""

    before: Before
    zarrmill: Zarrmill
    url: str
    process: subprocess.Popen[str]

    def ask(self, sql: str) -> Any:
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as c:
            row = c.execute(sql).fetchone()
            return row[0] if row else None

    @contextmanager
    def holding(self, sql: str) -> Iterator[psycopg.Connection[Any]]:
        """A transaction of our own that holds the locks of this statement."""
        with psycopg.connect(self.url.replace("+psycopg", "")) as c:
            c.execute(sql)
            yield c
            c.rollback()

    def until(self, true: Callable[[], Any], what: str, *, every_s: float = 0.01) -> None:
        deadline = time.monotonic() + 120
        while not true():
            assert self.process.poll() is None, f"the command ended before: {what}\n{self.process.communicate()}"
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(every_s)

    def stopped_when(self, true: Callable[[], Any], begun: Callable[[], Any], what: str) -> list[psutil.Process]:
        """The command's other processes, stopped at a moment that a look at running ones could miss.

        They run for a millisecond at a time from when it has ``begun``, and are looked at while they stand still.
        """
        deadline = time.monotonic() + 120
        self.until(self.converting, "a claim", every_s=0.001)
        others = psutil.Process(self.process.pid).children(recursive=True)
        while True:
            _each(others, psutil.Process.suspend)
            if true():
                return others
            looking = begun()
            _each(others, psutil.Process.resume)
            assert self.process.poll() is None, f"the command ended before: {what}\n{self.process.communicate()}"
            assert time.monotonic() < deadline, f"never came: {what}"
            if not looking:
                others = psutil.Process(self.process.pid).children(recursive=True)
            time.sleep(0.001)

    def until_it_waits_for(self, table: str) -> None:
        waiting = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '{table}'::regclass"
        self.until(lambda: self.ask(waiting), f"waits for {table}")

    def until_stage(self, stage: str) -> None:
        self.until(lambda: self.ask("SELECT stage FROM runs ORDER BY number DESC LIMIT 1") == stage, f"stage {stage}")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def converting(self) -> int:
        return int(self.ask("SELECT count(*) FROM recordings WHERE due = 'converting'"))


@pytest.fixture
def victim(before: Before, tmp_path: Path) -> Iterator[Victim]:
    name = f"kill_{tmp_path.name}".replace("-", "_")[:60]
    before.server.create_database(name, template="kills_before")
    before.restore()
    zarrmill = before.zarrmill(name, tmp_path / "home")
    process = zarrmill.start("convert", before.folder, "--json")
    try:
        yield Victim(before, zarrmill, before.server.url(name), process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        before.server.drop_database(name)


def assert_a_rerun_ends_undisturbed(victim: Victim) -> None:
    """What stands at the kill is old or new, never mixed; a rerun ends in the undisturbed index and charges nobody."""
    before, served = victim.before, victim.before.served()
    for name, parts in _parts(served).items():
        assert parts in (before.old[name], before.new[name]), f"{name} is half replaced"
    assert victim.ask("SELECT state FROM runs ORDER BY number DESC LIMIT 1") == "running", "it was killed at work"
    finish(victim.zarrmill.start("convert", before.folder, "--json"))
    assert served.settled_index() == before.index
    assert _parts(served) == before.new
    assert victim.ask("SELECT count(*) FROM attempts WHERE counted") == 0
    assert victim.ask("SELECT count(*) FROM recordings WHERE due <> 'none'") == 0
    assert victim.ask("SELECT count(*) FROM intents") == 0
    assert victim.ask("SELECT string_agg(state, ',' ORDER BY number) FROM runs") == "completed,lost,completed"
    left = [path for path in (served.target / ".zarrmill" / "staging").rglob("*") if path.is_file()]
    assert left == [], "nothing of the killed run is left at the target"


def test_killed_when_a_recording_is_claimed(victim: Victim) -> None:
    victim.until(victim.converting, "a claim", every_s=0.001)
    victim.kill()
    assert victim.converting() > 0
    assert_a_rerun_ends_undisturbed(victim)


def _children_of(process: subprocess.Popen[str], home: Path) -> list[psutil.Process]:
    """Conversion children of the command: processes whose parent is a fork server of this home."""
    found = []
    for one in psutil.process_iter():
        try:
            parent = one.parent()
            forked = parent is not None and all("fork_server" in " ".join(each.cmdline()) for each in (one, parent))
            if forked and one.environ().get("ZARRMILL_HOME") == str(home):
                found.append(one)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_killed_while_a_child_is_running(victim: Victim) -> None:
    victim.until(lambda: _children_of(victim.process, victim.zarrmill.home), "a child")
    child = _children_of(victim.process, victim.zarrmill.home)[0]
    child.suspend()
    victim.until(victim.converting, "a claim")
    victim.kill()
    assert victim.converting() > 0
    child.wait(timeout=60)
    assert_a_rerun_ends_undisturbed(victim)


def test_killed_between_two_objects(victim: Victim) -> None:
    staging = victim.before.target / ".zarrmill" / "staging"

    def objects() -> int:
        return sum(path.is_file() and f"sub-{LONG}" not in path.name for path in staging.rglob("*"))

    long_store = f"sub-{LONG}/eeg/sub-{LONG}_task-rest_eeg.zarr"
    whole = len(victim.before.new[long_store]) + 1
    others = victim.stopped_when(lambda: 12 < objects() < whole, objects, "a store half copied")
    assert victim.ask("SELECT count(*) FROM intents") > 0
    victim.kill()
    _each(others, psutil.Process.kill)  # a process that was stopped cannot notice that the command is gone
    assert victim.ask("SELECT count(*) FROM intents") > 0
    assert _parts(victim.before.served())[long_store] == victim.before.old[long_store]
    assert_a_rerun_ends_undisturbed(victim)


def test_killed_when_a_store_stands_but_is_not_noted(victim: Victim) -> None:
    before = victim.before

    def exchanged() -> list[str]:
        return [name for name, parts in _parts(before.served()).items() if parts == before.new[name]]

    victim.until(victim.converting, "a claim")
    with victim.holding("LOCK TABLE attempts IN EXCLUSIVE MODE"):
        noted = victim.ask(
            "SELECT count(*) FROM stores s JOIN recordings r ON r.pk = s.recording_pk WHERE s.source = r.source"
        )
        victim.until(lambda: len(exchanged()) > noted, "a root zarr.json is exchanged that no row knows", every_s=0.05)
        victim.kill()
        assert victim.ask("SELECT count(*) FROM intents") > 0
    assert_a_rerun_ends_undisturbed(victim)


def _waiter_on(lock: Path) -> bool:
    """Whether anybody waits for this flock: the kernel lists those with an arrow."""
    inode = lock.stat().st_ino
    return any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines())


def test_killed_after_events_parquet(victim: Victim) -> None:
    served = victim.before.served()
    old_events = (served.base / "events.parquet").read_bytes()
    lock = served.target / ".zarrmill" / "locks" / "xx000077"
    victim.until_stage("converting")
    with victim.holding("SELECT FROM runs ORDER BY number DESC LIMIT 1 FOR NO KEY UPDATE") as stage:
        # all stores are converted, and the run waits to say that it publishes
        victim.until(lambda: victim.ask("SELECT count(*) FROM recordings WHERE due <> 'none'") == 0, "all converted")
        with lock.open("r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            stage.rollback()
            victim.until(lambda: _waiter_on(lock), "waits to put events.parquet")
            with victim.holding("SELECT FROM dataset_leases FOR UPDATE"):
                fcntl.flock(handle, fcntl.LOCK_UN)
                victim.until(lambda: (served.base / "events.parquet").read_bytes() != old_events, "events are put")
                assert victim.ask("SELECT stage FROM runs ORDER BY number DESC LIMIT 1") == "publishing"
                victim.kill()
    assert served.settled_index() != victim.before.index, "the index has not moved"
    assert_a_rerun_ends_undisturbed(victim)


def test_killed_after_index_json(victim: Victim) -> None:
    victim.until_stage("converting")
    noted = "SELECT index_etag FROM datasets"
    old = victim.ask(noted)
    with victim.holding("LOCK TABLE documents IN EXCLUSIVE MODE"):
        victim.until_it_waits_for("documents")
        victim.kill()
    assert victim.before.served().settled_index() == victim.before.index, "the index has moved"
    assert victim.ask(noted) == old, "and the database does not know"
    assert_a_rerun_ends_undisturbed(victim)


def test_killed_before_the_callback_is_written(victim: Victim) -> None:
    victim.until_stage("converting")
    terminal = "SELECT count(*) FROM callbacks WHERE status <> 'converting'"
    told = victim.ask(terminal)
    with victim.holding("LOCK TABLE callbacks IN EXCLUSIVE MODE"):
        victim.until_it_waits_for("callbacks")
        assert victim.ask("SELECT stage FROM runs ORDER BY number DESC LIMIT 1") == "publishing"
        victim.kill()
    assert victim.ask(terminal) == told
    assert_a_rerun_ends_undisturbed(victim)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_anywhere(victim: Victim, seed: int) -> None:
    victim.until_stage("converting")
    time.sleep(random.Random(seed).uniform(0, 1.5))
    assert victim.process.poll() is None, "it must be killed at work: the delay is too long"
    os.kill(victim.process.pid, signal.SIGKILL)
    victim.process.communicate()
    assert_a_rerun_ends_undisturbed(victim)
