"""The scratch of one worker process: a folder of its own with one folder for each attempt, which nothing outlives.

The process keeps the folder's lock file locked, so whoever finds it free knows that the process is gone, whatever container it
was in. Removing is repeated until it has succeeded: a child that is being killed may write while its folder is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from infra.host import host_key, process_is_gone, process_started

__all__ = ["WorkerScratch", "is_in_use", "is_left_behind"]

_LOG = logging.getLogger("zarrmill.worker")

_PREFIX: Final = "worker-"
_LOCK: Final = ".lock"
_BLOCK_BYTES: Final = 512  # of st_blocks, whatever the file system's own are
_NEARLY_FULL_BYTES: Final = 4 << 20
_REMEMBERED_S: Final = (
    60.0  # by the time one attempt is looked at, the folder of the one that filled the disk may be gone
)
_CANNOT_LOCK: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class WorkerScratch:
    """The scratch folders of the attempts of this process below ``root``. Safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._told: set[Path] = set()
        self._full_at = float("-inf")
        name = str(uuid4())
        # Locked before it has the name by which others look at it: a sweeper never meets it unlocked.
        new = root / f".new-{name}"
        new.mkdir(mode=0o700)
        self._lock = _locked(new / _LOCK)
        self.folder = new.rename(root / f"{_PREFIX}{name}")

    def make(self, attempt_id: UUID) -> Path:
        """A new, empty folder for an attempt, with a folder ``source`` in it."""
        folder = self.of(attempt_id)
        folder.mkdir(mode=0o700)
        (folder / "source").mkdir()
        return folder

    def of(self, attempt_id: UUID) -> Path:
        """The folder of an attempt."""
        return self.folder / str(attempt_id)

    def was_filled_by_others(self, attempt_id: UUID, given_bytes: int, *, was_full: bool) -> bool:
        """Whether the disk was full though this attempt had not taken more than the ``given_bytes`` it was promised.

        ``was_full`` says that it certainly was; else it was when others found it so a moment ago, or when the rest of the
        promise cannot be kept now.
        """
        used = _used_bytes(self.of(attempt_id))
        disk = os.statvfs(self.folder)
        if was_full or disk.f_bavail * disk.f_frsize < max(given_bytes - used, _NEARLY_FULL_BYTES):
            self._full_at = time.monotonic()
        return used <= given_bytes and time.monotonic() - self._full_at < _REMEMBERED_S

    def remove(self, attempt_id: UUID) -> None:
        """Remove an attempt's folder; what cannot be removed now is left for ``tend``."""
        self._remove(self.of(attempt_id))

    def tend(self, is_held: Callable[[UUID], bool]) -> None:
        """Remove what is left of attempts that nobody holds, and of processes that are gone."""
        for folder in _folders(self.folder):
            with contextlib.suppress(ValueError):
                if not is_held(UUID(folder.name)):
                    self._remove(folder)
        for folder in _folders(self._root):
            if folder != self.folder and is_left_behind(folder):
                self._remove(folder)

    def close(self) -> None:
        """Remove everything and give the lock back; what cannot be removed, the next process removes."""
        self._remove(self.folder)
        os.close(self._lock)

    def _remove(self, folder: Path) -> None:
        if _is_removed(folder):
            self._told.discard(folder)
        elif folder not in self._told:
            self._told.add(folder)
            _LOG.warning("the scratch folder %s could not be removed; it is tried again", folder)


def is_left_behind(folder: Path) -> bool:
    """Whether ``folder`` is the scratch of a worker process that certainly is gone."""
    if not folder.name.startswith(_PREFIX):
        return False
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True  # whoever removed it did not get to the end
    except OSError:
        return False
    try:
        owner: dict[str, Any] = json.loads(os.read(handle, 4096))
        if owner["boot"] != _boot_id():
            return bool(owner["host_name"] == socket.gethostname())
        if not owner["locks"]:
            return bool(owner["host"] == host_key()) and process_is_gone(int(owner["pid"]), owner["started"])
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    finally:
        os.close(handle)
    return True


def is_in_use(folder: Path) -> bool:
    """Whether ``folder`` is the scratch of a worker process that may still live."""
    return folder.name.startswith(_PREFIX) and not is_left_behind(folder)


def _locked(path: Path) -> int:
    """The descriptor that keeps a new lock file locked and says whose it is."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    locks = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
        locks = False  # some network file systems; then the process id has to do
    owner = {
        "boot": _boot_id(),
        "host": host_key(),
        "host_name": socket.gethostname(),
        "locks": locks,
        "pid": os.getpid(),
        "started": process_started(os.getpid()),
    }
    os.write(handle, json.dumps(owner).encode())
    return handle


def _used_bytes(folder: Path) -> int:
    """What a folder takes on the disk; holes in sparse files take nothing."""
    used = 0
    for where, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                used += Path(where, name).lstat().st_blocks * _BLOCK_BYTES
    return used


def _boot_id() -> str:
    return host_key().partition(":")[0]


def _folders(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return True
    # Folders of a source may be copied without the right to write in them, as those of git-annex are.
    with contextlib.suppress(OSError):
        for where, _names, _files in os.walk(folder):
            Path(where).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
