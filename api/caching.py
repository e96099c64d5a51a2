"""How long a cache may keep what the gateway sends, and who is sent on to the bucket instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contract.layout import CATALOG_KEY, ROOT_METADATA

if TYPE_CHECKING:
    from starlette.requests import Request

    from infra.settings import Settings

__all__ = ["Origins", "cache_control"]

_DOCUMENTS = frozenset({"index.json", "manifest.json", "events.parquet"})


def cache_control(key: str, request: Request) -> str:
    """``Cache-Control`` of the object at ``key``, by its class; with ``?v=`` the version is in the address."""
    name = key.rsplit("/", 1)[-1]
    if key == CATALOG_KEY:
        return _kept(3600, 3600)
    if request.query_params.get("v"):
        return _kept(86400, 86400)
    if key.count("/") == 2 and name in _DOCUMENTS:
        return _kept(300, 3600)
    return _kept(60, 300) if name == ROOT_METADATA else _kept(86400, 86400)


def _kept(fresh_s: int, stale_s: int) -> str:
    return f"public, max-age={fresh_s}, stale-while-revalidate={stale_s}"


class Origins:
    """The web pages that may read."""

    def __init__(self, settings: Settings) -> None:
        self.everybody = settings.cors_origins == "*"
        spelt = (re.escape(one).replace(r"://\*\.", r"://[a-z0-9.-]+\.") for one in settings.cors_origins.split(","))
        self.pattern = "|".join(one.replace(r":\*", r":\d{1,5}") for one in spelt)
        """A regular expression that the whole of an allowed origin fits."""

    def allow(self, origin: str | None) -> bool:
        """Whether a request with this ``Origin`` comes from a web page that may read."""
        return origin is not None and (self.everybody or re.fullmatch(self.pattern, origin) is not None)
