"""Files on their way into a bucket: their headers, their parts, and a multipart upload that leaves nothing behind."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract.errors import PublishError, ZarrmillError
from infra.storage.s3_connection import side_by_side
from infra.storage.s3_errors import answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.storage.s3_connection import S3Connection

__all__ = ["PART_BYTES", "CheckedUpload", "Upload", "abort", "complete", "md5_of", "put_large"]

PART_BYTES = 8 * 1024 * 1024
"""Files above this go in parts of it: what one request can carry in 25 s over a slow line, and what each holds in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """How an object is put. ``sha256`` is that of the file at ``path``, compared before it is sent."""

    content_type: str
    cache_control: str
    acl: str | None = None
    path: Path | None = None
    sha256: str | None = None

    def headers(self, sha256: str) -> dict[str, Any]:
        """Arguments of a PUT beside its body."""
        given = {"ContentType": self.content_type, "CacheControl": self.cache_control, "Metadata": {"sha256": sha256}}
        return given if self.acl is None else {**given, "ACL": self.acl}

    def checked(self) -> CheckedUpload:
        """The upload with the size of its file.

        Raises
        ------
        PublishError
            The file does not hold what it was to hold.
        """
        assert self.path is not None, "a file is uploaded"
        with self.path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            size_bytes = stream.tell()
        if self.sha256 not in (None, found):
            raise PublishError("An object changed while it was uploaded.", detail=self.path.name)
        return CheckedUpload(self, self.path, found, size_bytes)


@dataclass(frozen=True, slots=True)
class CheckedUpload:
    """A file that holds what it should."""

    upload: Upload
    path: Path
    sha256: str
    size_bytes: int

    @property
    def is_large(self) -> bool:
        """Whether it goes in parts."""
        return self.size_bytes > PART_BYTES

    def headers(self) -> dict[str, Any]:
        """Arguments of a PUT beside its body."""
        return self.upload.headers(self.sha256)

    def whole(self) -> bytes:
        """All of it."""
        return self.path.read_bytes()

    def part(self, number: int) -> bytes:
        """The part ``number``, from 1."""
        with self.path.open("rb") as stream:
            stream.seek((number - 1) * PART_BYTES)
            return stream.read(PART_BYTES)

    @property
    def part_count(self) -> int:
        """In how many parts it goes."""
        return -(-self.size_bytes // PART_BYTES)

    def etag(self) -> str:
        """The etag that S3 gives this file when it is put in the way it is put here, unless it is encrypted by KMS."""
        if not self.is_large:
            return hashlib.md5(self.whole(), usedforsecurity=False).hexdigest()
        parts = range(1, self.part_count + 1)
        digests = b"".join(hashlib.md5(self.part(part), usedforsecurity=False).digest() for part in parts)
        return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{self.part_count}"


def md5_of(data: bytes) -> str:
    """The Content-MD5 of a body, with which the service refuses one that was damaged or cut on its way."""
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


async def put_large(
    connection: S3Connection, named: dict[str, Any], checked: CheckedUpload, before: Callable[[], None] | None
) -> str:
    """Put a file in parts, side by side; its etag. A failure removes the parts that were put."""
    key = named["Key"]
    begun = await connection.request(
        "create_multipart_upload", f"POST {key}", {**named, **checked.headers()}, before=before
    )
    assert begun is not None
    upload = {**named, "UploadId": begun["UploadId"]}
    try:
        parts = await _put_parts(connection, upload, checked, before)
        return await complete(connection, upload, checked.sha256, parts, before)
    except BaseException:
        await abort(connection, upload)
        raise


async def complete(
    connection: S3Connection,
    upload: dict[str, Any],
    sha256: str | None,
    parts: list[dict[str, Any]],
    before: Callable[[], None] | None,
) -> str:
    """Make one object of its parts; its etag. ``sha256`` is the one in its metadata, by which a lost answer is made good."""
    key = upload["Key"]
    arguments = {**upload, "MultipartUpload": {"Parts": parts}}
    done = await connection.request(
        "complete_multipart_upload", f"POST {key}", arguments, before=before, absence=_is_completed
    )
    if done is None:  # an answer was lost: what stands there was put by an earlier try, or by somebody else
        done = await connection.request("head_object", f"HEAD {key}", {"Bucket": upload["Bucket"], "Key": key})
        assert done is not None
        if done.get("Metadata", {}).get("sha256") != sha256:
            raise PublishError("An object was replaced by somebody else while it was uploaded.", detail=key)
    return str(done["ETag"]).strip('"')


async def _put_parts(
    connection: S3Connection, upload: dict[str, Any], checked: CheckedUpload, before: Callable[[], None] | None
) -> list[dict[str, Any]]:
    async def one(number: int) -> dict[str, Any]:
        async with connection.holding(PART_BYTES):
            data = await asyncio.to_thread(checked.part, number)
            arguments = {**upload, "PartNumber": number, "Body": data, "ContentMD5": md5_of(data)}
            what = f"PUT {upload['Key']} part {number}"
            answered = await connection.request("upload_part", what, arguments, before=before)
            assert answered is not None
            return {"PartNumber": number, "ETag": answered["ETag"]}

    return await side_by_side([one(number) for number in range(1, checked.part_count + 1)])


def _is_completed(error: BaseException) -> bool:
    """Whether the upload is not open any more, which after a lost answer means that it was completed."""
    return answer(error)[1] == "NoSuchUpload"


async def abort(connection: S3Connection, upload: dict[str, Any]) -> None:
    """Remove the parts of an upload that was not completed, as far as the service lets us."""
    try:
        await asyncio.shield(connection.request("abort_multipart_upload", f"DELETE {upload['Key']}", upload))
    except ZarrmillError:
        return  # the lifecycle rule of the bucket removes what nobody completes
