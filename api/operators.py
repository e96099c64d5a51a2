"""Who may use ``/admin``: bearer tokens with a scope, compared in constant time."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.errors import ApiError
from api.webhooks import same_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.serving_settings import AdminToken
    from infra.settings import Settings

__all__ = ["allowed"]

_bearer = HTTPBearer(auto_error=False, description="A token of ZARRMILL_ADMIN_TOKENS.")


def allowed(
    settings: Settings, scope: Literal["read", "operate"]
) -> Callable[[HTTPAuthorizationCredentials | None], str]:
    """The dependency that gives the name of whoever asks, or answers 401 or 403."""
    operators = settings.operators()

    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> str:
        token = None if given is None else given.credentials
        # every token is compared, so that the time does not tell which one came close
        fitting: list[AdminToken] = [one for one in operators if same_secret(token, one.token)]
        if not fitting:
            raise ApiError(
                HTTPStatus.UNAUTHORIZED, "A valid bearer token is needed.", headers={"WWW-Authenticate": "Bearer"}
            )
        if scope == "operate" and fitting[0].scope != "operate":
            raise ApiError(HTTPStatus.FORBIDDEN, "This token may read and not operate.")
        return fitting[0].who

    return check
