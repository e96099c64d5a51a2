"""Commands that share the embedded Postgres, and the kills it must outlive. Everything here is a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from contract.errors import Refused
from infra.home import Home
from infra.locks import is_held
from infra.postgres_place import embedded_binaries, folders_outside, place
from infra.processes import command_line, is_running, running_in, wait_gone
from infra.services import database, stopped
from infra.settings import Settings, load_settings

_USER = Path(__file__).resolve().parents[1] / "support" / "service_user.py"


class Place:
    """One home with what runs in it, seen from outside."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.settings: Settings = load_settings(home=folder)
        self.files = self.home.service("postgres")
        self.commands: list[subprocess.Popen[str]] = []

    def postmasters(self) -> list[int]:
        inside = running_in(place(self.home), "postgres")
        return [pid for pid in inside if not "".join(command_line(pid)[:1]).startswith("postgres: ")]

    def supervisors(self) -> list[int]:
        wanted = ["infra.supervisor", "postgres", "--home", str(self.home.path)]
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        return [pid for pid in numbers if command_line(pid)[-4:] == wanted and is_running(pid)]

    def command(self) -> subprocess.Popen[str]:
        """Start a command that needs the database and stays until its input is closed."""
        started = subprocess.Popen(
            [sys.executable, str(_USER), str(self.home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.commands.append(started)
        return started

    def stop_everything(self) -> None:
        for command in self.commands:
            command.kill()
            command.communicate()
        for pid in self.supervisors():
            os.kill(pid, signal.SIGTERM)
        for pid in [*self.supervisors(), *self.postmasters()]:
            if not wait_gone(pid, 60):
                os.kill(pid, signal.SIGKILL)


def _address(command: subprocess.Popen[str]) -> str:
    assert command.stdout is not None
    return command.stdout.readline().strip()


def _leave(command: subprocess.Popen[str]) -> None:
    command.communicate()
    assert command.returncode == 0


def _query(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _eventually(holds: Callable[[], bool], what: str, timeout_s: float = 90) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A home in a private folder, as root's own and every temporary folder is, with its Postgres once made."""
    folder = tmp_path_factory.mktemp("services") / "home"
    here = Place(folder)
    try:
        yield here
    finally:
        here.stop_everything()


def test_five_commands_at_once_share_one_postmaster_which_goes_when_they_have_gone(shared: Place) -> None:
    commands = [shared.command() for _ in range(5)]
    addresses = {_address(command) for command in commands}
    assert len(addresses) == 1
    assert len(shared.postmasters()) == 1
    assert len(shared.supervisors()) == 1
    supervisor, postmaster = shared.supervisors()[0], shared.postmasters()[0]
    # the supervisor belongs to none of them: another session, no terminal, no descriptor of theirs
    assert os.getsid(supervisor) not in {os.getsid(command.pid) for command in commands}
    for command in commands[:-1]:
        _leave(command)
    assert is_running(postmaster)
    _leave(commands[-1])
    left = time.monotonic()
    _eventually(lambda: not shared.supervisors(), "the supervisor leaves")
    assert time.monotonic() - left < 90
    assert not shared.postmasters()
    assert not shared.files.state.exists()
    assert not is_held(shared.files.users)


def test_a_killed_supervisor_is_replaced_and_its_postmaster_kept_while_a_command_works(shared: Place) -> None:
    with database(shared.settings) as url:
        _query(url, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 1 AS n")
        postmaster, supervisor = shared.postmasters(), shared.supervisors()
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute("INSERT INTO kept VALUES (2)")
            os.kill(supervisor[0], signal.SIGKILL)
            # the next command starts a supervisor if the watch of this one has not yet
            other = shared.command()
            assert _address(other) == url
            connection.commit()
        assert shared.postmasters() == postmaster, "the running server is adopted, not doubled, not restarted"
        assert len(shared.supervisors()) == 1
        assert shared.supervisors() != supervisor
        assert _query(url, "SELECT n FROM kept ORDER BY n") == [(1,), (2,)]
        _leave(other)


def test_a_command_alone_replaces_its_killed_supervisor(shared: Place) -> None:
    with database(shared.settings):
        os.kill(shared.supervisors()[0], signal.SIGKILL)
        _eventually(lambda: len(shared.supervisors()) == 1, "the watch starts another")


def test_a_killed_postmaster_is_started_again_with_its_data(shared: Place) -> None:
    with database(shared.settings) as url:
        _query(url, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 3 AS n")
        killed = shared.postmasters()
        os.kill(killed[0], signal.SIGKILL)
        _eventually(lambda: shared.postmasters() not in ([], killed), "another postmaster")
        with database(shared.settings) as again:
            assert again == url
            assert _query(again, "SELECT n FROM kept") == [(3,)]
        assert len(shared.postmasters()) == 1


@pytest.mark.parametrize("order", ["supervisor first", "postmaster first"])
def test_after_the_kill_of_everything_the_next_command_works_with_all_data(shared: Place, order: str) -> None:
    user = shared.command()
    url = _address(user)
    _query(url, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 4 AS n")
    victims = [*shared.supervisors(), *shared.postmasters(), user.pid]
    if order == "postmaster first":
        # the supervisor may just be starting the next postmaster when it is killed
        victims[0], victims[1] = victims[1], victims[0]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    user.communicate()
    with database(shared.settings) as again:
        assert again == url
        assert _query(again, "SELECT n FROM kept") == [(4,)]
        assert len(shared.postmasters()) == 1
        assert len(shared.supervisors()) == 1


def test_a_server_left_without_supervisor_and_user_is_adopted_and_ended(shared: Place) -> None:
    user = shared.command()
    _address(user)
    user.kill()
    user.communicate()
    postmaster = shared.postmasters()
    os.kill(shared.supervisors()[0], signal.SIGKILL)
    with database(shared.settings):
        assert shared.postmasters() == postmaster
    _eventually(lambda: not shared.postmasters(), "the server ends")


def test_two_threads_of_one_command_may_ask_side_by_side(shared: Place) -> None:
    addresses: list[str] = []

    def ask() -> None:
        with database(shared.settings) as url:
            addresses.append(url)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(addresses) == 2
    assert len(set(addresses)) == 1


def test_nothing_is_stopped_under_another_command_and_nothing_starts_while_it_is_stopped(shared: Place) -> None:
    user = shared.command()
    _address(user)
    with pytest.raises(Refused, match="another command is using the postgres"), stopped(shared.home, patience_s=0.2):
        pytest.fail("it was stopped")
    assert len(shared.postmasters()) == 1
    _leave(user)
    with stopped(shared.home):
        assert not shared.postmasters()
        assert not shared.supervisors()
        waiting = shared.command()
        time.sleep(1.5)
        assert not shared.postmasters()
    assert _address(waiting)
    _leave(waiting)


def test_data_of_another_version_is_refused_in_the_command_that_asked(shared: Place) -> None:
    with stopped(shared.home):
        version = place(shared.home) / "PG_VERSION"
        ours = version.read_text()
        version.write_text("17\n")
    try:
        with pytest.raises(Refused, match=r"Postgres 17 .* Postgres 18"), database(shared.settings):
            pytest.fail("it was opened")
    finally:
        version.write_text(ours)
    with database(shared.settings):
        assert len(shared.postmasters()) == 1


def test_a_stale_state_file_is_not_believed(shared: Place) -> None:
    with stopped(shared.home):
        shared.files.state.write_text(
            json.dumps({"url": "postgresql+psycopg://postgres@/zarrmill?host=/nowhere", "pid": 1, "supervisor": 1})
        )
    with database(shared.settings) as url:
        assert "nowhere" not in url


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user's name")
def test_where_root_may_make_no_namespace_another_user_runs_the_server(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    # without a PATH no program is found that makes one
    command = [sys.executable, str(_USER), str(home.path)]
    readable = all(folder.stat().st_mode & 0o001 for folder in embedded_binaries().parents)
    try:
        done = subprocess.run(
            command, env={"PATH": "/nonexistent"}, input="", capture_output=True, text=True, check=False
        )
        if not readable:
            assert "install zarrmill where every user may read it" in done.stderr
            return
        assert done.returncode == 0, done.stderr
        (aside,) = folders_outside(home)
        assert aside.parent == Path("/var/tmp")
        assert (aside.stat().st_uid, (aside / "data").stat().st_uid) == (65534, 65534)
        assert stat.S_IMODE(aside.stat().st_mode) == 0o700
        _eventually(lambda: not is_held(home.service("postgres").supervisor), "the supervisor leaves")
        # the other way of running must not begin an empty state beside it
        done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert f"the data of this home lies in {aside}/data" in done.stderr
    finally:
        _eventually(lambda: not is_held(home.service("postgres").supervisor), "the supervisor leaves")
        for folder in folders_outside(home):
            shutil.rmtree(folder)


def test_a_named_database_that_cannot_be_reached_is_refused_without_its_password(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path, database_url="postgresql://zarrmill:Gr8secret@127.0.0.1:9/zarrmill")
    with pytest.raises(Refused, match="ZARRMILL_DATABASE_URL") as caught, database(settings):
        pytest.fail("it was reached")
    assert "Gr8secret" not in caught.value.sentence + str(caught.value.detail)


@pytest.mark.postgres_versions
def test_a_named_database_is_used_as_it_is(database_url: str, tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home", database_url=database_url)
    with database(settings) as url:
        assert _query(url, "SELECT 1") == [(1,)]
    assert not (tmp_path / "home").exists(), "no server of our own is begun"
