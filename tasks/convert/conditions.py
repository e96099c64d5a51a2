"""Tells what a machine did to a conversion from what a file did."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_disk_full", "is_machine_condition", "is_out_of_memory"]

_MAX_CHAIN = 6
_MEMORY_ERRNOS = frozenset({errno.ENOMEM, errno.EAGAIN})
_DISK_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
_MEMORY_TEXTS = ("can't start new thread", "cannot allocate memory", "unable to allocate")

# What a wrong name or offset inside a file provokes. Every other errno (a full or failing disk, a quota, a limit, a
# network mount, a permission) says nothing about the file.
_FILE_ERRNOS = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST}
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out anywhere in the chain: cleaning up after a MemoryError may raise something else over it."""
    for link in _chain(error):
        if isinstance(link, MemoryError):
            return True
        if isinstance(link, OSError | RuntimeError):
            text = str(link).lower()
            if getattr(link, "errno", None) in _MEMORY_ERRNOS or any(part in text for part in _MEMORY_TEXTS):
                return True
    return False


def is_disk_full(error: BaseException) -> bool:
    """Whether a disk or a quota was full anywhere in the chain."""
    return any(isinstance(link, OSError) and link.errno in _DISK_ERRNOS for link in _chain(error))


def is_machine_condition(error: BaseException) -> bool:
    """Whether the operating system, and not the bytes of the file, is behind the error.

    An OSError without an errno is a reader's own word about the file's format, so it is none.
    """
    if is_out_of_memory(error):
        return True
    return any(
        isinstance(link, OSError) and link.errno is not None and link.errno not in _FILE_ERRNOS
        for link in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__
