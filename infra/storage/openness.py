"""What anybody may do at a bucket, by asking as anybody does: plain HTTP without a signature, as a browser sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Openness", "look"]

_ORIGIN: Final = "https://reader.example.org"
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Openness:
    """What unsigned requests were answered. None: an answer that does not say, or none at all.

    ``cors`` is whether a web page of another origin may read an object and ask for a range of it.
    """

    may_read: bool | None
    may_list: bool | None
    may_write: bool | None
    cors: bool | None

    @property
    def is_as_published(self) -> bool:
        """Whether the bucket is as one that serves everybody must be: read by anybody and any page, listed and written by nobody else."""
        return (self.may_read, self.may_list, self.may_write, self.cors) == (True, False, False, True)

    @property
    def is_closed(self) -> bool:
        """Whether nobody gets anything without credentials."""
        return (self.may_read, self.may_list, self.may_write) == (False, False, False)


def look(base: str, key: str, *, unwritten: str) -> Openness:
    """Ask about a bucket.

    Parameters
    ----------
    base
        Its address, with a slash at the end.
    key
        An object that is there.
    unwritten
        A key at which nothing is; written by this if anybody may write, so the caller removes it.
    """
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
        return Openness(
            may_read=_allowed(lambda: client.get(base + key)),
            may_list=_allowed(lambda: client.get(base, params={"list-type": "2", "max-keys": "1"})),
            may_write=_allowed(lambda: client.put(base + unwritten, content=b"")),
            cors=_cors(client, base + key),
        )


def _allowed(ask: Callable[[], httpx.Response]) -> bool | None:
    try:
        status = ask().status_code
    except httpx.HTTPError:
        return None
    if status < 300:
        return True
    return False if status in (401, 403) else None


def _cors(client: httpx.Client, url: str) -> bool | None:
    asked = {"Origin": _ORIGIN, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "range"}
    try:
        before = client.options(url, headers=asked)
        read = client.get(url, headers={"Origin": _ORIGIN})
    except httpx.HTTPError:
        return None
    if read.status_code >= 500 or before.status_code >= 500:
        return None
    return before.status_code < 300 and all(
        one.headers.get("Access-Control-Allow-Origin") in ("*", _ORIGIN) for one in (before, read)
    )
