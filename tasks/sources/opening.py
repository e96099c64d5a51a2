"""From what a person types, or a worker is told, to a source."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from contract.errors import Refused
from contract.redact import error_line
from tasks.sources.annex_bucket import AnnexBucket
from tasks.sources.annexed import Annexed
from tasks.sources.bucket_source import BucketSource
from tasks.sources.folder import FolderSource
from tasks.sources.git_repository import GitSource, git_folder, resolve
from tasks.sources.protocol import SourceAddress
from tasks.sources.s3_place import is_s3, open_bucket, read_s3_url

if TYPE_CHECKING:
    from infra.settings import Settings
    from tasks.sources.annexed import KeyStore
    from tasks.sources.protocol import Source

__all__ = ["check_commit", "open_source", "source_exists"]

log = logging.getLogger("zarrmill.sources")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def open_source(
    where: str | SourceAddress,
    settings: Settings | None = None,
    *,
    hash_signals: bool = False,
    allow_dirty: bool = False,
) -> Source:
    """The dataset at an address: a folder as it lies there, a repository at a commit, or a prefix of a bucket.

    Parameters
    ----------
    where
        A path, a ``file:///…`` or ``s3://…`` URL, or such an address with a commit, an annex or a moment beside it.
    settings
        How S3 services are reached; needed for addresses that name one.
    hash_signals
        Identify signals of a folder by their bytes too (``--hash``).
    allow_dirty
        Name the state of a git checkout by the hash of its files (``--allow-dirty``).

    Raises
    ------
    Refused
        There is nothing there that can be listed, or it is empty; the sentence says which.
    """
    address = SourceAddress(url=where) if isinstance(where, str) else where
    if is_s3(address.url):
        return _bucket(address, settings)
    if address.at is not None:
        raise Refused("--at names a moment of a bucket with versions, and SOURCE is a folder.")
    folder = _folder(address.url)
    store = _store(address.annex, settings)
    commit = "HEAD" if address.commit is None and _is_bare(folder) else address.commit
    if commit is None:
        return FolderSource(
            folder, hash_signals=hash_signals, allow_dirty=allow_dirty, store=store, annex_url=address.annex
        )
    root = folder.resolve()
    objects = git_folder(root)
    if objects is None:
        raise _no_repository(address.url)
    return GitSource(root, resolve(root, commit), Annexed(objects, store), annex_url=address.annex)


def source_exists(url: str) -> bool:
    """Whether a folder stands at an address; an address in an S3 service is taken for one that is there."""
    return is_s3(url) or _place(url).is_dir()


def check_commit(url: str, commit: str) -> None:
    """Refuse a commit that the source at an address has not. One that cannot be looked at now is not asked.

    Raises
    ------
    Refused
        The source has no commits, or not this one.
    """
    if is_s3(url):
        raise _not_for_a_bucket("--commit", url)
    root = _place(url).resolve()
    try:
        is_away = not root.is_dir() or not any(root.iterdir())
        objects = None if is_away else git_folder(root)
    except (OSError, Refused) as error:
        # a disk that is away, or another user's repository, is trouble of this machine; the run meets it again and tells it
        log.info("%s was not asked for its commit: %s", url, error_line(error))
        return
    if is_away:
        return
    if objects is None:
        raise _no_repository(url)
    resolve(root, commit)


def _no_repository(url: str) -> Refused:
    return Refused(f"SOURCE {url} is not the toplevel of a git repository, so it has no commit to read.")


def _not_for_a_bucket(option: str, url: str) -> Refused:
    return Refused(f"{option} is for a git repository, and SOURCE {url} is a bucket.")


def _place(url: str) -> Path:
    return Path(_local_path(url)).expanduser()


def _folder(url: str) -> Path:
    folder = _place(url)
    try:
        with os.scandir(folder) as entries:
            empty = next(entries, None) is None
    except FileNotFoundError:
        raise Refused(f"SOURCE {url} does not exist: give the folder of a BIDS dataset.") from None
    except NotADirectoryError:
        raise Refused(f"SOURCE {url} is not a folder: give the folder that holds dataset_description.json.") from None
    except (OSError, ValueError) as error:
        raise Refused(f"SOURCE {url!r} cannot be listed: {getattr(error, 'strerror', None) or error}.") from error
    if empty:
        raise Refused(f"SOURCE {url} is an empty folder: give the folder of a BIDS dataset.")
    return folder


def _is_bare(folder: Path) -> bool:
    """Whether the folder looks like a bare repository, which holds no files to read as they lie there."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _store(url: str | None, settings: Settings | None) -> KeyStore | None:
    if url is None:
        return None
    place = read_s3_url(url, what="--annex")
    return AnnexBucket(open_bucket(place, settings), place.prefix)


def _bucket(address: SourceAddress, settings: Settings | None) -> BucketSource:
    for option, value in (("--commit", address.commit), ("--annex", address.annex)):
        if value is not None:
            raise _not_for_a_bucket(option, address.url)
    place = read_s3_url(address.url, what="SOURCE")
    return BucketSource(open_bucket(place, settings), place, at=address.at)


def _local_path(url: str) -> str:
    if not url:
        raise Refused("SOURCE is empty: give the folder of a BIDS dataset.")
    if not _SCHEME.match(url):
        return url
    parts = urlsplit(url)
    if parts.scheme.lower() == "file" and parts.netloc in {"", "localhost"}:
        return unquote(parts.path)
    raise Refused(f"SOURCE {parts.scheme}://… is not supported: give a folder, a git repository or s3://bucket/prefix.")
