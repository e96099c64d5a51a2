"""The embedded Postgres itself: what kills and odd places leave behind never loses data or blocks the next start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from contract.errors import Refused
from infra.home import Home
from infra.postgres import PostgresServer, ServerFailed, debian_binaries, embedded_binaries
from infra.postgres_place import place, socket_folder
from infra.processes import command_line, is_running, running_in, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs on Linux only")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a data folder that all tests here share; each leaves it as it can be used again."""
    made = Home(tmp_path_factory.mktemp("postgres-home"))
    half = place(made).with_name("data.fresh")
    (half / "base").mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    PostgresServer(embedded_binaries(), place(made), socket_folder(made), fsync=False).initialise()
    return made


@pytest.fixture
def server(home: Home) -> Iterator[PostgresServer]:
    made = PostgresServer(embedded_binaries(), place(home), socket_folder(home), die_with_parent=True)
    try:
        yield made
    finally:
        made.stop(patience_s=5)
        for left in running_in(made.data_dir, "postgres"):
            os.kill(left, signal.SIGKILL)
            wait_gone(left, 60)


def _query(server: PostgresServer, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def _postmasters(server: PostgresServer) -> list[int]:
    return [pid for pid in running_in(server.data_dir, "postgres") if not command_line(pid)[0].startswith("postgres: ")]


def test_it_answers_on_its_socket_only_in_utf8_and_utc(server: PostgresServer) -> None:
    server.start()
    assert _query(server, "SHOW listen_addresses") == [("",)]
    assert _query(server, "SHOW server_encoding") == [("UTF8",)]
    assert _query(server, "SELECT datctype FROM pg_database WHERE datname = 'postgres'") == [("C.UTF-8",)]
    assert _query(server, "SHOW timezone") == [("UTC",)]
    # of this process's whole network namespace nothing listens for this server
    assert server.pid is not None
    inodes = {entry.readlink().name for entry in Path(f"/proc/{server.pid}/fd").iterdir()}
    listening = {f"socket:[{line.split()[9]}]" for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
    assert not inodes & listening


def test_a_database_is_made_once_and_copied_from_a_template(server: PostgresServer) -> None:
    server.start()
    assert server.create_database("first")
    assert not server.create_database("first")
    assert server.create_database('sec-ond"', template="first")
    server.drop_database('sec-ond"')
    server.drop_database('sec-ond"')


def test_data_survives_the_kill_of_the_postmaster_though_it_stays_a_zombie(server: PostgresServer) -> None:
    server.start()
    _query(server, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS n")
    killed = server.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert wait_gone(killed, 60)
    # nobody reaped it: kill(pid, 0) still succeeds, by which Postgres would judge it alive
    os.kill(killed, 0)
    again = PostgresServer(server.bin_dir, server.data_dir, server.socket_dir, die_with_parent=True)
    again.start()
    try:
        assert again.pid != killed
        assert _query(again, "SELECT n FROM kept") == [(7,)]
    finally:
        again.stop()


def test_a_pid_file_that_names_a_stranger_does_not_block_the_start(server: PostgresServer) -> None:
    server.start()
    _query(server, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS n")
    killed = server.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert wait_gone(killed, 60)
    lock = server.data_dir / "postmaster.pid"
    rest = lock.read_text().partition("\n")[2]
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        lock.write_text(f"{stranger.pid}\n{rest}")
        server.start()
        assert _query(server, "SELECT n FROM kept") == [(7,)]
        assert stranger.poll() is None, "the stranger must not be touched"
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("left", ["", "not a number\n"])
def test_a_torn_pid_file_does_not_block_the_start(server: PostgresServer, left: str) -> None:
    (server.data_dir / "postmaster.pid").write_text(left)
    server.start()
    assert server.ready()


def test_a_running_postmaster_is_adopted_and_never_doubled(server: PostgresServer) -> None:
    server.start()
    second = PostgresServer(server.bin_dir, server.data_dir, server.socket_dir)
    second.start()
    assert second.pid == server.pid
    assert _postmasters(server) == [server.pid]
    second.stop()
    assert not server.alive()


def test_a_busy_backend_that_outlived_its_postmaster_is_ended_before_the_next_start(server: PostgresServer) -> None:
    server.start()
    connection = psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True)
    backend = connection.info.backend_pid
    connection.execute("DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT 7 AS n")
    assert server.pid is not None
    # stopped processes see neither the death of their postmaster nor a signal other than SIGKILL
    child = next(pid for pid in running_in(server.data_dir, "postgres") if pid == backend)
    os.kill(child, signal.SIGSTOP)
    os.kill(server.pid, signal.SIGKILL)
    try:
        assert wait_gone(server.pid, 60)
        began = time.monotonic()
        server.start()
        assert time.monotonic() - began < 90
        assert not is_running(child)
        assert _query(server, "SELECT n FROM kept") == [(7,)]
    finally:
        connection.close()


def test_data_of_another_major_version_is_refused_and_left_alone(server: PostgresServer) -> None:
    version = server.data_dir / "PG_VERSION"
    ours = version.read_text()
    version.write_text("16\n")
    try:
        with pytest.raises(Refused, match=r"Postgres 16 .* Postgres 18"):
            server.initialise()
        assert version.read_text() == "16\n"
    finally:
        version.write_text(ours)


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    data = place(home)
    data.mkdir()
    (data / "precious").write_text("")
    with pytest.raises(Refused, match="move it away"):
        PostgresServer(embedded_binaries(), data, socket_folder(home), fsync=False).initialise()
    assert (data / "precious").exists()


def test_an_initialisation_that_was_killed_begins_again(server: PostgresServer) -> None:
    # the fixture left one half done before it asked for one
    assert not server.data_dir.with_name("data.fresh").exists()
    assert (server.data_dir / "global" / "pg_control").exists()


def test_a_server_that_cannot_start_says_why(server: PostgresServer) -> None:
    configuration = server.data_dir / "postgresql.conf"
    ours = configuration.read_text()
    configuration.write_text("no_such_setting = 1\n")
    try:
        with pytest.raises(ServerFailed) as caught:
            server.start()
    finally:
        configuration.write_text(ours)
    assert "no_such_setting" in str(caught.value.detail)


def test_debians_binaries_run_in_the_same_way(postgres15: PostgresServer) -> None:
    assert postgres15.bin_dir == debian_binaries(15)
    assert str(_query(postgres15, "SHOW server_version")[0][0]).startswith("15.")


def test_a_server_ends_with_the_process_that_started_it(home: Home) -> None:
    program = f"""
import os, signal, pathlib
from infra.home import Home
from infra.postgres import PostgresServer, embedded_binaries
from infra.postgres_place import place, socket_folder
home = Home(pathlib.Path({str(home.path)!r}))
server = PostgresServer(embedded_binaries(), place(home), socket_folder(home), die_with_parent=True)
server.start()
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert wait_gone(int(done.stdout), 60)
