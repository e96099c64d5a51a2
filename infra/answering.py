"""Whether something answers: the health checks of containers and pods. ``python -m infra.answering WHERE`` ends with 0 when it does.

``http://127.0.0.1:8321/healthz`` answers below 400; ``tcp://127.0.0.1:8786`` takes connections; ``file:PATH`` was touched in the last
90 seconds, as a runner touches its own; ``peer:8786`` is spoken with: a worker answers nobody but its scheduler, and stands in a connection
to that. Imports nothing heavy, because it runs every half minute.
"""

from __future__ import annotations

import socket
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["is_answering"]

_TIMEOUT_S = 5.0
_BEAT_S = 90.0
_ESTABLISHED = "01"


def is_answering(where: str, *, proc: Path = Path("/proc")) -> bool:
    """Whether ``where``, written as above, answers."""
    parts = urlsplit(where)
    try:
        if parts.scheme == "file":
            return time.time() - Path(parts.path).stat().st_mtime < _BEAT_S
        if parts.scheme == "peer":
            return _is_connected(int(parts.path), proc)
        if parts.scheme == "tcp":
            socket.create_connection((parts.hostname or "", parts.port or 0), timeout=_TIMEOUT_S).close()
            return True
        with urllib.request.urlopen(where, timeout=_TIMEOUT_S) as answer:  # noqa: S310 the compose file names the address
            return bool(answer.status < 400)
    except (OSError, ValueError):
        return False


def _is_connected(port: int, proc: Path) -> bool:
    """Whether a TCP connection of this network namespace to ``port`` of a peer stands."""
    lines: list[str] = []
    for table in ("net/tcp", "net/tcp6"):
        if (proc / table).exists():
            lines += (proc / table).read_text().splitlines()[1:]
    for line in lines:
        _slot, _local, remote, state, *_rest = line.split()
        if state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) == port:
            return True
    return False


if __name__ == "__main__":
    sys.exit(0 if len(sys.argv) == 2 and is_answering(sys.argv[1]) else 1)
