"""Sessions of people who signed in with an operator's token.

A session is a signed value in a cookie and is stored nowhere. Its key comes from the token by HMAC, so that the cookie tells nothing of
the token, and a token that is taken out of the settings ends every session that was begun with it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from api.webhooks import same_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.serving_settings import AdminToken

__all__ = ["COOKIE", "LASTS_S", "Reader", "begin_session", "find_session", "token_owner"]

COOKIE = "zarrmill_session"
LASTS_S = 12 * 3600


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks at a page: nobody known, or whoever signed in. ``csrf`` goes into every form that does something."""

    who: str | None = None
    scope: Literal["read", "operate"] | None = None
    csrf: str = ""

    @property
    def is_signed_in(self) -> bool:
        """Whether private datasets, workers, logs and tracebacks may be shown."""
        return self.who is not None

    @property
    def may_operate(self) -> bool:
        """Whether buttons that do something work."""
        return self.scope == "operate"


def token_owner(given: str, operators: Sequence[AdminToken]) -> AdminToken | None:
    """Whose token this is. Each is compared, so that the time does not tell which one came close."""
    fitting = [one for one in operators if same_secret(given, one.token)]
    return fitting[0] if fitting else None


def begin_session(owner: AdminToken, *, now_s: float | None = None) -> str:
    """The value of the cookie for whoever signed in with this token."""
    ends = int((time.time() if now_s is None else now_s) + LASTS_S)
    body = f"{ends}.{secrets.token_urlsafe(18)}"
    return f"{body}.{_mac(owner, 'session', body)}"


def find_session(cookie: str | None, operators: Sequence[AdminToken], *, now_s: float | None = None) -> Reader:
    """Who a cookie says it is; nobody when it is forged, over, or of a token that is not set any more."""
    body, _, mac = (cookie or "").rpartition(".")
    ends = body.partition(".")[0]
    fitting = [one for one in operators if same_secret(mac, _mac(one, "session", body))]
    if not fitting or not ends.isdecimal() or int(ends) <= (time.time() if now_s is None else now_s):
        return Reader()
    owner = fitting[0]
    return Reader(who=owner.who, scope=owner.scope, csrf=_mac(owner, "form", body))


def _mac(owner: AdminToken, purpose: str, text: str) -> str:
    # who and scope are in the key, so that a token that is given another scope begins anew
    named = f"zarrmill dashboard {owner.who} {owner.scope}".encode()
    key = hmac.digest(owner.token.encode("utf-8", "surrogateescape"), named, hashlib.sha256)
    signed = hmac.digest(key, f"{purpose} {text}".encode("utf-8", "surrogateescape"), hashlib.sha256)
    return base64.urlsafe_b64encode(signed).decode().rstrip("=")
