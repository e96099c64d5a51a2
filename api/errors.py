"""Every error of the HTTP surface as a small JSON object: ``{"error": "<sentence>"}``, never a path or a trace."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["add_error_handlers", "error", "not_found"]

_NO_STORE = {"Cache-Control": "no-store"}


def error(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error response that no cache keeps."""
    return JSONResponse({"error": sentence}, status_code=status, headers=_NO_STORE | (headers or {}))


def not_found() -> JSONResponse:
    """The one answer for everything that is not served, whatever the reason."""
    return error(HTTPStatus.NOT_FOUND, "Not found")


def _http_error(_request: Request, raised: Exception) -> Response:
    if not isinstance(raised, HTTPException):
        return _unexpected(_request, raised)
    return error(raised.status_code, str(raised.detail), dict(raised.headers or {}))


def _unexpected(_request: Request, _raised: Exception) -> Response:
    return error(HTTPStatus.INTERNAL_SERVER_ERROR, "The server had trouble; try again.")


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error of ``app`` in this module's form; the server logs the unexpected ones itself."""
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)
