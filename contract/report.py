"""A report of another converter (zarr-ready), read with tolerance: what is malformed is dropped, field by field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Reported", "is_archive_id", "read_report", "summary_line"]

_ARCHIVE_ID = re.compile(r"(?:nm|on|xx)0[0-9]{5}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LARGEST: Final = 2**53
_LONGEST_TEXT: Final = 1000


def is_archive_id(text: str) -> bool:
    """Whether a report may be about this dataset: nm, on or xx and six digits that are at most 99999."""
    return _ARCHIVE_ID.fullmatch(text) is not None


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # JSON knows one kind of number: 3.0 is 3
    return int(value) if 0 <= value <= _LARGEST and value == int(value) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _storable(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT or "\x00" in value:
        return None
    # half of a surrogate pair is a string in JSON and no text for a database
    return value if value.isprintable() else None


def _commit(value: Any) -> str | None:
    return value if isinstance(value, str) and _COMMIT.fullmatch(value) else None


def _status(value: Any) -> str | None:
    return value if value in ("ready", "failed", "converting") else None


def _texts(value: Any) -> tuple[str, ...] | None:
    return tuple(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else None


def _list(value: Any) -> tuple[Any, ...] | None:
    return tuple(value) if isinstance(value, list) else None


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "status": _status,
    "store_count": _count,
    "index_etag": _storable,
    "commit": _commit,
    "converted": _texts,
    "removed": _texts,
    "errors": _count,
    "failed": _texts,
    "failure_count": _count,
    "data_failures": _list,
    "deterministic": _flag,
    "error": _text,
    "pool_breaks": _count,
    "measured_count": _count,
    "calibration": _list,
    "retryable_failures": _count,
    "pending_count": _count,
    "discovered_count": _count,
    "not_attempted_count": _count,
    "non_raw_dropped": _count,
    "provenance_fetch_failed": _flag,
    "manifest_upload_failed": _flag,
    "events_row_count": _count,
    "events_upload_failed": _flag,
    "events_stores_without_rows": _count,
}
_MAY_BE_NULL = frozenset({"events_row_count"})


@dataclass(frozen=True, slots=True)
class Reported:
    """What of a report can be used. ``dropped`` names the fields that were malformed, in order."""

    dataset_id: str
    fields: Mapping[str, Any]
    dropped: tuple[str, ...]

    @property
    def status(self) -> Any:
        """converting, ready or failed; reports of before there was a status meant ready."""
        return self.fields.get("status", "ready")

    @property
    def failures(self) -> tuple[int, int]:
        """``errors``, and of them those with a verdict: what is said, else as many as are listed, never more than errors."""
        errors: int = self.fields.get("errors", 0)
        listed = len(self.fields.get("data_failures", ()))
        return errors, min(self.fields.get("failure_count", listed), errors)

    def summary(self) -> dict[str, Any] | None:
        """What is kept of the failures: counts and where to read more; None when there is nothing to say."""
        listed, pending = len(self.fields.get("data_failures", ())), self.fields.get("pending_count", 0)
        flags = {name: True for name in ("events_upload_failed", "manifest_upload_failed") if self.fields.get(name)}
        if not listed and not pending and not flags:
            return None
        counts = {
            name: self.fields[f"{name}_count"] for name in ("pending", "discovered") if f"{name}_count" in self.fields
        }
        return {"count": listed, "detail_ref": "zarr/index.json", **counts, **flags}


def read_report(body: Mapping[str, Any], dataset_id: str) -> Reported:
    """The fields of a body that are what they should be; unknown ones pass and are ignored."""
    fields: dict[str, Any] = {}
    dropped = []
    for name, read in _FIELDS.items():
        if name not in body or (body[name] is None and name in _MAY_BE_NULL):
            continue
        value = read(body[name])
        if value is None:
            dropped.append(name)
        else:
            fields[name] = value
    return Reported(dataset_id, fields, tuple(dropped))


def summary_line(report: Reported) -> str:
    """One line about a report that was stored: ``dataset=… status=…`` and so on, always all of it and in one order."""
    said = report.fields
    shown: dict[str, Any] = {
        "dataset": report.dataset_id,
        "status": report.status,
        "stores": said.get("store_count", "?"),
        "converted": len(said.get("converted", ())),
        "removed": len(said.get("removed", ())),
        "purged": 0,
        "pool_breaks": said.get("pool_breaks", "?"),
        "pending": said.get("pending_count", "?"),
        "discovered": said.get("discovered_count", "?"),
        "not_attempted": said.get("not_attempted_count", "?"),
        "non_raw_dropped": said.get("non_raw_dropped", "?"),
        "provenance_fetch_failed": said.get("provenance_fetch_failed", "?"),
        "events_rows": said.get("events_row_count", "none"),
        "events_upload_failed": said.get("events_upload_failed", False),
        "manifest_upload_failed": said.get("manifest_upload_failed", False),
        "events_stores_without_rows": said.get("events_stores_without_rows", "?"),
    }
    return "[zarr-ready] " + " ".join(
        f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in shown.items()
    )
