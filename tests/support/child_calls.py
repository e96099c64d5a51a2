"""Calls for conversion children under test: each does one thing that a reader has been seen to do."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from contract.codes import FailureCode
from contract.errors import RecordingFailed


def echo(value: Any) -> Any:
    return value


def own_pid() -> int:
    return os.getpid()


def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def hold_gil(seconds: int) -> None:
    """Block in C without releasing the GIL."""
    ctypes.PyDLL(None).sleep(seconds)


def fill_heap(size_bytes: int, hold_s: float = 0.0) -> int:
    block = bytearray(size_bytes)
    block[::4096] = b"x" * len(range(0, size_bytes, 4096))
    time.sleep(hold_s)
    return len(block)


def grow_slowly(step_bytes: int, pause_s: float) -> None:
    kept = []
    while True:
        kept.append(b"x" * step_bytes)
        time.sleep(pause_s)


def fill_shared(size_bytes: int, hold_s: float) -> int:
    """Memory that RLIMIT_DATA does not see."""
    with mmap.mmap(-1, size_bytes) as area:
        for at in range(0, size_bytes, 4096):
            area[at] = 1
        time.sleep(hold_s)
    return size_bytes


def map_file(path: str) -> int:
    """Read a file through a mapping: memory that the kernel can take back."""
    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as area:
        return sum(area[at] for at in range(0, len(area), 4096))


def die_by(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(10)


def exit_with(code: int) -> None:
    os._exit(code)


def segfault() -> None:
    ctypes.string_at(8)


def fail_with_errno(number: int) -> None:
    raise OSError(number, os.strerror(number))


def fail_recording() -> None:
    raise RecordingFailed(FailureCode.NOT_CONTINUOUS, detail="three epochs")


def fail_with_cause() -> None:
    try:
        fail_with_errno(errno.ENOSPC)
    except OSError as error:
        raise ValueError("the reader's own words\nand more") from error


def unpicklable() -> Any:
    return threading.Lock()


def describe(error: BaseException) -> tuple[str, str | None]:
    return type(error).__name__, None if error.__cause__ is None else type(error.__cause__).__name__


def explain_badly(_error: BaseException) -> Any:
    raise RuntimeError("the explanation fails too")


def print_and_list_descriptors() -> list[int]:
    print("a reader's chatter")
    return sorted(int(path.name) for path in Path("/proc/self/fd").iterdir())


def environment_and_threads() -> dict[str, Any]:
    return {
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "oom_score_adj": int(Path("/proc/self/oom_score_adj").read_text()),
        "main": getattr(sys.modules["__main__"], "__name__", None),
        "modules": "biosigio" in sys.modules,
        "openblas": os.environ.get("OPENBLAS_NUM_THREADS"),
    }


def touch_then_sleep(path: str, seconds: float) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(seconds)


_KEPT: list[bytes] = []


def keep(size_bytes: int) -> None:
    """Leave memory behind, as an allocator or a cache does."""
    _KEPT.append(b"x" * size_bytes)


def read_slowly(path: str, seconds: float) -> tuple[int, float, float]:
    """Hold a file open for a while; the process, and from when to when by a clock that all processes share."""
    began = time.monotonic()
    with Path(path).open("rb") as file:
        file.read()
        time.sleep(seconds)
    return os.getpid(), began, time.monotonic()
