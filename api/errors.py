"""Every error over HTTP in one shape: code, message, detail, request_id; never a path, a secret or a trace."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from api.codes import ErrorCode, code_of_status
from contract.errors import Busy, Refused, StorageError

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import Scope

__all__ = ["ApiError", "add_error_handlers", "error", "not_found", "request_id"]

_NO_STORE = {"Cache-Control": "no-store"}
_MOST_WRONG = 20
_DATABASE = "The database cannot be asked now; try again."
_log = logging.getLogger("zarrmill.api")


class ApiError(Exception):
    """An answer that is an error, raised from wherever it is found out."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: ErrorCode | None = None,
        detail: Any = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.detail = detail
        self.headers = headers


def request_id(scope: Scope) -> str | None:
    """The id by which the log tells a request, once it has one."""
    found: str | None = scope.get("zarrmill.request_id")
    return found


def error(
    scope: Scope,
    status: int,
    message: str,
    *,
    code: ErrorCode | None = None,
    detail: Any = None,
    headers: dict[str, str] | None = None,
    more: dict[str, Any] | None = None,
) -> JSONResponse:
    """An error response that no cache keeps.

    Parameters
    ----------
    code
        Unset it is that of the status.
    detail
        What else a program can use, JSON.
    more
        Further fields, such as the state of the store that is not there.
    """
    body = {
        "code": code or code_of_status(status),
        "message": message,
        "detail": detail,
        "request_id": request_id(scope),
        "error": message,  # the one field that older readers know
    }
    return JSONResponse(body | (more or {}), status_code=status, headers=_NO_STORE | (headers or {}))


def not_found(scope: Scope) -> JSONResponse:
    """The one answer for everything that is not served, whatever the reason."""
    return error(scope, HTTPStatus.NOT_FOUND, "Not found")


def _ours(request: Request, raised: Exception) -> Response:
    assert isinstance(raised, ApiError)
    return error(
        request.scope, raised.status, raised.message, code=raised.code, detail=raised.detail, headers=raised.headers
    )


def _http_error(request: Request, raised: Exception) -> Response:
    assert isinstance(raised, HTTPException)
    return error(request.scope, raised.status_code, str(raised.detail), headers=dict(raised.headers or {}))


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")[:300]


def _invalid(request: Request, raised: Exception) -> Response:
    assert isinstance(raised, RequestValidationError)
    # names come from the request, and half of a surrogate pair could not be sent back
    wrong = [
        {"where": _sendable(".".join(map(str, one["loc"]))), "what": _sendable(one["msg"])}
        for one in raised.errors()[:_MOST_WRONG]
    ]
    # the innermost name: a number is a place in a list, or in a text that is no JSON
    name = _sendable(next(part for part in reversed(raised.errors()[0]["loc"]) if isinstance(part, str)))
    return error(request.scope, HTTPStatus.BAD_REQUEST, f"{name}: {wrong[0]['what']}", detail=wrong)


def _refused(request: Request, raised: Exception) -> Response:
    assert isinstance(raised, (Refused, Busy))
    busy = isinstance(raised, Busy)
    status, code = (HTTPStatus.CONFLICT, ErrorCode.BUSY) if busy else (HTTPStatus.BAD_REQUEST, ErrorCode.REFUSED)
    return error(request.scope, status, raised.sentence, code=code)


def _storage(request: Request, raised: Exception) -> Response:
    _log.warning("the target cannot be read (request %s): %s", request_id(request.scope), raised)
    return error(request.scope, HTTPStatus.SERVICE_UNAVAILABLE, "The object cannot be read now; try again.")


def _database(request: Request, raised: Exception) -> Response:
    _log.warning("the database cannot be asked (request %s): %s", request_id(request.scope), type(raised).__name__)
    return error(request.scope, HTTPStatus.SERVICE_UNAVAILABLE, _DATABASE, code=ErrorCode.DATABASE_UNAVAILABLE)


def _unexpected(request: Request, _raised: Exception) -> Response:
    return error(request.scope, HTTPStatus.INTERNAL_SERVER_ERROR, "The server had trouble; try again.")


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error of ``app`` in this module's shape; the server logs the unexpected ones itself."""
    app.add_exception_handler(ApiError, _ours)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(Busy, _refused)
    app.add_exception_handler(StorageError, _storage)
    for unavailable in (OperationalError, InterfaceError, PoolTimeout):
        app.add_exception_handler(unavailable, _database)
    app.add_exception_handler(Exception, _unexpected)
