"""Stores in a bucket: put with the root first away and last back, listed, copied, removed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contract.errors import PublishError, StorageDenied
from infra.storage.headers import cache_control, content_type
from infra.storage.protocol import StandingObject
from infra.storage.s3_copy import Copy
from infra.storage.s3_upload import Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from infra.storage.bucket import Bucket

__all__ = ["S3Stores"]

_ROOT = "zarr.json"
_log = logging.getLogger("zarrmill.storage")


class S3Stores:
    """The stores below ``prefix`` of a bucket; keys are those of the target.

    While a store is being put its root ``zarr.json`` is absent, so a reader finds the old store, none, or the new one;
    one who began before finds another root, or none, when he looks again.
    """

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._prefix = prefix

    def standing(self, key: str) -> dict[str, StandingObject]:
        """Every object of the store by its name, from one listing."""
        below = self._below(key)
        listed = self._bucket.listing(below)
        return {one.key.removeprefix(below): StandingObject(one.size_bytes, one.etag) for one in listed}

    def put(
        self,
        key: str,
        folder: Path,
        objects: Mapping[str, str],
        *,
        may_write: Callable[[], None],
        believed: Mapping[str, tuple[str, str]],
    ) -> dict[str, str]:
        """Bring the store to what ``folder`` holds; etag of each object. n changed objects cost n + 6 requests at most."""
        if _ROOT not in objects:
            raise PublishError(f"The new store for {key} has no root zarr.json.")
        before = self.standing(key)
        uploads = {name: self._upload(key, folder / name, name, sha256) for name, sha256 in objects.items()}
        etags = _unchanged(uploads, objects, before, believed)
        stale = sorted(before.keys() - objects.keys())
        changed = sorted(objects.keys() - etags.keys() - {_ROOT})
        if _ROOT in etags and not changed and not stale:
            return etags
        if _ROOT in before and (changed or stale):
            may_write()
            self._bucket.delete([self._at(key, _ROOT)])
        if stale:
            # biosigIO writes no chunk of zeros, so a chunk of the old store would be read as data of the new one
            may_write()
            self._bucket.delete([self._at(key, name) for name in stale if name != _ROOT])
        etags |= self._send(key, {name: uploads[name] for name in changed}, may_write)
        etags |= self._send(key, {_ROOT: uploads[_ROOT]}, may_write)
        self._read_back(key, folder, etags)
        return etags

    def _upload(self, key: str, path: Path, name: str, sha256: str) -> Upload:
        where = f"{key}/{name}"
        return Upload(content_type=content_type(where), cache_control=cache_control(where), path=path, sha256=sha256)

    def _send(self, key: str, uploads: Mapping[str, Upload], may_write: Callable[[], None]) -> dict[str, str]:
        names = {self._at(key, name): name for name in uploads}
        put = self._bucket.put_files([(where, uploads[name]) for where, name in names.items()], before=may_write)
        return {names[where]: etag for where, etag in put.items()}

    def _read_back(self, key: str, folder: Path, etags: Mapping[str, str]) -> None:
        """Raise PublishError unless exactly what was put stands there, the root byte for byte."""
        expected = {name: StandingObject((folder / name).stat().st_size, etag) for name, etag in etags.items()}
        found = self.standing(key)
        if found != expected:
            odd = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
            raise PublishError(
                "Something else stands at the target than was put there.", detail=f"{key}: {', '.join(odd[:3])}"
            )
        root = self._bucket.read(self._at(key, _ROOT))
        if root is None or root.data != (folder / _ROOT).read_bytes():
            raise PublishError("The root of a store is not what was put there.", detail=key)

    def copy(self, origin: str, key: str, *, may_write: Callable[[], None]) -> dict[str, str]:
        """Copy a store to a free address; etag of each object."""
        standing = self.standing(origin)
        if _ROOT not in standing:
            raise PublishError("There is no store to be copied.", detail=origin)
        if self.standing(key):
            raise PublishError("A store can be copied to a free address only.", detail=key)

        def copies(names: Iterable[str]) -> list[Copy]:
            return [
                Copy(origin=self._at(origin, name), key=self._at(key, name), size_bytes=standing[name].size_bytes)
                for name in names
            ]

        copied = self._bucket.copy(copies(sorted(standing.keys() - {_ROOT})), before=may_write)
        copied |= self._bucket.copy(copies([_ROOT]), before=may_write)
        below = self._below(key)
        return {where.removeprefix(below): etag for where, etag in copied.items()}

    def delete(self, key: str) -> None:
        """Remove a store, its root first."""
        names = self.standing(key)
        if _ROOT in names:
            self._bucket.delete([self._at(key, _ROOT)])
        self._bucket.delete([self._at(key, name) for name in names if name != _ROOT])

    def abort_uploads(self, key: str) -> None:
        """Remove the parts of unfinished uploads below a store. Rights to list them are not everywhere given."""
        try:
            self._bucket.abort_uploads(self._below(key))
        except StorageDenied as error:
            _log.info("unfinished uploads below %s cannot be looked for: %s", key, error)

    def _below(self, key: str) -> str:
        return f"{self._prefix}{key}/"

    def _at(self, key: str, name: str) -> str:
        return f"{self._prefix}{key}/{name}"


def _unchanged(
    uploads: Mapping[str, Upload],
    objects: Mapping[str, str],
    standing: Mapping[str, StandingObject],
    believed: Mapping[str, tuple[str, str]],
) -> dict[str, str]:
    """Etags of the objects that stand as they should.

    What was noted of an object tells, as long as its etag is still the noted one. Where nothing was noted, as after a crash,
    equal size and MD5 tell; where an etag is no MD5, that never holds and the object is sent.
    """
    same: dict[str, str] = {}
    for name in objects.keys() & standing.keys():
        there = standing[name]
        if believed.get(name) == (objects[name], there.etag):
            same[name] = there.etag
            continue
        path = uploads[name].path
        sizes_agree = path is not None and path.stat().st_size == there.size_bytes
        if sizes_agree and uploads[name].checked().etag() == there.etag:
            same[name] = there.etag
    return same
