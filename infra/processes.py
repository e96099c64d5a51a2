"""What the kernel says of processes that are not our children (Linux, /proc)."""

from __future__ import annotations

import os
import pwd
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from contract.errors import ZarrmillError

__all__ = ["ServerFailed", "begun", "command_line", "end_process", "is_running", "running_in", "user_name", "wait_gone"]

_PROC = Path("/proc")


class ServerFailed(ZarrmillError):
    """A server of ours did not start or did not stay up; the detail holds the end of its log."""

    code = "server_failed"


def is_running(pid: int) -> bool:
    """Whether a process with this number executes; a zombie, which only waits to be reaped, does not."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in {"Z", "X", "x"}


def begun(pid: int) -> str | None:
    """The process as no other ever is: its number, when it began, and since when the machine runs; None when it is gone."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return f"{pid} {fields[19]} {boot}"


def command_line(pid: int) -> list[str]:
    """The arguments of a process, empty when it is gone."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="surrogateescape").rstrip("\0").split("\0")
    except OSError:
        return []


def running_in(folder: Path, program: str) -> Iterator[int]:
    """The running processes whose working folder is ``folder`` and whose executable is called ``program``.

    Processes of other users that we may not look into are left out.
    """
    try:
        wanted = folder.stat()
    except OSError:
        return
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            here = (entry / "cwd").stat()
            # " (deleted)" follows when the program was replaced by an upgrade while it ran
            name = Path((entry / "exe").readlink()).name.removesuffix(" (deleted)")
        except OSError:
            continue
        if (
            (here.st_dev, here.st_ino) == (wanted.st_dev, wanted.st_ino)
            and name == program
            and is_running(int(entry.name))
        ):
            yield int(entry.name)


def wait_gone(pid: int, timeout_s: float) -> bool:
    """Whether the process, a child or not, has ended within ``timeout_s``."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:  # a kernel or sandbox without pidfd
        return _poll_gone(pid, timeout_s)
    try:
        # the descriptor becomes readable when the process ends, reaped or not
        return bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)


def _poll_gone(pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_running(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def end_process(pid: int, *stages: tuple[signal.Signals, float]) -> bool:
    """Send each signal in turn until the process is gone, waiting the seconds beside it; whether it is gone."""
    for number, patience_s in stages:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        if wait_gone(pid, patience_s):
            return True
    return not is_running(pid)


def user_name() -> str:
    """The user whose process this is."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run under a number that nobody has given a name
        return f"uid {os.geteuid()}"
