"""Looks at a file before anything parses it: is it there, is it readable, is it the content or a pointer to it."""

from __future__ import annotations

import codecs
import os
import re
import struct
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contract.codes import FailureCode, PendingReason
from contract.errors import NotNow, RecordingFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "corrupt",
    "empty",
    "is_binary",
    "is_pointer",
    "not_continuous",
    "reading",
    "require_content",
    "unreadable",
    "unsupported",
]

_CONTROL = bytes(set(range(0x20)) - set(b"\t\n\v\f\r")) + b"\x7f"

# git-annex refuses longer pointers (32 KiB); a real recording of that size never starts so.
_POINTER_BYTES = 32_768
_POINTER = re.compile(
    rb"\A(?:/annex/objects/|(?:\.\./)*\.git/annex/objects/|version https://git-lfs\.github\.com/spec/)"
)


def corrupt(detail: str) -> RecordingFailed:
    """The failure of a file that is cut or broken."""
    return RecordingFailed(FailureCode.CORRUPT_OR_TRUNCATED, detail=detail)


def empty(detail: str) -> RecordingFailed:
    """The failure of a file without signal channels or samples."""
    return RecordingFailed(FailureCode.EMPTY_RECORDING, detail=detail)


def not_continuous(detail: str) -> RecordingFailed:
    """The failure of epochs or averages."""
    return RecordingFailed(FailureCode.NOT_CONTINUOUS, detail=detail)


def unreadable(detail: str) -> RecordingFailed:
    """The failure of a file that cannot be read for no more specific reason."""
    return RecordingFailed(FailureCode.FILE_READ_ERROR, detail=detail)


def unsupported(detail: str) -> RecordingFailed:
    """The failure of a sound recording that there is no reader for."""
    return RecordingFailed(FailureCode.UNSUPPORTED_FORMAT, detail=detail)


def is_pointer(data: bytes) -> bool:
    """Whether these bytes of a file are a git-annex or git-lfs pointer instead of its content."""
    return len(data) <= _POINTER_BYTES and _POINTER.match(data) is not None


def require_content(path: Path) -> None:
    """Return when ``path`` is a readable file that holds its own content; its folder is the caller's concern.

    Raises
    ------
    RecordingFailed
        ``annex_object_missing`` for a dangling link or a git-annex or git-lfs pointer, ``file_read_error`` when
        nothing is there.
    NotNow
        The file may not be read here: MNE reports that without an errno for FIF and .set, so it is asked first.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        if path.is_symlink():
            raise RecordingFailed(
                FailureCode.ANNEX_OBJECT_MISSING, detail=f"{path.name} links to content that is not there"
            ) from None
        raise unreadable(f"{path.name} is not there") from None
    except OSError as error:
        raise NotNow(PendingReason.INFRA_FAILURE, detail=f"{path.name}: {error.strerror}") from error
    if not os.access(path, os.R_OK):
        raise NotNow(PendingReason.INFRA_FAILURE, detail=f"{path.name} may not be read: permission denied")
    if path.is_file() and size <= _POINTER_BYTES and is_pointer(_first_bytes(path)):
        raise RecordingFailed(FailureCode.ANNEX_OBJECT_MISSING, detail=f"{path.name} holds a pointer, not its content")


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError as error:
        raise NotNow(PendingReason.INFRA_FAILURE, detail=f"{path.name}: {error.strerror}") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a header is parsed into one of our errors.

    An OSError of the operating system is a condition of the machine; anything that the bytes themselves cause
    (they end early, a number is none, a name is no text) says the file is broken.
    """
    require_content(path)
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise corrupt(f"{path.name} is empty")
        yield
    except (EOFError, ValueError, LookupError, ArithmeticError, TypeError, struct.error, zlib.error) as error:
        raise corrupt(f"the header of {path.name} cannot be read: {_said(error)}") from error
    except OSError as error:
        if error.errno is None:
            raise corrupt(f"the header of {path.name} cannot be read: {error}") from error
        raise NotNow(PendingReason.INFRA_FAILURE, detail=f"{path.name}: {error.strerror}") from error


def _said(error: Exception) -> str:
    """What went wrong in the file's terms; the class of an exception means nothing to its owner."""
    if isinstance(error, KeyError):
        return f"it has no entry {error}"
    if isinstance(error, IndexError | struct.error):
        return "it ends early"
    return str(error) or "a value is not what it should be"


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text: a NUL (but in UTF-16 with its mark), or control characters in one byte of twenty."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in data or len(data) - len(data.translate(None, _CONTROL)) > len(data) / 20
