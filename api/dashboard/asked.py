"""Words that an address or a form may hold, and what is said of others."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from api.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["check_word"]


def check_word(name: str, value: str | None, known: Collection[str]) -> None:
    """Make sure that a value is unset or one of those known; ApiError 400 with one sentence when it is not."""
    if value and value not in known:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"There is no {name} {value[:40]!r}; it is one of {', '.join(known)}.")
