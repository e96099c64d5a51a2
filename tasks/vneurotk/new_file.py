"""HDF5 files that appear whole or not at all: written beside their place, closed, read again, and moved there by one rename."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from contract.codes import PendingReason
from contract.errors import NotNow, Refused

__all__ = ["FileIdentity", "writing"]

_BESIDE = ".part"


@contextlib.contextmanager
def writing(target: Path, validate: Callable[[Any], None]) -> Iterator[Any]:
    """An empty, writable ``h5py.File`` that becomes ``target`` when the block ends well.

    It lies beside ``target``, so that the last step is one rename. It is flushed, closed and synced, opened again and
    given to ``validate`` first. Whatever goes wrong on the way, also in the block, leaves ``target`` as it was and
    removes what was begun; what a killed process left, the next file of that name removes. A file that is replaced
    keeps its permission bits, a new one gets those of the umask. A symbolic link stays, and what it points to is replaced.

    Raises
    ------
    Refused
        ``target`` is a folder or something else that is no file, or its folder is not there.
    OSError
        The file could not be written, or is not what ``validate`` wants (ValueError there).
    """
    place = _place(target)
    _sweep(place)
    handle, beside = _begin(place)
    try:
        import h5py

        # HDF5's own lock would meet ours, which says that somebody is at it
        with h5py.File(beside, "w", locking=False) as file:
            yield file
            file.flush()
        _check(beside, place, validate)
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(handle, stat.S_IMODE(place.stat().st_mode))
        os.fsync(handle)
        os.replace(beside, place)  # noqa: PTH105 - the pathlib name hides that this is the atomic one
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    _sync_folder(place.parent)


def _place(target: Path) -> Path:
    place = Path(os.path.realpath(target))
    if place.exists() and not place.is_file():
        raise Refused(f"{target} is no file, so it cannot be replaced by one; name another.")
    if not place.parent.is_dir():
        raise Refused(f"The folder of {target} is not there; make it, or name another file.")
    return place


def _begin(place: Path) -> tuple[int, Path]:
    """A new file beside ``place``, held by a lock that ends with this process."""
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}{_BESIDE}")
    # where a file stands whose bits are kept, nobody else sees the new one before it has them
    mode = 0o600 if place.exists() else 0o666
    handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        beside.unlink(missing_ok=True)
        os.close(handle)
        raise
    return handle, beside


def _sweep(place: Path) -> None:
    """Remove what processes that were killed left of this file; nobody holds it any more."""
    left = re.compile(re.escape(f".{place.name}.") + "[0-9a-f]{8}" + re.escape(_BESIDE))
    for beside in place.parent.iterdir():
        if not left.fullmatch(beside.name):
            continue
        with contextlib.suppress(OSError):  # held by somebody, or gone by now, or not ours to remove
            handle = os.open(beside, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                beside.unlink()
            finally:
                os.close(handle)


def _check(beside: Path, place: Path, validate: Callable[[Any], None]) -> None:
    import h5py

    try:
        with h5py.File(beside, "r", locking=False) as file:
            validate(file)
    except (ValueError, KeyError) as error:
        raise OSError(errno.EIO, f"what was written for {place.name} is not what it should be: {error}") from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file stood at a path when it was opened, so that samples of two files are never mixed.

    Take it from the path before or after the file is opened, and ``require`` it before and after each read: the file that is
    open cannot have its number given to another one.
    """

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """The identity of the file that stands at ``path`` now."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    def require(self) -> None:
        """Return when the path still names that file.

        Raises
        ------
        NotNow
            It was replaced or removed while it was open.
        """
        try:
            now = self.path.stat()
        except FileNotFoundError:
            raise self._gone("removed") from None
        if (now.st_dev, now.st_ino) != (self.device, self.inode):
            raise self._gone("replaced")

    def _gone(self, how: str) -> NotNow:
        return NotNow(
            PendingReason.INFRA_FAILURE, detail=f"{self.path.name} was {how} while it was read; open it again"
        )
