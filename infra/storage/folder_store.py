"""Stores of a folder target on their way in and out of the hidden area."""

from __future__ import annotations

import hashlib
import logging
import os
from typing import TYPE_CHECKING

from contract.errors import PublishError
from contract.layout import check_relative
from infra.storage.beneath import exchange, open_folder, remove_tree, rename_new, write_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["copy_in", "digests_below", "move_in", "prune", "remove_quietly"]

_ROOT_OBJECT = "zarr.json"
_log = logging.getLogger("zarrmill.storage")


def digests_below(top: int, *, hidden: bool = True) -> Iterator[tuple[str, tuple[int, str]]]:
    """Name, size and SHA-256 of every file below the folder descriptor, with or without what begins with a dot."""
    for path, folders, names, below in os.fwalk(".", dir_fd=top):
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        prefix = path[2:] + "/" if path != "." else ""
        for name in sorted(name for name in names if hidden or not name.startswith(".")):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=below)
            with os.fdopen(file, "rb") as stream:
                size_bytes = os.fstat(file).st_size
                yield prefix + name, (size_bytes, hashlib.file_digest(stream, "sha256").hexdigest())


def move_in(new: tuple[int, str], address: tuple[int, str]) -> None:
    """Bring the prepared store to its address; an old one is then where the new one was."""
    try:
        rename_new(new, address)
    except FileExistsError:
        exchange(new, address)


def copy_in(
    folder: Path, staging: int, temporary: str, objects: Mapping[str, str], may_write: Callable[[], None]
) -> None:
    """Copy objects into a new folder of the hidden area, the root last, and compare each with its digest on the way."""
    base = f"/proc/self/fd/{staging}"
    for name in sorted(objects, key=lambda name: (name == _ROOT_OBJECT, name)):
        check_relative(name)
        may_write()
        *above, last = name.split("/")
        below = open_folder(base, [temporary, *above], create=True)
        try:
            digest = write_new(below, last, folder / name, durable=False)
        finally:
            os.close(below)
        if digest != objects[name]:
            raise PublishError("An object of the new store changed while it was copied.", detail=name)


def remove_quietly(folder: int, name: str) -> None:
    """Remove garbage; a failure is worth a warning, not the loss of a store that is already served."""
    try:
        remove_tree(folder, name)
    except OSError as error:
        _log.warning("could not remove %s from the hidden area of the target: %s", name, error.strerror)


def prune(root: Path, segments: list[str]) -> None:
    """Remove the folder and those above it as far as they are empty; the root stays."""
    for depth in range(len(segments), 0, -1):
        try:
            parent = open_folder(root, segments[: depth - 1])
        except FileNotFoundError:
            continue
        try:
            os.rmdir(segments[depth - 1], dir_fd=parent)
        except FileNotFoundError:
            continue
        except OSError:
            return
        finally:
            os.close(parent)
