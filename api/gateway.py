"""One served object as one HTTP response: ranges, validators, cache headers. It never leaves the target."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from api.absent import absent, state_of_store
from api.caching import cache_control
from api.errors import error, not_found
from contract.errors import StorageError
from contract.layout import CATALOG_KEY, is_dataset_id
from infra.storage.folder import FolderTarget
from infra.storage.headers import content_type
from infra.storage.opened import opener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from api.caching import Origins
    from api.service import Service
    from infra.storage.opened import Opened
    from infra.storage.protocol import Target

__all__ = ["Gateway"]

_SIGNED_S = 3600
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


class Gateway:
    """The objects of a target, each as the answer to one request."""

    def __init__(self, service: Service, origins: Origins) -> None:
        self._service = service
        self._open = opener(service.target)
        self._origins = origins
        redirect = service.settings.redirect
        self._link = None if redirect == "never" else link_of(service.target, signed=redirect == "signed")
        # where only some pages may read, the middleware says so itself
        self._varies = {"Vary": "Origin"} if origins.everybody and self._link is not None else {}

    def catalog(self, request: Request) -> Response:
        """The catalog, or 404 before the first."""
        return self._serve(request, CATALOG_KEY) or not_found(request.scope)

    def object(self, request: Request, dataset_id: str, path: str) -> Response:
        """The object at ``path`` of a dataset, or 404 for everything that is not plain, visible and there.

        Answers GET and HEAD. Single and suffix ranges give 206, ranges past the end 416, several ranges the whole object.
        A 404 below a store that is not there says why it is not.
        """
        if not is_dataset_id(dataset_id) or not _is_plain(request, path) or not self._service.is_public(dataset_id):
            return not_found(request.scope)
        answer = self._serve(request, f"{dataset_id}/zarr/{path}")
        return answer or self._absent(request, dataset_id, path)

    def _absent(self, request: Request, dataset_id: str, path: str) -> Response:
        store, end, _ = path.partition(".zarr/")
        if not (end or path.endswith(".zarr")):
            return not_found(request.scope)
        return absent(request, state_of_store(self._service, dataset_id, f"{store}.zarr" if end else path))

    def _serve(self, request: Request, key: str) -> Response | None:
        """The object at ``key`` as an answer; None when it is not there."""
        try:
            opened = self._open(key)
        except (OSError, StorageError):
            return error(request.scope, HTTPStatus.SERVICE_UNAVAILABLE, "The object cannot be read now; try again.")
        if opened is None:
            return None
        response: Response | None = None
        try:
            response = self._sent_on(request, key) or _respond(request, opened, key, self._varies)
        finally:
            if not isinstance(response, _OpenObject):
                opened.close()
        return response

    def _sent_on(self, request: Request, key: str) -> Response | None:
        """A redirect to the bucket for who is no web page. index.json is never redirected, for it names the addresses."""
        if self._link is None or request.method != "GET" or key.count("/") < 2 or key.endswith("/zarr/index.json"):
            return None
        # a page of this server sends no Origin with what it reads here, and may connect to nowhere else
        if request.query_params.get("direct") or self._origins.allow(request.headers.get("origin")):
            return None
        where, kept = self._link(key)
        return Response(
            status_code=HTTPStatus.FOUND, headers={"Location": where, "Cache-Control": kept, **self._varies}
        )


def link_of(target: Target, *, signed: bool) -> Callable[[str], tuple[str, str]] | None:
    """The function that gives an object's address at the bucket and its ``Cache-Control``; None where there is no bucket."""
    if isinstance(target, FolderTarget):
        return None
    from infra.storage.s3_target import S3Target

    assert isinstance(target, S3Target), "there are two kinds of target"
    bucket = target
    if signed:
        # half of its life in a cache leaves the other half to use it
        kept = f"private, max-age={_SIGNED_S // 2}"
        return lambda key: (bucket.signed_url(key, seconds=_SIGNED_S), kept)
    return lambda key: (bucket.public_url(key), "public, max-age=3600")


def _is_plain(request: Request, path: str) -> bool:
    segments = path.split("/")
    return not _HIDDEN_BYTES.search(request.scope.get("raw_path") or b"") and all(map(_is_visible, segments))


def _is_visible(segment: str) -> bool:
    """Whether a path segment can be served: not empty, not hidden (this covers ``.`` and ``..``), no odd bytes."""
    return bool(segment) and not segment.startswith(".") and "\\" not in segment and "\x00" not in segment


def _respond(request: Request, opened: Opened, key: str, varies: dict[str, str]) -> Response:
    etag, size_bytes = f'"{opened.etag}"', opened.size_bytes
    headers = {"ETag": etag, "Cache-Control": cache_control(key, request), "Accept-Ranges": "bytes", **varies}
    if _matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    headers["Content-Type"] = content_type(key)
    part = _part(request, size_bytes, etag)
    if part is None:
        unsatisfiable = {"Content-Range": f"bytes */{size_bytes}", "Accept-Ranges": "bytes", **varies}
        status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        return error(request.scope, status, "The range lies past the end.", headers=unsatisfiable)
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
