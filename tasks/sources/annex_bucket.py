"""git-annex content in a bucket: one object for a key, or one for each chunk of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.codes import FailureCode, PendingReason
from contract.errors import NotNow, RecordingFailed
from infra.storage.s3_download import Piece
from tasks.sources.annex import (
    chunk_name,
    chunk_prefix,
    chunk_size_bytes,
    content_digest,
    is_content,
    key_size_bytes,
    remote_name,
)
from tasks.sources.annexed import LONGEST_SIDECAR_BYTES
from tasks.sources.s3_place import answering
from tasks.sources.small_contents import SMALL_BYTES, SmallContents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.storage.bucket import Bucket, Listed

__all__ = ["AnnexBucket"]

_TRIES = 2


class AnnexBucket:
    """The contents below ``<prefix>objects/`` of a bucket, by their keys.

    A key is asked for as one object first. Where that is definitely absent, one listing tells whether it is kept in chunks;
    they are checked to be all there, each with its size, before the first is read.
    """

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket = bucket
        self._objects = f"{prefix}objects/"
        self._small = SmallContents()

    def fetch(self, key: str, path: Path, *, before: Callable[[], None] | None = None) -> None:
        """Write the content into a new file, whole and verified; see ``KeyStore.fetch``."""
        size = key_size_bytes(key)
        if size is not None and size <= SMALL_BYTES:
            path.unlink(missing_ok=True)
            path.write_bytes(self.read(key))
            return
        with answering(key):
            for number in range(1, _TRIES + 1):
                self._download(key, path, before)
                if is_content(key, path):
                    return
                path.unlink()
                if number == _TRIES:
                    raise _not_it(key)

    def read(self, key: str) -> bytes:
        """The content of a sidecar, verified; fetched once while it is kept. See ``KeyStore.read``."""
        return self._small.get(key, lambda: self._read(key))

    def start(self, key: str, length: int) -> bytes | None:
        """The first bytes of the one object of a key, not verified; None where there is none. See ``KeyStore.start``."""
        size = key_size_bytes(key)
        if size is None or not min(length, size):
            return None if size is None else b""
        with answering(key):
            return self._bucket.read_range(self._objects + _named(key), 0, min(length, size))

    def _download(self, key: str, path: Path, before: Callable[[], None] | None) -> None:
        name, size = _named(key), key_size_bytes(key)
        [found] = self._bucket.download([Piece(key=self._objects + name, size_bytes=size)], path, before=before)
        if found is None:
            self._bucket.download(self._chunks(key, name, size), path, before=before)

    def _read(self, key: str) -> bytes:
        name, size = _named(key), key_size_bytes(key)
        if size is not None and size > LONGEST_SIDECAR_BYTES:
            raise OSError(f"it is longer than {LONGEST_SIDECAR_BYTES} bytes")
        with answering(key):
            for _ in range(_TRIES):
                content = self._whole(key, name, size)
                if size is not None and len(content) != size:
                    detail = f"{key}: {len(content)} bytes instead of {size}"
                    raise NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False)
                digest = content_digest(key)
                if digest is None:
                    return content
                digest[0].update(content)
                if digest[0].hexdigest() == digest[1]:
                    return content
            raise _not_it(key)

    def _whole(self, key: str, name: str, size: int | None) -> bytes:
        if size is None:
            head = self._bucket.head(self._objects + name)
            if head is not None and head.size_bytes > LONGEST_SIDECAR_BYTES:
                raise OSError(f"it is longer than {LONGEST_SIDECAR_BYTES} bytes")
        found = self._bucket.read(self._objects + name)
        if found is not None:
            return found.data
        parts = [self._bucket.read(piece.key) for piece in self._chunks(key, name, size)]
        return b"".join(part.data for part in parts if part is not None)

    def _chunks(self, key: str, name: str, size: int | None) -> list[Piece]:
        """The chunks of a key, all there and each of its size.

        Raises
        ------
        RecordingFailed
            There is none.
        NotNow
            Some are there, and they do not make the whole.
        """
        if size is None:
            raise _absent(key)
        listed: dict[str, Listed] = {
            one.key.removeprefix(self._objects): one for one in self._bucket.listing(self._objects + chunk_prefix(name))
        }
        sizes = {found for chunk in listed if (found := chunk_size_bytes(name, chunk)) is not None}
        if not sizes:
            raise _absent(key)
        for chunk_bytes in sorted(sizes):
            pieces = _pieces(name, size, chunk_bytes, listed)
            if pieces is not None:
                return [
                    Piece(key=self._objects + chunk, offset=offset, size_bytes=length, etag=listed[chunk].etag)
                    for chunk, offset, length in pieces
                ]
        raise NotNow(
            PendingReason.INFRA_FAILURE, detail=f"{key}: its chunks are not all there, or not whole", counted=False
        )


def _pieces(name: str, size: int, chunk_bytes: int, listed: dict[str, Listed]) -> list[tuple[str, int, int]] | None:
    """(name, offset, bytes) of each chunk; None when one is missing or has another size than it must have."""
    found: list[tuple[str, int, int]] = []
    for number in range(1, max(1, -(-size // chunk_bytes)) + 1):
        chunk, offset = chunk_name(name, chunk_bytes, number), (number - 1) * chunk_bytes
        length = min(chunk_bytes, size - offset)
        if chunk not in listed or listed[chunk].size_bytes != length:
            return None
        found.append((chunk, offset, length))
    return found


def _named(key: str) -> str:
    name = remote_name(key)
    if name is None:
        raise RecordingFailed(FailureCode.ANNEX_OBJECT_MISSING, detail=f"{key} is no name of an object")
    return name


def _absent(key: str) -> RecordingFailed:
    return RecordingFailed(FailureCode.ANNEX_OBJECT_MISSING, detail=f"the archive does not hold {key}")


def _not_it(key: str) -> NotNow:
    detail = f"{key}: what the archive sent is not what the key says"
    return NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False)
