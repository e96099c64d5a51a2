"""Errors below ``/dashboard`` as pages, for browsers; programs get them as everywhere else."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request

from api.dashboard.addresses import HOME, dataset_page
from contract.layout import DATASET_ID_PATTERN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from api.dashboard.site import Site

__all__ = ["ErrorPages"]


class ErrorPages:
    """Shows what went wrong as a page to whoever takes HTML."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        is_ours = scope["type"] == "http" and (scope["path"] == HOME or scope["path"].startswith(f"{HOME}/"))
        if not is_ours or "text/html" not in Headers(scope=scope).get("accept", ""):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        body = b""

        async def shown(message: Message) -> None:
            nonlocal held, body
            if message["type"] == "http.response.start" and _is_error(message):
                held = message
            elif held is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    await self._show(scope, receive, send, held, body)

        await self._app(scope, receive, shown)

    async def _show(self, scope: Scope, receive: Receive, send: Send, start: Message, body: bytes) -> None:
        said: dict[str, Any] = json.loads(body)
        request = Request(scope)
        status = start["status"]
        page = self._site.page(
            request,
            "trouble.html",
            reader=self._site.known(request),
            title=_title(status),
            status=status,
            message=_sentence(said) or _title(status),
            ways=_ways(request, status),
            request_id=said.get("request_id"),
        )
        kept = Headers(raw=start["headers"])
        for name in ("location", "retry-after", "allow", "www-authenticate"):
            if name in kept:
                page.headers[name] = kept[name]
        await page(scope, receive, send)


def _sentence(said: dict[str, Any]) -> str | None:
    """What went wrong, for people; of a part of the address that is no such thing, which part."""
    detail = said.get("detail")
    if said.get("code") == "bad_request" and isinstance(detail, list) and detail:
        name = str(detail[0].get("where", "")).rpartition(".")[2]
        return f"What the address says of {name} is not understood."
    message: str | None = said.get("message")
    return message


def _ways(request: Request, status: int) -> list[tuple[str, str]]:
    """Ways back that are nearer than the overview: (what it leads to, address)."""
    ways = []
    path, is_wrong = request.url.path, status in {HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT}
    if is_wrong and request.method == "GET" and request.url.query:
        ways.append(("The page without filters", path))
    inside = re.match(rf"{HOME}/datasets/({DATASET_ID_PATTERN.strip('^$')})/", path)
    if inside and is_wrong:
        ways.append((f"Back to {inside[1]}", dataset_page(inside[1]) + ("#actions" if "/actions/" in path else "")))
    if path.startswith(f"{HOME}/runs"):
        ways.append(("All runs", f"{HOME}/runs"))
    return ways


def _is_error(start: Message) -> bool:
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return start["status"] >= HTTPStatus.MULTIPLE_CHOICES and kind.startswith("application/json")


def _title(status: int) -> str:
    return HTTPStatus(status).phrase
