"""Who owns a run on this machine: lock files that the kernel gives back when their holder ends."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from db.leases import Owner
from infra.host import host_key
from infra.locks import take, try_take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.home import Home

__all__ = ["Ownership", "is_gone", "owning", "workers_ended"]

_WORKERS_END_WITHIN_S = 20.0  # workers of a killed command were seen to be gone within 4 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """What a command holds while it works on a dataset.

    ``owner`` goes into the dataset lease; every worker process of the command keeps ``workers_lock`` locked (shared)
    for as long as it lives, so that nobody takes the dataset over while one of them could still write.
    """

    owner: Owner
    workers_lock: Path


def _workers_lock(lock_path: Path) -> Path:
    return lock_path.with_suffix(".workers")


@contextmanager
def owning(home: Home) -> Iterator[Ownership]:
    """Hold a lock file of this command's own for the length of the block."""
    path = home.leases / f"{uuid4().hex}.lock"
    handle = take(path)
    try:
        yield Ownership(
            owner=Owner(host=_machine(), pid=os.getpid(), lock_path=str(path)), workers_lock=_workers_lock(path)
        )
    finally:
        # a lease that is still in the database now, because Postgres was away, runs out by itself
        path.unlink(missing_ok=True)
        _workers_lock(path).unlink(missing_ok=True)
        os.close(handle)


def _machine() -> str:
    """Name this machine since it was started: after a restart nobody of before lives."""
    return f"{socket.gethostname()}/{host_key().partition(':')[0]}"


def is_gone(owner: Owner) -> bool:
    """Whether the owner certainly lives no more and left no worker behind.

    Of an owner on another machine, or in a container whose files are not seen here, nobody knows: its lease runs out.
    """
    return _command_is_gone(owner) and not _is_locked(_workers_lock(Path(owner.lock_path)))


def workers_ended(owner: Owner) -> None:
    """Wait a little for the workers of an owner that is gone, so that a command typed right after a kill is not refused."""
    workers = _workers_lock(Path(owner.lock_path))
    if _command_is_gone(owner) and workers.exists():
        handle = try_take(workers, patience_s=_WORKERS_END_WITHIN_S)
        if handle is not None:
            os.close(handle)


def _command_is_gone(owner: Owner) -> bool:
    path = Path(owner.lock_path)
    return owner.host == _machine() and path.exists() and not _is_locked(path)


def _is_locked(path: Path) -> bool:
    """Whether anybody holds the lock, shared or not."""
    if not path.exists():
        return False
    handle = try_take(path)
    if handle is None:
        return True
    os.close(handle)
    return False
