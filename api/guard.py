"""What stands around every request: its id, its limits of number, size and time, and its measurement."""

from __future__ import annotations

import asyncio
import math
import re
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from api.codes import ErrorCode
from api.errors import error
from api.rates import Rates

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.metrics import Metrics
    from infra.settings import Settings

__all__ = ["Limits", "Measured"]

LONGEST_BODY_BYTES = 1 << 16
LONGEST_WEBHOOK_BYTES = 16 << 20
_BODY_S = 30.0
_STALLED_S = 60.0
_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_OBJECT = re.compile(r"/[a-z]{2}[0-9]{6}/zarr/")
_UNLIMITED = frozenset({"/healthz", "/readyz"})


class Measured:
    """Gives each request its id, answers with it in ``X-Request-Id``, and counts what was answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        name = scope["zarrmill.request_id"] = given if _ID.fullmatch(given) else uuid4().hex
        status, sent_bytes, began = 0, 0, time.perf_counter()

        async def told(message: Message) -> None:
            nonlocal status, sent_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = name
                headers["X-Content-Type-Options"] = "nosniff"
            sent_bytes += len(message.get("body", b""))
            await send(message)

        with self._metrics.answering():
            try:
                await self._app(scope, receive, told)
            finally:
                self._metrics.note(scope, status or 500, time.perf_counter() - began, sent_bytes)


class _Stalled(Exception):
    """A reader took nothing for a minute."""


class Limits:
    """Refuses what is too much: requests of one address, requests at once, large bodies, and readers that stall."""

    def __init__(
        self, app: ASGIApp, settings: Settings, *, body_s: float = _BODY_S, stalled_s: float = _STALLED_S
    ) -> None:
        self._app = app
        self._body_s = body_s
        self._stalled_s = stalled_s
        self._others = Rates(settings.requests_per_minute)
        self._objects = Rates(settings.object_requests_per_minute)
        self._most = settings.requests_at_once
        self._at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] in _UNLIMITED:
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        self._at_once += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._at_once -= 1

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        address = scope["client"][0] if scope.get("client") else "unknown"
        rates = self._objects if _OBJECT.match(scope["path"]) else self._others
        if wait_s := rates.take(address):
            return error(
                scope,
                HTTPStatus.TOO_MANY_REQUESTS,
                "This address sends too many requests; wait a moment.",
                headers={"Retry-After": str(math.ceil(wait_s))},
            )
        if self._at_once >= self._most:
            return error(
                scope,
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The server answers as many requests as it may; try again.",
                code=ErrorCode.BUSY,
                headers={"Retry-After": "1"},
            )
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length) > _longest_body(scope):
            return error(scope, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_large(scope))
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = _longest_body(scope)

        async def bounded() -> Message:
            nonlocal left
            if left < 0:  # the body is in: what comes next is that the reader goes away, whenever it likes
                return await receive()
            try:
                async with asyncio.timeout(self._body_s):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time.") from None
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                if left < 0:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_large(scope))
                if not message.get("more_body", False):
                    left = -1
            return message

        async def patient(message: Message) -> None:
            try:
                async with asyncio.timeout(self._stalled_s):
                    await send(message)
            except TimeoutError:
                raise _Stalled from None

        with suppress(_Stalled):  # the server closes the connection of an answer that is not whole
            await self._app(scope, bounded, patient)


def _longest_body(scope: Scope) -> int:
    return LONGEST_WEBHOOK_BYTES if scope["path"].startswith("/webhooks/") else LONGEST_BODY_BYTES


def _too_large(scope: Scope) -> str:
    return f"The body is larger than {_longest_body(scope)} bytes."
