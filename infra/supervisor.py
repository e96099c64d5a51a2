"""Keeps one server running for as long as any command needs it, then stops it and leaves.

``python -m infra.supervisor postgres|prefect --home FOLDER`` is started by whichever command needs the service first,
detaches itself, and is the only one of its kind by an exclusive lock. Commands hold the lock file ``<service>.users``
shared; when nobody has for some seconds, the supervisor holds it exclusively while it stops the server, so that a
command which comes just then waits for the end and starts a new one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

from contract.errors import ZarrmillError
from infra.home import Home, ServiceFiles
from infra.locks import try_take
from infra.postgres import PostgresServer, embedded_binaries
from infra.postgres_place import place, socket_folder
from infra.prefect_server import PrefectServer
from infra.processes import ServerFailed
from infra.services import STATE_DATABASE, in_use

__all__ = ["ALREADY_SUPERVISED", "Server", "Supervisor", "main"]

log = logging.getLogger("zarrmill.infra.supervisor")

ALREADY_SUPERVISED = 3
"""Exit code of a supervisor that found another one at work."""
_POLL_S = 0.25
_LINGER_S = 3.0
"""A command that follows another at once finds the server still running."""
_FAILED_STARTS = 4
_STEADY_S = 60.0
"""A server that ran this long begins with a clean slate when it dies."""


class Server(Protocol):
    """What is supervised."""

    @property
    def pid(self) -> int | None:
        """The number of its process."""
        ...

    def start(self) -> None:
        """Return when it answers."""
        ...

    def alive(self) -> bool:
        """Whether its process runs."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


class Supervisor:
    """Runs ``server`` until nobody holds ``files.users``, or until it is told to end."""

    def __init__(self, server: Server, url: str, files: ServiceFiles) -> None:
        self._server = server
        self._url = url
        self._files = files
        self._told_to_end = False
        self._nobody_since: float | None = None
        self._started = 0.0
        self._failures = 0

    def end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the shape of a signal handler
        """Leave soon: the handler of SIGTERM and SIGINT."""
        self._told_to_end = True

    def run(self) -> None:
        """Supervise; the server is stopped when this returns or raises."""
        last_user: int | None = None
        try:
            self._start()
            while not self._told_to_end and last_user is None:
                time.sleep(_POLL_S)
                if not self._server.alive():
                    self._files.state.unlink(missing_ok=True)
                    log.warning("the server ended by itself; starting it again")
                    self._start()
                last_user = self._last_user_left()
        finally:
            # users that arrive now wait for the lock, which ends with this process
            self._files.state.unlink(missing_ok=True)
            self._server.stop()
            log.info("stopped")

    def _start(self) -> None:
        if time.monotonic() - self._started > _STEADY_S:
            self._failures = 0
        while True:
            self._started = time.monotonic()
            try:
                self._server.start()
                break
            except ServerFailed as failure:
                self._failures += 1
                log.warning("start failed (%d): %s %s", self._failures, failure.sentence, failure.detail)
                if self._failures >= _FAILED_STARTS or self._told_to_end:
                    raise
                time.sleep(0.2 * 2**self._failures)
        log.info("running as process %s", self._server.pid)
        _write(self._files.state, {"url": self._url, "pid": self._server.pid, "supervisor": os.getpid()})

    def _last_user_left(self) -> int | None:
        """The exclusive users lock, once nobody has held it for some seconds."""
        handle = try_take(self._files.users)
        if handle is None:
            self._nobody_since = None
            return None
        now = time.monotonic()
        if self._nobody_since is None:
            self._nobody_since = now
        if now - self._nobody_since >= _LINGER_S:
            return handle
        os.close(handle)
        return None


def _write(path: Path, document: dict[str, object]) -> None:
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.write_text(json.dumps(document))
    fresh.replace(path)


@contextmanager
def _postgres(home: Home) -> Iterator[tuple[Server, str]]:
    server = PostgresServer(
        embedded_binaries(), place(home), socket_folder(home), log_path=home.service("postgres").server_log
    )
    server.initialise()
    yield _WithDatabases(server), server.url(STATE_DATABASE)


class _WithDatabases:
    """Our Postgres, which answers when its databases exist."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    @property
    def pid(self) -> int | None:
        return self._server.pid

    def start(self) -> None:
        self._server.start()
        for name in (STATE_DATABASE, "prefect"):
            self._server.create_database(name)

    def alive(self) -> bool:
        return self._server.alive()

    def stop(self) -> None:
        self._server.stop()


@contextmanager
def _prefect(home: Home) -> Iterator[tuple[Server, str]]:
    files = home.service("prefect")
    server = PrefectServer(
        home.prefect, socket_folder(home), port_file=home.run / "prefect.port", log_path=files.server_log
    )
    try:
        # side by side with the start of Postgres, which a cold start would otherwise wait for first
        server.launch()
        with in_use(home, "postgres"):
            yield server, server.url
    finally:
        server.close()


def main(arguments: list[str] | None = None) -> int:
    """Take the lock, detach, supervise. Returns at once, in the process that was called."""
    parser = argparse.ArgumentParser(prog="python -m infra.supervisor")
    parser.add_argument("service", choices=["postgres", "prefect"])
    parser.add_argument("--home", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    os.closerange(3, 4096)  # whatever the command's libraries left open without close-on-exec
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(levelname)s %(message)s")
    home = Home(chosen.home)
    files = home.service(chosen.service)
    # somebody who only asks whether the lock is held has it for a moment
    if (lock := try_take(files.supervisor, patience_s=1.0)) is None:
        return ALREADY_SUPERVISED
    if os.fork():
        # the child shares the lock; the one who called us needs not wait for it to end
        os._exit(0)
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return _supervise(home, chosen.service, files)


def _supervise(home: Home, service: str, files: ServiceFiles) -> int:
    for stale in (files.error, files.state):
        stale.unlink(missing_ok=True)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _postgres(home) if service == "postgres" else _prefect(home) as (server, url):
            supervisor = Supervisor(server, url, files)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, supervisor.end)
            supervisor.run()
    except ZarrmillError as error:
        log.error("giving up: %s %s", error.sentence, error.detail)  # noqa: TRY400 - the sentence and detail say it all
        _write(files.error, {"code": error.code, "sentence": error.sentence, "detail": error.detail})
        return 1
    except Exception as error:  # the boundary of this process: whoever waits for the server is told why
        log.exception("giving up")
        with contextlib.suppress(OSError):
            _write(
                files.error,
                {
                    "code": ServerFailed.code,
                    "sentence": f"our {service} could not be run",
                    "detail": repr(error)[:2000],
                },
            )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
