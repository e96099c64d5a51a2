"""Style sheets, scripts and pictures of the dashboard, each with an address that changes with its content."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from api.dashboard.addresses import HOME

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Asset", "add_assets", "asset_address", "assets"]

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"
_SHORT = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent: as it is, and packed."""

    kind: str
    data: bytes
    packed: bytes
    digest: str


@cache
def assets() -> Mapping[str, Asset]:
    """Every file of ``static`` by name, read once a process."""
    found = {}
    for entry in (resources.files("api.dashboard") / "static").iterdir():
        kind = _KINDS.get(PurePosixPath(entry.name).suffix)
        if kind is not None:
            data = entry.read_bytes()
            packed = gzip.compress(data, mtime=0)
            found[entry.name] = Asset(kind, data, packed, hashlib.sha256(data).hexdigest()[:16])
    return found


def asset_address(name: str) -> str:
    """Where a file of ``static`` is, good for ever because a changed file has another address."""
    return f"{HOME}/static/{name}?v={assets()[name].digest}"


def add_assets(routes: APIRouter) -> None:
    """The route of ``static``. What is there is the same for everybody."""

    @routes.get(f"{HOME}/static/{{name}}", include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        found = assets().get(name)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "Not found")
        is_named = request.query_params.get("v") == found.digest
        headers = {
            "Cache-Control": _FOREVER if is_named else _SHORT,
            "ETag": f'"{found.digest}"',
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(found.packed, media_type=found.kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(found.data, media_type=found.kind, headers=headers)
