"""A Prefect server of our own on 127.0.0.1, in the database ``prefect`` of our own Postgres.

It records runs for as long as a command needs it. Scheduling, automations, clean-up of deployments and the pages for people need a
server that stands for good; otherwise those parts stay off, which also halves the work of starting.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

from infra.processes import ServerFailed, is_running

__all__ = ["PrefectServer", "answers"]

_START_TIMEOUT_S = 180.0
_PR_SET_PDEATHSIG = 1
_SERVICES_OFF = (
    "CANCELLATION_CLEANUP",
    "DB_VACUUM",
    "EVENT_LOGGER",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
)


def answers(api_url: str, *, timeout_s: float = 2.0) -> str | None:
    """Ask a Prefect API whether it is well; None when it is, else the reason, for people."""
    # no proxy: the address is on this machine, or the operator's own
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{api_url}/health", timeout=timeout_s):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        # a server that asks who we are is there; Prefect's own settings hold the key
        return None if error.code in {401, 403} else f"it answers {error.code}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__


class PrefectServer:
    """One server, which ends with the thread that started it. It keeps its port until ``close``.

    ``home`` becomes ``PREFECT_HOME``; ``socket_dir`` is where the socket of a Postgres lies that has a
    database ``prefect``; ``port_file`` remembers the port for the next one. One that is ``standing`` has every part on.
    """

    def __init__(
        self,
        home: Path,
        socket_dir: Path,
        *,
        port_file: Path,
        log_path: Path,
        standing: bool = False,
        port: int | None = None,
    ) -> None:
        self._home = home
        self._standing = standing
        self._socket_dir = socket_dir
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        # bound here and handed down, so that no other program can take the port while the server restarts
        if port is not None:
            port_file.write_text(str(port))
        self._socket = _listen(port_file)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"

    @property
    def pid(self) -> int | None:
        """The number of the server's process."""
        return self._process.pid if self._process else None

    def launch(self) -> None:
        """Begin the server's process, which waits for its database. Its imports take 4 s, longer than a Postgres needs."""
        handle = self._socket.fileno()
        with self._log_path.open("ab" if self._standing else "wb") as output:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "infra.prefect_server",
                    str(handle),
                    str(os.getpid()),
                    str(self._socket_dir),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment(),
                cwd="/",
                pass_fds=[handle],
                start_new_session=True,
            )

    def start(self) -> None:
        """Return when the server is healthy, having launched it unless it runs.

        Raises
        ------
        ServerFailed
            It ended, or was not healthy in time.
        """
        if not self.alive():
            self.launch()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while answers(self.url, timeout_s=1.0) is not None:
            if not self.alive():
                raise ServerFailed("our Prefect server ended while it started", detail=self._end_of_log())
            if time.monotonic() > deadline:
                self.stop()
                raise ServerFailed(
                    f"our Prefect server was not healthy within {_START_TIMEOUT_S:.0f} s", detail=self._end_of_log()
                )
            time.sleep(0.05)

    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None and is_running(self._process.pid)

    def stop(self) -> None:
        """End the server. It keeps everything in Postgres, so that nothing is lost by ending it hard after 2 s."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def close(self) -> None:
        """End the server and give its port back."""
        self.stop()
        self._socket.close()

    def _environment(self) -> dict[str, str]:
        parts = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _SERVICES_OFF}
        parts["PREFECT_SERVER_UI_ENABLED"] = "false"
        if self._standing:
            parts = {"PREFECT_UI_API_URL": self.url, "PREFECT_UI_STATIC_DIRECTORY": str(self._home / "pages")}
        # nothing is inherited: the command's own PREFECT_ variables are meant for its client
        return {
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
            "PREFECT_HOME": str(self._home),
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://postgres@/prefect?host={quote(str(self._socket_dir), safe='')}",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
            "PREFECT_LOGGING_LEVEL": "WARNING",
            **parts,
        }

    def _end_of_log(self) -> str:
        return self._log_path.read_text(errors="replace")[-2000:]


def _listen(port_file: Path) -> socket.socket:
    try:
        last = int(port_file.read_text())
    except (OSError, ValueError):
        last = 0
    for port in (last, 0):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            listener.close()
            continue
        port_file.write_text(str(listener.getsockname()[1]))
        return listener
    raise ServerFailed("no port of 127.0.0.1 is free for our Prefect server")


def _serve(handle: int, parent: int, socket_dir: str) -> None:
    """Be the server: answer on the inherited socket until a signal, or the end of the parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    import psycopg
    import uvicorn
    from prefect.server.api.server import create_app

    while True:
        # without end: the parent is the one who loses patience
        try:
            psycopg.connect(host=socket_dir, user="postgres", dbname="prefect", connect_timeout=5).close()
            break
        except psycopg.OperationalError:
            time.sleep(0.05)
    listener = socket.socket(fileno=handle)
    config = uvicorn.Config(create_app, factory=True, log_level="warning", lifespan="on", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
