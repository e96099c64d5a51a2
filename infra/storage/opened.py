"""Objects opened for one response: a file of a folder target, or an object of a bucket."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Protocol

from contract.errors import PreconditionFailed, StorageError
from infra.storage.beneath import open_file
from infra.storage.folder import FolderTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.storage.protocol import Target
    from infra.storage.s3_target import OpenObject, S3Target

__all__ = ["Opened", "opener"]

_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EINVAL}
)
"""No such file; something in the path is a link, a folder, a pipe, or can be no name. All of it is not served."""


class Opened(Protocol):
    """One version of an object; what replaces it meanwhile does not change what is read."""

    size_bytes: int
    etag: str

    def read(self, start: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``start``. Raises OSError when that version can be read no longer."""
        ...

    def close(self) -> None:
        """Let it go."""
        ...


def opener(target: Target) -> Callable[[str], Opened | None]:
    """The function that opens an object of ``target`` by its key; it gives None for what is not served.

    It raises OSError or StorageError when the object cannot be read now.
    """
    if isinstance(target, FolderTarget):
        root = target.root
        return lambda key: _open_file(root, key)
    from infra.storage.s3_target import S3Target

    assert isinstance(target, S3Target), "there are two kinds of target"
    bucket = target
    return lambda key: _open_object(bucket, key)


class _File:
    def __init__(self, file: int) -> None:
        state = os.fstat(file)
        self._file = file
        self.size_bytes = state.st_size
        # Files below a target are only ever replaced, never changed in place, so these four identify the content.
        self.etag = f"{state.st_size:x}-{state.st_mtime_ns:x}-{state.st_ctime_ns:x}-{state.st_ino:x}"

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self._file, length, start)

    def close(self) -> None:
        os.close(self._file)


def _open_file(root: Path, key: str) -> _File | None:
    try:
        file = open_file(root, key.split("/"))
    except OSError as trouble:
        if trouble.errno in _ABSENT:
            return None
        raise
    except ValueError:  # a name that the file system cannot spell
        return None
    return _File(file)


class _Object:
    def __init__(self, opened: OpenObject) -> None:
        self._opened = opened
        self.size_bytes = opened.size_bytes
        self.etag = opened.etag

    def read(self, start: int, length: int) -> bytes:
        try:
            part = self._opened.read(start, length)
        except (PreconditionFailed, StorageError) as error:
            raise OSError(errno.EIO, "an object of the bucket cannot be read on") from error
        return part or b""

    def close(self) -> None:
        pass


def _open_object(target: S3Target, key: str) -> _Object | None:
    opened = target.open(key)
    return None if opened is None else _Object(opened)
