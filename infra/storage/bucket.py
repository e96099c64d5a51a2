"""One S3 bucket: objects read, listed, written, copied and removed, each call safe to make from any thread."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import PreconditionFailed, StorageError
from infra.storage.s3_connection import FAILURES, S3Connection, side_by_side
from infra.storage.s3_copy import COPIED_AT_ONCE_BYTES, Copy, copy_object
from infra.storage.s3_download import Download, Piece
from infra.storage.s3_errors import Spoiled, answer, is_absence, is_condition, is_transient, translate
from infra.storage.s3_upload import Upload, md5_of, put_large

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

__all__ = ["Bucket", "Found", "Listed", "ObjectHead"]

_DELETED_AT_ONCE = 1000
_SHA256 = "sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An object as a listing tells it. ``version``, ``is_latest`` and ``is_deletion`` only where versions were listed."""

    key: str
    size_bytes: int
    etag: str
    version: str | None = None
    is_latest: bool = True
    modified: datetime | None = None
    is_deletion: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectHead:
    """What is known of an object without its bytes. ``sha256`` only of what zarrmill itself has put."""

    size_bytes: int
    etag: str
    version: str | None
    sha256: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True)
class Found:
    """A whole object, or the asked part of it, with what is known of the whole."""

    data: bytes
    head: ObjectHead


class Bucket:
    """The bucket ``name`` of a service.

    Absence is None, and only a definite 404 for the key is absence. Everything else raises ``StorageDenied``,
    ``StorageUnavailable``, another ``StorageError``, or ``Refused`` when there is no such bucket.
    """

    def __init__(self, connection: S3Connection, name: str) -> None:
        self.name = name
        self.connection = connection
        self._is_there = False

    def head(self, key: str, *, version: str | None = None) -> ObjectHead | None:
        """What is known of an object without reading it; None when it definitely does not exist."""
        found: ObjectHead | None = self.connection.run(lambda: self._head(key, version))
        return found

    def heads(self, keys: Sequence[str]) -> list[ObjectHead | None]:
        """``head`` of each key, side by side."""
        found: list[ObjectHead | None] = self.connection.run(lambda: side_by_side([self._head(key) for key in keys]))
        return found

    async def _head(self, key: str, version: str | None = None) -> ObjectHead | None:
        what = f"HEAD {key}"
        answered = await self.connection.request(
            "head_object", what, self._named(key, version), absence=lambda error: answer(error)[0] == 404
        )
        if answered is None and not self._is_there:
            # a HEAD has no body that would tell a missing key from a missing bucket; asked once
            listing = {"Bucket": self.name, "Prefix": key, "MaxKeys": 1}
            await self.connection.request("list_objects_v2", f"LIST {key}", listing)
        self._is_there = True
        return None if answered is None else _head_of(answered)

    def read(self, key: str, *, version: str | None = None) -> Found | None:
        """A whole object, compared with its length and, if zarrmill put it, its SHA-256; None when it does not exist."""
        found: Found | None = self.connection.run(lambda: self._read(key, version))
        return found

    async def _read(self, key: str, version: str | None) -> Found | None:
        answered = await self.connection.request(
            "get_object", f"GET {key}", self._named(key, version), body=True, check=_check_whole, absence=is_absence
        )
        return None if answered is None else Found(answered["Body"], _head_of(answered))

    def read_range(
        self, key: str, start: int, length: int, *, etag: str | None = None, version: str | None = None
    ) -> bytes | None:
        """Up to ``length`` bytes from ``start``, fewer only at the object's end; None when it does not exist.

        Raises
        ------
        PreconditionFailed
            ``etag`` is given and is not that of the object any more.
        """
        asked = {**self._named(key, version), "Range": f"bytes={start}-{start + length - 1}"}
        if etag is not None:
            asked["IfMatch"] = f'"{etag}"'

        def check(answered: dict[str, Any]) -> None:
            total = int(str(answered.get("ContentRange", "")).rpartition("/")[2] or -1)
            if len(answered["Body"]) != min(length, total - start):
                raise Spoiled("a part arrived with another length")

        async def get() -> dict[str, Any] | None:
            what = f"GET {key} from {start}"
            return await self.connection.request("get_object", what, asked, body=True, check=check, absence=is_absence)

        answered = self.connection.run(get)
        return None if answered is None else bytes(answered["Body"])

    def download(
        self, pieces: Sequence[Piece], path: Path, *, before: Callable[[], None] | None = None
    ) -> list[int | None]:
        """Write objects into one new file, ranges of all of them side by side; the bytes of each, None for an absent one.

        ``before`` is called before each request, and raises to stop. Raises what ``Download.take`` does.
        """
        path.unlink(missing_ok=True)
        path.open("xb").close()
        file = Download(self.connection, self.name, path, before)
        found: list[int | None] = self.connection.run(lambda: side_by_side([file.take(piece) for piece in pieces]))
        return found

    def listing(self, prefix: str, *, versions: bool = False, page_keys: int = 1000) -> Iterator[Listed]:
        """Every object whose key begins with ``prefix``, ordered by key; with ``versions`` every version of each.

        With ``versions`` the marks of deletions come too, those of a page behind its versions.

        ``page_keys`` are asked for at once, at most 1000.

        A listing that fails on any of its pages raises there: a part of it is never taken for the whole.
        """
        operation, listed = ("list_object_versions", "Versions") if versions else ("list_objects_v2", "Contents")
        arguments: dict[str, Any] = {"Bucket": self.name, "Prefix": prefix, "MaxKeys": page_keys}
        while True:
            page = self.connection.run(self._requesting(operation, f"LIST {prefix}", arguments))
            for one in page.get(listed, ()):
                yield Listed(
                    key=one["Key"],
                    size_bytes=one["Size"],
                    etag=one["ETag"].strip('"'),
                    version=one.get("VersionId"),
                    is_latest=one.get("IsLatest", True),
                    modified=one.get("LastModified"),
                )
            for one in page.get("DeleteMarkers", ()):
                yield Listed(
                    key=one["Key"],
                    size_bytes=0,
                    etag="",
                    version=one.get("VersionId"),
                    is_latest=one.get("IsLatest", True),
                    modified=one.get("LastModified"),
                    is_deletion=True,
                )
            if not page.get("IsTruncated"):
                return
            following = (
                {"KeyMarker": page.get("NextKeyMarker"), "VersionIdMarker": page.get("NextVersionIdMarker")}
                if versions
                else {"ContinuationToken": page.get("NextContinuationToken")}
            )
            if not all(following.values()):
                raise StorageError("The S3 service broke a listing off without saying how it goes on.", detail=prefix)
            arguments |= following

    def folders(self, prefix: str) -> list[str]:
        """Names directly below ``prefix`` that have something below them, without their slash."""
        arguments: dict[str, Any] = {"Bucket": self.name, "Prefix": prefix, "Delimiter": "/"}
        found: list[str] = []
        while True:
            page = self.connection.run(self._requesting("list_objects_v2", f"LIST {prefix}", arguments))
            found += [one["Prefix"][len(prefix) : -1] for one in page.get("CommonPrefixes", ())]
            if not page.get("IsTruncated"):
                return found
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def put(
        self, key: str, data: bytes, upload: Upload, *, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write a small object; its etag. A lost answer to a conditional write is found out by reading.

        Raises
        ------
        PreconditionFailed
            ``if_match`` is not the current etag, or ``if_absent`` and the object exists; and it is not ``data``.
        """
        etag: str = self.connection.run(lambda: self._put(key, data, upload, if_match, if_absent))
        return etag

    async def _put(self, key: str, data: bytes, upload: Upload, if_match: str | None, if_absent: bool) -> str:
        arguments = {**self._named(key), **upload.headers(hashlib.sha256(data).hexdigest())}
        arguments |= {"Body": data, "ContentMD5": md5_of(data)}
        if if_match is not None:
            arguments["IfMatch"] = f'"{if_match}"'
        if if_absent:
            arguments["IfNoneMatch"] = "*"
        what = f"PUT {key}"
        if if_match is None and not if_absent:
            answered = await self.connection.request("put_object", what, arguments)
            assert answered is not None
            return _etag(answered)
        return await self._put_on_condition(key, what, arguments, if_match)

    async def _put_on_condition(self, key: str, what: str, arguments: dict[str, Any], if_match: str | None) -> str:
        sha256 = arguments["Metadata"][_SHA256]
        for number in range(1, self.connection.tries + 1):
            try:
                return _etag(await self.connection.once("put_object", arguments))
            except FAILURES as error:
                absent_now = if_match is not None and answer(error)[0] == 404
                if not (is_condition(error) or is_transient(error) or absent_now):
                    raise translate(error, what, number) from error
                # whether the server did the work is unknown: what stands there now tells
                stands = await self._head(key)
                if stands is not None and stands.sha256 == sha256 and stands.etag != if_match:
                    return stands.etag
                if (stands.etag if stands else None) != if_match:
                    raise PreconditionFailed(
                        f"{key} was changed by somebody else.",
                        detail=f"expected {if_match or 'none'}, found {stands.etag if stands else 'none'}",
                    ) from error
                if number == self.connection.tries:
                    raise translate(error, what, number) from error
                await self.connection.pause(number)
        raise AssertionError("the last try returns or raises")

    def put_files(
        self, files: Sequence[tuple[str, Upload]], *, before: Callable[[], None] | None = None
    ) -> dict[str, str]:
        """Write files side by side, large ones in parts; etag by key. The first failure stops all and is raised.

        ``before`` is called before each request that writes, and raises to stop.
        """

        async def put_all() -> dict[str, str]:
            etags = await side_by_side([self._put_file(key, upload, before) for key, upload in files])
            return dict(zip((key for key, _ in files), etags, strict=True))

        found: dict[str, str] = self.connection.run(put_all)
        return found

    async def _put_file(self, key: str, upload: Upload, before: Callable[[], None] | None) -> str:
        checked = await asyncio.to_thread(upload.checked)
        if checked.is_large:
            return await put_large(self.connection, self._named(key), checked, before)
        async with self.connection.holding(checked.size_bytes):
            data = await asyncio.to_thread(checked.whole)
            arguments = {**self._named(key), **checked.headers(), "Body": data, "ContentMD5": md5_of(data)}
            answered = await self.connection.request("put_object", f"PUT {key}", arguments, before=before)
        assert answered is not None
        return _etag(answered)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects, a thousand to a request. Absent ones are fine."""
        wanted = list(keys)
        for start in range(0, len(wanted), _DELETED_AT_ONCE):
            batch = wanted[start : start + _DELETED_AT_ONCE]
            if len(batch) == 1:
                arguments: dict[str, Any] = self._named(batch[0])
                self.connection.run(self._requesting("delete_object", f"DELETE {batch[0]}", arguments))
                continue
            arguments = {"Bucket": self.name, "Delete": {"Objects": [{"Key": key} for key in batch], "Quiet": True}}
            done = self.connection.run(self._requesting("delete_objects", f"DELETE {len(batch)} objects", arguments))
            if done.get("Errors"):
                first = done["Errors"][0]
                raise StorageError(
                    f"The S3 service did not remove {len(done['Errors'])} of {len(batch)} objects.",
                    detail=f"{first.get('Code')}: {first.get('Key')}",
                )

    def abort_uploads(self, prefix: str) -> None:
        """Remove the parts of every unfinished upload whose key begins with ``prefix``."""
        arguments = {"Bucket": self.name, "Prefix": prefix}
        page = self.connection.run(self._requesting("list_multipart_uploads", f"LIST uploads {prefix}", arguments))
        for one in page.get("Uploads", ()):
            upload = {**self._named(one["Key"]), "UploadId": one["UploadId"]}
            self.connection.run(self._requesting("abort_multipart_upload", f"DELETE {one['Key']}", upload))

    def _requesting(self, operation: str, what: str, arguments: dict[str, Any]) -> Callable[[], Awaitable[Any]]:
        return lambda: self.connection.request(operation, what, arguments)

    def copy(
        self,
        wanted: Sequence[Copy],
        *,
        before: Callable[[], None] | None = None,
        at_once_bytes: int = COPIED_AT_ONCE_BYTES,
    ) -> dict[str, str]:
        """Copy objects inside the bucket without their bytes leaving it; etag by new key.

        Content type, cache headers and SHA-256 go along. Objects above ``at_once_bytes`` are copied in parts of it.
        """

        async def copy_all() -> dict[str, str]:
            work = [copy_object(self.connection, self.name, one, before, at_once_bytes) for one in wanted]
            return dict(zip((one.key for one in wanted), await side_by_side(work), strict=True))

        found: dict[str, str] = self.connection.run(copy_all)
        return found

    def _named(self, key: str, version: str | None = None) -> dict[str, Any]:
        named = {"Bucket": self.name, "Key": key}
        return named if version is None else {**named, "VersionId": version}


def _etag(answered: dict[str, Any]) -> str:
    return str(answered["ETag"]).strip('"')


def _head_of(answered: dict[str, Any]) -> ObjectHead:
    ranged = str(answered.get("ContentRange", "")).rpartition("/")[2]
    return ObjectHead(
        size_bytes=int(ranged) if ranged else int(answered["ContentLength"]),
        etag=_etag(answered),
        version=answered.get("VersionId"),
        sha256=answered.get("Metadata", {}).get(_SHA256),
        content_type=answered.get("ContentType"),
    )


def _check_whole(answered: dict[str, Any]) -> None:
    data, said = answered["Body"], answered.get("Metadata", {}).get(_SHA256)
    if len(data) != answered["ContentLength"]:
        raise Spoiled("an object arrived with another length")
    if said is not None and hashlib.sha256(data).hexdigest() != said:
        raise Spoiled("an object arrived with other content than was put")
