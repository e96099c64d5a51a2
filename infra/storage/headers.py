"""What is said about an object when it is served: its type, and how long a cache may keep it."""

from __future__ import annotations

from contract.layout import RUNS_AREA

__all__ = ["cache_control", "content_type"]

_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
_DOCUMENTS = frozenset({"index.json", "manifest.json", "events.parquet"})


def content_type(key: str) -> str:
    """The media type of the object at ``key``, by its ending."""
    return _CONTENT_TYPES.get(key.rsplit(".", 1)[-1], "application/octet-stream")


def cache_control(key: str) -> str:
    """``Cache-Control`` of the object at ``key``: documents and metadata a minute, the catalog an hour, chunks a day, what is private never."""
    if key.startswith(f"{RUNS_AREA}/"):
        return "private, no-store"
    return f"public, max-age={_max_age_s(key)}"


def _max_age_s(key: str) -> int:
    name = key.rsplit("/", 1)[-1]
    if name == key:
        return 3600
    return 60 if name == "zarr.json" or (key.count("/") == 2 and name in _DOCUMENTS) else 86400
