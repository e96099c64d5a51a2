"""Where a reader reads: a target, or an archive over HTTP. Objects are opened by version, so that parts are never mixed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from contract.errors import Refused, StorageDenied, StorageError, StorageUnavailable
from contract.layout import CATALOG_KEY, index_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.settings import Settings
    from infra.storage.opened import Opened
    from infra.storage.protocol import Target

__all__ = ["Place", "Whole", "archive_place", "place_at", "read_json", "read_whole", "target_place", "version_of"]

_MOST_BYTES = 256 * 1024 * 1024
_BLOCK_BYTES = 8 * 1024 * 1024
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Place:
    """A place that serves datasets.

    Parameters
    ----------
    url
        How it is told to people.
    open_object
        One version of the object at a key, or None when it is not served; OSError or StorageError when that cannot be
        told. What is opened fails rather than read on in another version.
    catalog_key
        Where its catalog is.
    close
        Lets go of connections that are kept.
    """

    url: str
    open_object: Callable[[str], Opened | None]
    catalog_key: str = CATALOG_KEY
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Whole:
    """An object and its version, by which its ETag over HTTP tells versions apart too."""

    data: bytes
    version: str


def target_place(target: Target) -> Place:
    """The place of a folder or a bucket."""
    from infra.storage.opened import opener

    return Place(target.url, opener(target))


def archive_place(base_url: str) -> Place:
    """The place of an archive that is reached over HTTP only.

    Raises
    ------
    Refused
        ``base_url`` is no such address.
    """
    from infra.storage.http_archive import HttpArchive

    archive = HttpArchive(base_url)
    return Place(archive.url, archive.open, "catalog.json", archive.close)


def place_at(url: str, settings: Settings, *, dataset_id: str) -> Place:
    """The place at an address: a folder, ``s3://bucket[/prefix]``, or the base URL of an archive.

    A bucket that refuses the credentials there are, or finds none, is asked without any, as a public one may be.

    Raises
    ------
    Refused
        There is no such place.
    StorageError
        A bucket is out of reach.
    """
    from infra.storage import open_target
    from infra.storage.folder import FolderTarget

    if url.lower().startswith(("http://", "https://")):
        return archive_place(url)
    target = open_target(url, settings)
    if isinstance(target, FolderTarget):
        if not target.root.is_dir():
            raise Refused(
                f"{target.url} is no folder; name the folder, bucket or archive that serves {dataset_id[:20]}"
            )
        return target_place(target)
    try:
        target.etag(index_key(dataset_id))
    except StorageDenied:
        return _public_place(open_target(url, settings, anonymous=True), dataset_id)
    return target_place(target)


def _public_place(target: Target, dataset_id: str) -> Place:
    """A bucket that anybody can read and nobody can list: there an object that is missing is answered 403, as one that is secret."""
    target.etag(index_key(dataset_id))  # whoever may not read the index gets the error
    place = target_place(target)

    def open_object(key: str) -> Opened | None:
        try:
            return place.open_object(key)
        except StorageDenied:
            return None

    return replace(place, open_object=open_object)


def read_whole(place: Place, key: str) -> Whole | None:
    """A document or the metadata of a store, in one version; None when it is not there.

    Raises
    ------
    StorageError
        It cannot be read, is larger than 256 MiB, or was replaced at every try.
    """
    for _ in range(_TRIES):
        opened = place.open_object(key)
        if opened is None:
            return None
        try:
            if opened.size_bytes > _MOST_BYTES:
                raise StorageError(
                    "A document is too large to be read whole.", detail=f"{key}: {opened.size_bytes} bytes"
                )
            return Whole(_all_of(opened), opened.etag)
        except OSError:  # replaced while it was read
            continue
        finally:
            opened.close()
    raise StorageUnavailable("An object was replaced again and again while it was read; try again.", detail=key)


def read_json(place: Place, key: str) -> tuple[Any, str] | None:
    """The JSON value of an object and its version; None when it is not there.

    Raises
    ------
    StorageError
        As ``read_whole``, and when it is not JSON.
    """
    found = read_whole(place, key)
    if found is None:
        return None
    try:
        return json.loads(found.data), found.version
    except ValueError as error:
        raise StorageError("A served document is not JSON.", detail=key) from error


def version_of(place: Place, key: str) -> str | None:
    """Which version of an object stands there now; None when none does."""
    opened = place.open_object(key)
    if opened is None:
        return None
    opened.close()
    return opened.etag


def _all_of(opened: Opened) -> bytes:
    parts = []
    start = 0
    while start < opened.size_bytes:
        part = opened.read(start, min(_BLOCK_BYTES, opened.size_bytes - start))
        if not part:
            raise OSError("an object became shorter while it was read")
        parts.append(part)
        start += len(part)
    return b"".join(parts)
