"""Advisory file locks (flock): the kernel gives them back when their holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["holding", "is_held", "take", "try_take"]


def _open(path: Path) -> int:
    # the folder may have been removed by whoever cleans up, and close-on-exec so that a program we start does not keep
    # the lock after we are gone
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_there(handle: int, path: Path) -> bool:
    """Whether the lock that was waited for is still the one that others find at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def take(path: Path, *, shared: bool = False) -> int:
    """Wait for the lock; the descriptor that holds it until it is closed. The folder is made if needed."""
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            os.close(handle)
            raise
        if _is_there(handle, path):
            return handle
        os.close(handle)


def try_take(path: Path, *, shared: bool = False, patience_s: float = 0.0) -> int | None:
    """Take the lock if it becomes free within ``patience_s``; the descriptor that holds it, or None."""
    deadline = time.monotonic() + patience_s
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.02)
            continue
        if _is_there(handle, path):
            return handle
        os.close(handle)


@contextmanager
def holding(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock for the length of a block, waiting for it first."""
    handle = take(path, shared=shared)
    try:
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock exclusively. A shared lock is taken for the moment of the question."""
    handle = try_take(path, shared=True)
    if handle is None:
        return True
    os.close(handle)
    return False
