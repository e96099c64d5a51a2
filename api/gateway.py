"""One served object as one HTTP response: ranges, validators, cache headers. It never leaves the target."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from api.errors import error, not_found
from contract.errors import StorageError
from infra.storage.headers import cache_control, content_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from infra.storage.opened import Opened

__all__ = ["serve_object"]

_BLOCK_BYTES = 1 << 18
_RANGE = re.compile(r"bytes\s*=\s*(\d{0,19})\s*-\s*(\d{0,19})", re.ASCII)
_HIDDEN_BYTES = re.compile(rb"%(?:2f|5c|00)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Part:
    """What of a file is sent: ``length`` bytes from ``start``."""

    status: HTTPStatus
    start: int
    length: int


class _OpenObject(StreamingResponse):
    """Streams a part of an opened object and closes it, however the response ends.

    It was opened once: a store exchanged meanwhile does not change what this response sends.
    """

    def __init__(self, opened: Opened, part: _Part, headers: dict[str, str]) -> None:
        self._opened = opened
        super().__init__(self._blocks(part.start, part.length), status_code=part.status, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._opened.close()

    async def _blocks(self, start: int, length: int) -> AsyncIterator[bytes]:
        end = start + length
        while start < end:
            block = await to_thread.run_sync(self._opened.read, start, min(_BLOCK_BYTES, end - start))
            if not block:
                raise OSError(errno.EIO, "a served object became shorter while it was sent")
            start += len(block)
            yield block


def serve_object(request: Request, open_object: Callable[[str], Opened | None], key: str) -> Response:
    """The object ``key`` of a target, or 404 for everything that is not plain and visible.

    Answers GET and HEAD. Single and suffix ranges give 206, ranges past the end 416, several ranges the whole object.

    Parameters
    ----------
    open_object
        See ``infra.storage.opened.opener``.
    """
    segments = key.split("/")
    if _HIDDEN_BYTES.search(request.scope.get("raw_path") or b"") or not all(map(_is_visible, segments)):
        return not_found()
    try:
        opened = open_object(key)
    except (OSError, StorageError):
        return error(HTTPStatus.SERVICE_UNAVAILABLE, "The object cannot be read now; try again.")
    if opened is None:
        return not_found()
    try:
        response = _respond(request, opened, key)
    except BaseException:
        opened.close()
        raise
    if not isinstance(response, _OpenObject):
        opened.close()
    return response


def _is_visible(segment: str) -> bool:
    """Whether a path segment can be served: not empty, not hidden (this covers ``.`` and ``..``), no odd bytes."""
    return bool(segment) and not segment.startswith(".") and "\\" not in segment and "\x00" not in segment


def _respond(request: Request, opened: Opened, key: str) -> Response:
    etag, size_bytes = f'"{opened.etag}"', opened.size_bytes
    headers = {
        "ETag": etag,
        "Cache-Control": cache_control(key),
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
    }
    if _matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    headers["Content-Type"] = content_type(key)
    part = _part(request, size_bytes, etag)
    if part is None:
        unsatisfiable = {"Content-Range": f"bytes */{size_bytes}", "Accept-Ranges": "bytes"}
        return error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "The range lies past the end.", unsatisfiable)
    headers["Content-Length"] = str(part.length)
    if part.status == HTTPStatus.PARTIAL_CONTENT:
        headers["Content-Range"] = f"bytes {part.start}-{part.start + part.length - 1}/{size_bytes}"
    if request.method == "HEAD":
        return Response(status_code=part.status, headers=headers)
    return _OpenObject(opened, part, headers)


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
