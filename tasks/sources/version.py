"""Which version of a dataset stands at its source now, found out without reading or discovering it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from contract.errors import Refused
from tasks.bids.scope import EXCLUDED_SEGMENTS, printable
from tasks.sources.bucket_source import BucketSource
from tasks.sources.git_repository import GitSource
from tasks.sources.opening import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings
    from tasks.sources.protocol import SourceAddress

__all__ = ["source_version"]


def source_version(address: SourceAddress, settings: Settings) -> str:
    """A short text that changes whenever the source may hold something else.

    ``git:`` and the commit for a repository that is read at one; ``bucket:`` and a hash over a listing's keys and etags;
    ``folder:`` and a hash over paths, sizes and times. An equal version is an equal dataset; another one need not be
    another dataset, and the run that looks closer then finds nothing to do.

    Raises
    ------
    Refused, StorageError
        The source is not there, or cannot be listed to its end.
    """
    source = open_source(address, settings)
    if isinstance(source, GitSource):
        try:
            return f"git:{source.commit(())}"
        finally:
            source.close()
    if isinstance(source, BucketSource):
        return f"bucket:{source.commit(source.tree())}"
    digest = hashlib.blake2b(digest_size=20, person=b"zarrmill folder")
    for line in sorted(_lines(source.url)):
        digest.update(line)
    return f"folder:{digest.hexdigest()}"


def _lines(root: str) -> Iterator[bytes]:
    """One line a file: its path, size and times. Links are followed, so that content which git-annex fetched is seen."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except FileNotFoundError:
            if folder != root:
                continue  # it went while the walk was under way, and the next look sees a whole folder again
            raise Refused(f"SOURCE {printable(root)} does not exist: give the folder of a BIDS dataset.") from None
        except OSError as error:
            raise Refused(
                f"The folder {printable(folder)} of the dataset cannot be listed: {error.strerror}."
            ) from error
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git" and entry.name not in EXCLUDED_SEGMENTS:
                    waiting.append(entry.path)
            else:
                yield _line(root, entry)


def _line(root: str, entry: os.DirEntry[str]) -> bytes:
    try:
        about = entry.stat()
    except OSError:
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return b""
    name = os.fsencode(entry.path[len(root) :])
    return b"%s\0%d\0%d\0%d\n" % (name, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
