"""A process that ends with the one that started it: the kernel sends it SIGKILL when a pipe that only its starter holds open closes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["start_bound"]

_F_SETSIG: Final = getattr(fcntl, "F_SETSIG", 10)


def start_bound(command: list[str], environment: Mapping[str, str], log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command whose output goes to ``log``; the process, and the descriptor to close once it has ended."""
    watched, lifeline = os.pipe2(os.O_CLOEXEC)
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[watched],
                start_new_session=True,  # Ctrl-C is for the starter, which decides what ends
            )
        # The owner and signal belong to the pipe's read end, which the process now holds, and outlive this descriptor.
        fcntl.fcntl(watched, fcntl.F_SETOWN, process.pid)
        fcntl.fcntl(watched, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(watched, fcntl.F_SETFL, fcntl.fcntl(watched, fcntl.F_GETFL) | os.O_ASYNC)
    finally:
        os.close(watched)
    return process, lifeline
