"""From the address a person gives to the storage backend that serves it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from contract.errors import Refused
from infra.storage.folder import FolderTarget

if TYPE_CHECKING:
    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["open_target"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def open_target(url: str, settings: Settings, *, anonymous: bool = False) -> Target:
    """The target at ``url``: a folder, as a path or ``file://`` address, or ``s3://bucket[/prefix]``. Nothing is created or read yet.

    ``open_target(target.url, …)`` gives an equal target, whatever folder the process stands in. With ``anonymous`` a bucket is asked
    without a signature, as anybody can.

    Raises
    ------
    Refused
        The address is empty, of a kind that is not supported, or names something that is not a folder.
    """
    if "\x00" in url or not url.strip():
        raise Refused("The target is empty; give the folder to serve from, for example ./served.")
    if url.lower().startswith("s3://"):
        return _bucket(url, settings, anonymous=anonymous)
    root = Path(_local_path(url)).expanduser().resolve()
    # exists() is false for a path below a file, so it is the first that does exist that is looked at
    there = next(place for place in (root, *root.parents) if place.exists())
    if not there.is_dir():
        what = "is a file" if there == root else f"cannot be made, because {there} is a file"
        raise Refused(f"The target {root} {what}; give the folder to serve from.")
    return FolderTarget(root, port=settings.port)


def _bucket(url: str, settings: Settings, *, anonymous: bool) -> Target:
    from infra.storage.s3_connection import access
    from infra.storage.s3_target import S3Target

    name, _, prefix = url[len("s3://") :].partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(name):
        what = (
            "names no bucket"
            if not name
            else f"cannot be, because {name} is no bucket's name (3 to 63 small letters, digits, dots, dashes)"
        )
        raise Refused(f"The target {url} {what}; write s3://bucket or s3://bucket/prefix.")
    if prefix and not all(_SEGMENT.fullmatch(segment) for segment in prefix.split("/")):
        raise Refused(
            f"The prefix of the target {url} may hold only letters, digits, dots, dashes and underscores between its slashes, "
            "and none of its parts may begin with a dot."
        )
    return S3Target(access(settings, anonymous=anonymous), name, prefix, contract_host=settings.contract_host)


def _local_path(url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return url
    parts = urlsplit(url)
    if scheme[1].lower() == "file" and parts.netloc in ("", "localhost") and parts.path:
        return unquote(parts.path)
    raise Refused(
        f"The target {url} is not supported; supported are a folder (./served), file:///absolute/folder and s3://bucket/prefix.",
    )
