"""A recording format for tests: an EDF with a companion that says what goes wrong while its header is read.

Put this folder on PYTHONPATH: ``*.dist-info`` beside this file makes it an installed distribution with an entry point.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.formats.edf import EDF
from tasks.formats.protocol import Header, Route

__all__ = ["Fault"]


class Fault:
    """Does what the companion ``<stem>.fault`` says, then reads the EDF."""

    name = "fault"
    extensions = (".flt",)
    folder_extensions = ()
    companions = frozenset({".fault"})
    precedence = 1000
    source_format = "edf"

    def header(self, primary: Path) -> Header:
        steps = json.loads(primary.with_suffix(".fault").read_text())
        for step in steps:
            _act(step, primary)
        claimed = [step["channels"] for step in steps if step["do"] == "claim"]
        found = EDF().header(primary)
        return replace(found, n_channels=claimed[-1]) if claimed else found

    def route(self, header: Header) -> Route:
        return EDF().route(header)

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        return max(64 << 20, EDF().projected_bytes(header, size_bytes, route, served_rate_hz))

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - the file itself
        if primary.suffix == ".edf":
            return primary
        # biosigIO goes by the ending
        target = work / f"{primary.stem}.edf"
        target.unlink(missing_ok=True)
        target.symlink_to(primary.resolve())
        return target


def _act(step: dict[str, Any], primary: Path) -> None:
    if "unless" in step and Path(step["unless"]).exists():
        return
    if step.get("in_child") and b"fork_server" not in Path(f"/proc/{os.getppid()}/cmdline").read_bytes():
        return  # a command reads headers too, to project
    if "mark" in step:
        Path(step["mark"]).write_text(str(os.getpid()))
    match step["do"]:
        case "mark" | "claim":  # what is claimed stands in the header
            pass
        case "sleep":
            time.sleep(step["seconds"])
        case "wait":
            deadline = time.monotonic() + 280
            while not Path(step["for"]).exists():
                if time.monotonic() > deadline:
                    raise TimeoutError(step["for"])
                time.sleep(0.02)
        case "allocate":
            _KEPT.append(bytearray(os.urandom(1) * step["bytes"]))
            time.sleep(step.get("seconds", 0.5))
        case "hold":  # so many bytes and no more at any instant, given back at the end
            block = bytearray(step["bytes"])
            block[::4096] = b"\1" * len(range(0, step["bytes"], 4096))
            time.sleep(step["seconds"])
        case "shared":
            import mmap

            area = mmap.mmap(-1, step["bytes"])
            for at in range(0, step["bytes"], 4096):
                area[at] = 1
            time.sleep(30)
        case "signal":
            os.kill(os.getpid(), step["number"])
            time.sleep(30)
        case "exit":
            os._exit(step["code"])
        case "leak":
            while True:
                _KEPT.append(bytearray(b"x" * (32 << 20)))
                time.sleep(0.02)
        case "enter_group":
            # A control group with a memory limit of its own, made by the test.
            Path(step["procs"]).write_text(str(os.getpid()))
        case "segfault":
            ctypes.string_at(8)
        case "kill_worker":
            # This child, its fork server, its worker.
            server = os.getppid()
            worker = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(worker, signal.SIGKILL)
            time.sleep(30)
        case "fill":
            _fill(primary.parent / "fill", step)
        case "disk_full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "change_source":
            with primary.open("ab") as file:
                file.write(b"\0")
        case "hold_gil":
            ctypes.PyDLL(None).sleep(int(step["seconds"]))
        case other:
            raise ValueError(other)


def _fill(path: Path, step: dict[str, Any]) -> None:
    """Take this much of the scratch disk; when there is no more, say so, wait until told, and fail as any writer would."""
    try:
        with path.open("wb", buffering=0) as file:
            for _ in range(step["bytes"] >> 16):
                file.write(b"x" * (1 << 16))
    except OSError:
        if "until" in step:
            Path(step["until"]).with_name("full").touch()
            while not Path(step["until"]).exists():
                time.sleep(0.02)
        raise


_KEPT: list[bytearray] = []
