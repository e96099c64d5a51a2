"""Every ``code`` that an error over HTTP may have, and the statuses that it comes with: the one table, for answers and ``docs/api.md``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from contract.errors import Busy, NotServed, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["STATUSES", "ErrorCode", "code_of_status"]


class ErrorCode(StrEnum):
    """A stable word: it is never renamed, and programs may rest on it."""

    BAD_REQUEST = "bad_request"
    INVALID_ID = "invalid_id"
    REFUSED = Refused.code
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    NOT_SERVED = NotServed.code
    STORE_PENDING = "store_pending"
    STORE_FAILED = "store_failed"
    UNKNOWN_SCHEMA = "unknown_schema"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    CONFLICT = "conflict"
    BUSY = Busy.code
    CONTENT_TOO_LARGE = "content_too_large"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    TOO_MANY_REQUESTS = "too_many_requests"
    INTERNAL_SERVER_ERROR = "internal_server_error"
    NO_DATABASE = "no_database"
    DATABASE_UNAVAILABLE = "database_unavailable"
    SERVICE_UNAVAILABLE = "service_unavailable"


_DEFAULTS: Final = {
    400: ErrorCode.BAD_REQUEST,
    401: ErrorCode.UNAUTHORIZED,
    403: ErrorCode.FORBIDDEN,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    408: ErrorCode.REQUEST_TIMEOUT,
    409: ErrorCode.CONFLICT,
    413: ErrorCode.CONTENT_TOO_LARGE,
    416: ErrorCode.RANGE_NOT_SATISFIABLE,
    429: ErrorCode.TOO_MANY_REQUESTS,
    500: ErrorCode.INTERNAL_SERVER_ERROR,
    503: ErrorCode.SERVICE_UNAVAILABLE,
}
STATUSES: Final[Mapping[ErrorCode, frozenset[int]]] = {
    **{code: frozenset({status}) for status, code in _DEFAULTS.items()},
    ErrorCode.INVALID_ID: frozenset({400}),
    ErrorCode.REFUSED: frozenset({400}),
    ErrorCode.NOT_SERVED: frozenset({404}),
    ErrorCode.STORE_PENDING: frozenset({404}),
    ErrorCode.STORE_FAILED: frozenset({404}),
    ErrorCode.UNKNOWN_SCHEMA: frozenset({404}),
    ErrorCode.BUSY: frozenset({409, 503}),
    ErrorCode.NO_DATABASE: frozenset({503}),
    ErrorCode.DATABASE_UNAVAILABLE: frozenset({503}),
}


def code_of_status(status: int) -> ErrorCode:
    """The code of an error that has none of its own. Statuses that no route of ours gives count as their hundred."""
    return _DEFAULTS.get(status, ErrorCode.BAD_REQUEST if status < 500 else ErrorCode.INTERNAL_SERVER_ERROR)
