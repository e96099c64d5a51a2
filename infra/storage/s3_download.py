"""Objects on their way into a file: in ranges side by side, each sent for again when it breaks off, never mixed from two versions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.errors import StorageError
from infra.storage.s3_connection import side_by_side
from infra.storage.s3_errors import Spoiled, answer, is_absence

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from infra.storage.s3_connection import S3Connection

__all__ = ["RANGE_BYTES", "Download", "Piece", "SizeDiffers"]

_UNMET = 416
RANGE_BYTES = 8 * 1024 * 1024
"""What is asked for at once: a break costs no more, and it is what each request holds in memory."""


class SizeDiffers(StorageError):
    """An object has another size than it must have: it is still being uploaded, or it is not the one that was meant."""

    code = "size_differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """An object that becomes a part of a file.

    Parameters
    ----------
    offset
        Where in the file it begins.
    size_bytes
        What it must have; None when nobody knows.
    etag, version
        Which one it must be, where that matters.
    """

    key: str
    offset: int = 0
    size_bytes: int | None = None
    etag: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """A file that pieces are written into.

    ``before`` is called before each request, and raises to stop. The file is opened for each write, so that a write that
    outlives a broken off download can never meet another file.
    """

    connection: S3Connection
    bucket: str
    path: Path
    before: Callable[[], None] | None = None

    async def take(self, piece: Piece) -> int | None:
        """Write the object at its offset; its bytes, or None when it definitely does not exist.

        Raises
        ------
        SizeDiffers
            See ``Piece``; nothing more is read then.
        PreconditionFailed
            It is another one than ``etag`` says, or was replaced while it was read.
        StorageError
            As every request of ``S3Connection``.
        """
        named: dict[str, Any] = {"Bucket": self.bucket, "Key": piece.key}
        if piece.version is not None:
            named["VersionId"] = piece.version
        if piece.etag is not None:
            named["IfMatch"] = f'"{piece.etag}"'
        first = await self._range(named, piece, 0)
        if first is None:
            return None
        total, etag = first
        if piece.version is None:
            named["IfMatch"] = etag
        await side_by_side([self._range(named, piece, start) for start in range(RANGE_BYTES, total, RANGE_BYTES)])
        return total

    async def _range(self, named: dict[str, Any], piece: Piece, start: int) -> tuple[int, str] | None:
        """Size and etag of the whole object, one range of which was written; None when it is not there at the first."""
        async with self.connection.holding(piece.size_bytes):
            answered = await self._get(named, piece.key, start)
            if answered is None:
                return None
            total = _total(answered)
            if piece.size_bytes not in (None, total):
                raise SizeDiffers(
                    "An object does not have the size that it must have.",
                    detail=f"{piece.key}: {total} bytes instead of {piece.size_bytes}",
                )
            await asyncio.to_thread(_write, self.path, answered["Body"], piece.offset + start)
            return total, str(answered["ETag"])

    async def _get(self, named: dict[str, Any], key: str, start: int) -> dict[str, Any] | None:
        what = f"GET {key} from {start}"

        def check(answered: dict[str, Any]) -> None:
            if len(answered["Body"]) != min(RANGE_BYTES, _total(answered) - start):
                raise Spoiled("a part arrived with another length")

        async def get(arguments: dict[str, Any], absence: Callable[[BaseException], bool]) -> dict[str, Any] | None:
            return await self.connection.request(
                "get_object", what, arguments, body=True, before=self.before, check=check, absence=absence
            )

        ranged = {**named, "Range": f"bytes={start}-{start + RANGE_BYTES - 1}"}
        if start:
            answered = await get(ranged, is_absence)
            if answered is None:
                raise StorageError("An object was removed while it was read.", detail=what)
            return answered
        unmet: list[BaseException] = []

        def is_absent_or_empty(error: BaseException) -> bool:
            if answer(error)[0] == _UNMET:
                unmet.append(error)
            return bool(unmet) or is_absence(error)

        answered = await get(ranged, is_absent_or_empty)
        # no range of an empty object can be met: it is asked for whole
        return await get(named, is_absence) if answered is None and unmet else answered


def _total(answered: dict[str, Any]) -> int:
    ranged = str(answered.get("ContentRange", "")).rpartition("/")[2]
    return int(ranged) if ranged else len(answered["Body"])


def _write(path: Path, data: bytes, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
