"""What identifies the content of one file of a folder, and whether it is here."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

from tasks.bids.entities import split_extension
from tasks.bids.scope import printable
from tasks.sources.annex import POINTER_LIMIT_BYTES, key_of_link, key_of_pointer, key_size_bytes
from tasks.sources.protocol import Absence, TreeEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["entry_of", "sha256_id"]

_BY_CONTENT = frozenset({".tsv", ".json", ".vhdr", ".vmrk"})
_BY_CONTENT_WHEN_SMALL = frozenset({".dat", ".txt"})
_SMALL_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 20


def entry_of(root: str, path: str, found: os.stat_result, *, hash_signals: bool) -> TreeEntry | None:
    """The entry of one file; None for what is no file (a device, a socket, a folder behind a link).

    Sidecars are identified by their bytes, so that the same dataset has the same ids on every machine and after
    ``touch``; signals by size and times, unless ``hash_signals``. Content that git-annex knows is identified by its
    key, here or not.

    Parameters
    ----------
    root
        Folder of the dataset, with links resolved. A text, as everywhere here: a hundred thousand ``Path`` objects
        take longer to make than the files take to read.
    found
        ``os.lstat`` of the file.

    Raises
    ------
    OSError
        The file went away or cannot be looked at.
    """
    full = f"{root}/{path}"
    if stat.S_ISLNK(found.st_mode):
        return _linked(root, full, path, hash_signals=hash_signals)
    return _regular(full, path, found, hash_signals=hash_signals) if stat.S_ISREG(found.st_mode) else None


def sha256_id(full: str) -> str:
    """``sha256:<hex>`` of a file's bytes. Raises OSError."""
    digest = hashlib.sha256()
    for block in _blocks(full):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def _linked(root: str, full: str, path: str, *, hash_signals: bool) -> TreeEntry | None:
    text = os.readlink(full)  # noqa: PTH115 - Path.readlink would normalise the text, which identifies the link
    key = key_of_link(text)
    target = os.path.realpath(full)
    try:
        behind = os.stat(target)  # noqa: PTH116 - texts, as above
    except PermissionError:
        # Not "nothing there": the attempt will meet it again, as a condition of the machine.
        return TreeEntry(None, f"annex:{key}" if key else f"link:{printable(text)}")
    except OSError:
        behind = None
    if key is not None:
        # The object store may itself lie behind a link, so only the name of the object is compared.
        here = behind is not None and target.endswith(f"/{key}")
        return TreeEntry(key_size_bytes(key), f"annex:{key}", None if here else Absence.NOT_FETCHED)
    if behind is None:
        return TreeEntry(None, f"link:{printable(text)}", Absence.DANGLING)
    if not stat.S_ISREG(behind.st_mode):
        return None
    if not target.startswith(f"{root.rstrip('/')}/"):
        return TreeEntry(behind.st_size, f"link:{printable(text)}", Absence.OUTSIDE)
    return _regular(full, path, behind, hash_signals=hash_signals)


def _regular(full: str, path: str, found: os.stat_result, *, hash_signals: bool) -> TreeEntry:
    size = found.st_size
    extension = split_extension(path.rpartition("/")[2])[1].lower()
    small = size <= _SMALL_BYTES
    if extension in _BY_CONTENT or (extension in _BY_CONTENT_WHEN_SMALL and small) or size < POINTER_LIMIT_BYTES:
        try:
            return _read(full, size, extension, found, hash_signals=hash_signals)
        except PermissionError:
            # The attempt will meet it again, as a condition of the machine; the id changes once it can be read.
            return TreeEntry(size, _stat_id(found))
    return TreeEntry(size, sha256_id(full) if hash_signals else _stat_id(found))


def _read(full: str, size: int, extension: str, found: os.stat_result, *, hash_signals: bool) -> TreeEntry:
    if size >= POINTER_LIMIT_BYTES:
        return TreeEntry(size, sha256_id(full))
    content = b"".join(_blocks(full))
    key = key_of_pointer(content)
    if key is not None:
        return TreeEntry(key_size_bytes(key), f"annex:{key}", Absence.NOT_FETCHED)
    by_content = hash_signals or extension in _BY_CONTENT or extension in _BY_CONTENT_WHEN_SMALL
    return TreeEntry(size, f"sha256:{hashlib.sha256(content).hexdigest()}" if by_content else _stat_id(found))


def _blocks(full: str) -> Iterator[bytes]:
    descriptor = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while block := os.read(descriptor, _BLOCK_BYTES):
            yield block
    finally:
        os.close(descriptor)


def _stat_id(found: os.stat_result) -> str:
    return f"stat:{found.st_size}-{found.st_mtime_ns}-{found.st_ctime_ns}"
