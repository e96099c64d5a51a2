"""The servers that a command needs, for as long as it needs them: its Postgres and its Prefect.

Both are the ones that settings name, or our own, started on demand and shared by all commands with the same home.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

from contract.errors import Refused, ZarrmillError
from infra.home import Home, ServiceFiles
from infra.locks import holding, is_held, try_take
from infra.postgres import PostgresServer
from infra.postgres_place import embedded_binaries, place, socket_folder
from infra.prefect_server import answers
from infra.processes import ServerFailed, command_line
from infra.standing import read_standing

if TYPE_CHECKING:
    # pydantic is not for the supervisor, which imports this module and must start at once
    from infra.settings import Settings

__all__ = ["STATE_DATABASE", "check_prefect", "database", "in_use", "our_postgres", "prefect_api", "stopped"]

log = logging.getLogger("zarrmill.infra.services")

STATE_DATABASE = "zarrmill"
_TIMEOUT_S = {"postgres": 180.0, "prefect": 300.0}
_OLDEST_POSTGRES = 15
_WATCH_EVERY_S = 2.0
_LAUNCHES = 3


@contextmanager
def database(settings: Settings) -> Iterator[str]:
    """The SQLAlchemy address (psycopg 3) of the state's database, which answers. It may hold a password.

    Raises
    ------
    Refused
        ``ZARRMILL_DATABASE_URL`` cannot be reached or is too old, or the data of our own is another version's.
    ServerFailed
        Our own did not start.
    """
    if settings.database_url is None:
        with in_use(Home(settings.home), "postgres") as url:
            yield url
        return
    url = settings.database_url.get_secret_value()
    _check_database(url)
    yield url


@contextmanager
def prefect_api(settings: Settings) -> Iterator[str]:
    """The address of a Prefect API that answers.

    Raises
    ------
    Refused
        ``PREFECT_API_URL`` cannot be reached.
    ServerFailed
        Our own did not start.
    """
    if settings.prefect_api_url is None:
        standing = read_standing(Home(settings.home))
        url = None if standing is None else standing.addresses.get("prefect")
        if url is not None and answers(url) is None:
            yield url  # `zarrmill up` keeps it
            return
        with in_use(Home(settings.home), "prefect") as url:
            yield url
        return
    check_prefect(settings)
    yield settings.prefect_api_url


def our_postgres(home: Home) -> tuple[int | None, str | None]:
    """The process and the libpq address of our own Postgres, while it runs."""
    try:
        told = json.loads(home.service("postgres").state.read_text())
    except (FileNotFoundError, ValueError):
        return None, None
    return told.get("pid"), _libpq(str(told["url"]))


def check_prefect(settings: Settings) -> None:
    """Refuse a ``PREFECT_API_URL`` that does not answer; one of our own is started when it is needed."""
    if settings.prefect_api_url is None:
        return
    reason = answers(settings.prefect_api_url, timeout_s=10.0)
    if reason is not None:
        raise Refused(
            f"PREFECT_API_URL names {settings.prefect_api_url}, which does not answer as a Prefect API ({reason}); "
            f"start that server, correct the address (it ends in /api), or unset it to have one of our own"
        )


@contextmanager
def in_use(home: Home, service: str) -> Iterator[str]:
    """The address of our own ``postgres`` or ``prefect``, which runs until nobody uses it any more.

    While the block runs, a supervisor that was killed is replaced.
    """
    files = home.service(service)
    with holding(files.users, shared=True):
        url = _ensure(home, service, files)
        left = threading.Event()
        watch = threading.Thread(
            target=_watch, args=(home, service, files, left), name=f"zarrmill-{service}-watch", daemon=True
        )
        watch.start()
        try:
            yield url
        finally:
            left.set()
            watch.join()
            # a server whose supervisor was killed would run for ever; a new one adopts it and ends both
            if not is_held(files.supervisor):
                _launch(home, service, files)


@contextmanager
def stopped(home: Home, *, patience_s: float = 10.0) -> Iterator[None]:
    """For the length of the block our own servers are stopped and nobody can start them.

    Raises
    ------
    Refused
        Another command still uses them after ``patience_s``.
    """
    with _alone(home, "prefect", patience_s), _alone(home, "postgres", patience_s):
        data = place(home)
        if (data / "PG_VERSION").exists():
            # one that lost its supervisor is adopted and ended
            server = PostgresServer(embedded_binaries(), data, socket_folder(home))
            if server.adopt():
                server.stop()
        yield


@contextmanager
def _alone(home: Home, service: str, patience_s: float) -> Iterator[None]:
    """Hold a service's users lock exclusively, with its supervisor ended."""
    files = home.service(service)
    # Prefect's supervisor is a user of Postgres and takes a moment to leave
    handle = try_take(files.users, patience_s=patience_s)
    if handle is None:
        raise Refused(f"another command is using the {service} of {home.path}; wait until it has ended, or end it")
    try:
        deadline = time.monotonic() + 60
        while is_held(files.supervisor):
            if time.monotonic() > deadline:
                raise ServerFailed(f"the supervisor of our {service} does not end")
            _tell_to_end(files)
            time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def _tell_to_end(files: ServiceFiles) -> None:
    try:
        supervisor = int(files.supervisor.read_text())
    except (OSError, ValueError):
        return
    # one that has only just begun has not written its number yet, and the old number may be a stranger's by now
    if "infra.supervisor" in command_line(supervisor):
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor, signal.SIGTERM)


def _ensure(home: Home, service: str, files: ServiceFiles) -> str:
    """Return the address once the service answers, having started a supervisor if there is none."""
    deadline = time.monotonic() + _TIMEOUT_S[service]
    launches = 0
    while True:
        if not is_held(files.supervisor):
            if launches:
                _raise_error_of(files)
            if launches == _LAUNCHES:
                raise ServerFailed(f"the supervisor of our {service} ended {launches} times; its log is {files.log}")
            _launch(home, service, files)
            launches += 1
        url = _address(files)
        if url is not None and _answers(service, url):
            return url
        if time.monotonic() > deadline:
            raise ServerFailed(f"our {service} did not answer in time; its log is {files.server_log}")
        time.sleep(0.05)


def _launch(home: Home, service: str, files: ServiceFiles) -> None:
    with holding(files.starting):
        if is_held(files.supervisor):
            return
        with files.log.open("ab") as output:
            # -P: the folder we were called in must not shadow our modules
            subprocess.run(
                [sys.executable, "-P", "-m", "infra.supervisor", service, "--home", str(home.path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
                check=False,
                timeout=60,
            )


def _watch(home: Home, service: str, files: ServiceFiles, left: threading.Event) -> None:
    while not left.wait(_WATCH_EVERY_S):
        try:
            if not is_held(files.supervisor):
                log.warning("the supervisor of our %s is gone; starting another", service)
                _launch(home, service, files)
        except (OSError, subprocess.TimeoutExpired, ZarrmillError) as error:
            log.warning("no supervisor for our %s: %s", service, error)


def _address(files: ServiceFiles) -> str | None:
    try:
        return str(json.loads(files.state.read_text())["url"])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def _answers(service: str, url: str) -> bool:
    if service == "prefect":
        return answers(url) is None
    try:
        psycopg.connect(_libpq(url), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _raise_error_of(files: ServiceFiles) -> None:
    try:
        told = json.loads(files.error.read_text())
    except (FileNotFoundError, ValueError):
        return
    kind = Refused if told["code"] == Refused.code else ServerFailed
    raise kind(told["sentence"], detail=told["detail"] or f"the log is {files.log}")


def _libpq(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


def _check_database(url: str) -> None:
    try:
        with psycopg.connect(_libpq(url), connect_timeout=10) as connection:
            version = connection.info.server_version // 10_000
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        raise Refused(
            f"ZARRMILL_DATABASE_URL names a database that cannot be reached ({reason}); start it, correct the address, or unset it"
        ) from None
    if version < _OLDEST_POSTGRES:
        raise Refused(f"ZARRMILL_DATABASE_URL names a Postgres {version}; it must be {_OLDEST_POSTGRES} or newer")
