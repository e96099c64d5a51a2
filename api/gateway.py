"""One served file as one HTTP response: ranges, validators, cache headers. It never leaves the target."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from api.errors import error, not_found
from infra.storage.beneath import open_file
from infra.storage.headers import cache_control, content_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

__all__ = ["serve_file"]

_BLOCK_BYTES = 1 << 18
_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EINVAL}
)
"""No such file; something in the path is a link, a folder, a pipe, or can be no name. All of it is not served."""
_RANGE = re.compile(r"bytes\s*=\s*(\d{0,19})\s*-\s*(\d{0,19})", re.ASCII)
_HIDDEN_BYTES = re.compile(rb"%(?:2f|5c|00)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a file is sent: ``length`` bytes from ``start``."""

    status: HTTPStatus
    start: int
    length: int


class _OpenFile(StreamingResponse):
    """Streams a part of an open file and closes it, however the response ends.

    The file is opened once: a store exchanged meanwhile does not change what this response sends.
    """

    def __init__(self, file: int, part: _Part, headers: dict[str, str]) -> None:
        self._file = file
        super().__init__(self._blocks(part.start, part.length), status_code=part.status, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            os.close(self._file)

    async def _blocks(self, start: int, length: int) -> AsyncIterator[bytes]:
        end = start + length
        while start < end:
            block = await to_thread.run_sync(os.pread, self._file, min(_BLOCK_BYTES, end - start), start)
            if not block:
                raise OSError(errno.EIO, "a served file became shorter while it was sent")
            start += len(block)
            yield block


def serve_file(request: Request, root: Path, key: str) -> Response:
    """The object ``key`` of the target below ``root``, or 404 for everything that is not a plain visible file.

    Answers GET and HEAD. Single and suffix ranges give 206, ranges past the end 416, several ranges the whole file.
    """
    segments = key.split("/")
    if _HIDDEN_BYTES.search(request.scope.get("raw_path") or b"") or not all(map(_is_visible, segments)):
        return not_found()
    try:
        file = open_file(root, segments)
    except OSError as trouble:
        if trouble.errno in _ABSENT:
            return not_found()
        return error(HTTPStatus.SERVICE_UNAVAILABLE, "The object cannot be read now; try again.")
    except ValueError:  # a name that the file system cannot spell
        return not_found()
    try:
        response = _respond(request, file, key)
    except BaseException:
        os.close(file)
        raise
    if not isinstance(response, _OpenFile):
        os.close(file)
    return response


def _is_visible(segment: str) -> bool:
    """Whether a path segment can be served: not empty, not hidden (this covers ``.`` and ``..``), no odd bytes."""
    return bool(segment) and not segment.startswith(".") and "\\" not in segment and "\x00" not in segment


def _respond(request: Request, file: int, key: str) -> Response:
    state = os.fstat(file)
    # Files below a target are only ever replaced, never changed in place, so these four identify the content.
    etag = f'"{state.st_size:x}-{state.st_mtime_ns:x}-{state.st_ctime_ns:x}-{state.st_ino:x}"'
    headers = {
        "ETag": etag,
        "Cache-Control": cache_control(key),
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
    }
    if _matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    headers["Content-Type"] = content_type(key)
    part = _part(request, state.st_size, etag)
    if part is None:
        unsatisfiable = {"Content-Range": f"bytes */{state.st_size}", "Accept-Ranges": "bytes"}
        return error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "The range lies past the end.", unsatisfiable)
    headers["Content-Length"] = str(part.length)
    if part.status == HTTPStatus.PARTIAL_CONTENT:
        headers["Content-Range"] = f"bytes {part.start}-{part.start + part.length - 1}/{state.st_size}"
    if request.method == "HEAD":
        return Response(status_code=part.status, headers=headers)
    return _OpenFile(file, part, headers)


def _matches(if_none_match: str | None, etag: str) -> bool:
    if if_none_match is None:
        return False
    candidates = {candidate.strip().removeprefix("W/") for candidate in if_none_match.split(",")}
    return "*" in candidates or etag in candidates


def _part(request: Request, size: int, etag: str) -> _Part | None:
    """The part that the request asks for; None when its range lies wholly past the end."""
    whole = _Part(HTTPStatus.OK, 0, size)
    asked = _RANGE.fullmatch((request.headers.get("range") or "").strip())
    if request.method != "GET" or asked is None or asked.groups() == ("", ""):
        return whole
    if request.headers.get("if-range", etag) != etag:
        return whole
    first, last = asked.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), size if not last else min(size, int(last) + 1)
        if last and int(last) < start:
            return whole
    if start >= end:
        return None
    return _Part(HTTPStatus.PARTIAL_CONTENT, start, end - start)
