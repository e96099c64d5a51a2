"""Objects copied inside a bucket: at once, or large ones part by part, since a request must end within its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import PreconditionFailed
from infra.storage.s3_connection import side_by_side
from infra.storage.s3_upload import abort, complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.storage.s3_connection import S3Connection

__all__ = ["COPIED_AT_ONCE_BYTES", "Copy", "copy_object"]

COPIED_AT_ONCE_BYTES = 256 * 1024 * 1024
"""What one request copies. S3 takes up to 5 GiB, but the 25 s of a request must suffice."""

_KEPT = ("ContentType", "CacheControl", "ContentEncoding", "ContentDisposition", "Metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """An object of ``size_bytes`` and the key that it is copied to."""

    origin: str
    key: str
    size_bytes: int


async def copy_object(
    connection: S3Connection, bucket: str, one: Copy, before: Callable[[], None] | None, at_once_bytes: int
) -> str:
    """Copy one object; the etag of the copy. Content type, cache headers and metadata go along.

    Raises
    ------
    PreconditionFailed
        It was replaced while its parts were copied. No part is left.
    """
    if one.size_bytes > at_once_bytes:
        return await _copy_large(connection, bucket, one, before, at_once_bytes)
    arguments = {"Bucket": bucket, "Key": one.key, "CopySource": {"Bucket": bucket, "Key": one.origin}}
    answered = await connection.request("copy_object", f"COPY {one.key}", arguments, before=before)
    assert answered is not None
    etag: str = answered["CopyObjectResult"]["ETag"]
    return etag.strip('"')


async def _copy_large(
    connection: S3Connection, bucket: str, one: Copy, before: Callable[[], None] | None, at_once_bytes: int
) -> str:
    named = {"Bucket": bucket, "Key": one.key}
    head = await connection.request("head_object", f"HEAD {one.origin}", {**named, "Key": one.origin})
    assert head is not None
    if head["ContentLength"] != one.size_bytes:
        raise PreconditionFailed("An object was replaced while its store was copied.", detail=one.origin)
    kept = {name: head[name] for name in _KEPT if head.get(name)}
    begun = await connection.request("create_multipart_upload", f"POST {one.key}", {**named, **kept}, before=before)
    assert begun is not None
    upload = {**named, "UploadId": begun["UploadId"]}
    # a part is taken on condition that the object is still the one of the head, so parts of two never meet
    of_head = {"CopySource": {"Bucket": bucket, "Key": one.origin}, "CopySourceIfMatch": head["ETag"]}

    async def part(number: int) -> dict[str, Any]:
        start = (number - 1) * at_once_bytes
        last = min(start + at_once_bytes, one.size_bytes) - 1
        arguments = {**upload, **of_head, "PartNumber": number, "CopySourceRange": f"bytes={start}-{last}"}
        answered = await connection.request(
            "upload_part_copy", f"COPY {one.key} part {number}", arguments, before=before
        )
        assert answered is not None
        return {"PartNumber": number, "ETag": answered["CopyPartResult"]["ETag"]}

    try:
        count = -(-one.size_bytes // at_once_bytes)
        parts = await side_by_side([part(number) for number in range(1, count + 1)])
        return await complete(connection, upload, head.get("Metadata", {}).get("sha256"), parts, before)
    except BaseException:
        await abort(connection, upload)
        raise
