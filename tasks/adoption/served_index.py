"""The documents that stand at a target, read as they come: index.json of format version 1 to 3, and manifest.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from contract.closed import RelativePath, StorePath
from contract.codes import FailureCode, PendingReason
from contract.errors import Refused
from contract.index import GroupEntry, SssEntry, StoreEntry, UnitsReport
from contract.redact import redact
from tasks.bids.scope import EXCLUDED_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ServedFailure", "ServedIndex", "ServedPending", "ServedStore", "read_served_index"]

_FORMAT = "nemar-zarr-index"
_VERSIONS = (1, 2, 3)
_NESTED: dict[str, type[BaseModel]] = {"groups": GroupEntry, "units_report": UnitsReport, "sss": SssEntry}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStore:
    """A store that the index names. ``source_key``: git-annex key of the file it was made from, where that is known."""

    path: str
    entry: StoreEntry
    source_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFailure:
    """A verdict that the index states."""

    path: str
    code: FailureCode
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPending:
    """A recording that the index says is still to come, after ``attempts`` counted attempts."""

    path: str
    reason: PendingReason
    attempts: int
    last_error: str | None


class _Identity(BaseModel):
    path: RelativePath
    zarr: StorePath


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedIndex:
    """What a target serves of one dataset, as far as its documents can be used.

    Parameters
    ----------
    source_commit
        State of the source that the copy was made from; None when the index does not say.
    store_count
        Stores that the index names, usable or not.
    outside_raw
        Stores of files outside the raw data, such as derivatives; they leave the index.
    unusable
        Entries that say nothing that could be kept, with the first reason.
    """

    format_version: int
    source_commit: str | None
    biosigio_version: str | None
    stores: tuple[ServedStore, ...]
    failures: tuple[ServedFailure, ...]
    pending: tuple[ServedPending, ...]
    store_count: int
    outside_raw: int
    unusable: tuple[str, ...]


def read_served_index(dataset_id: str, index: bytes, manifest: bytes | None) -> ServedIndex:
    """What the documents say. Fields that format version 3 does not know are passed over.

    Parameters
    ----------
    manifest
        Bytes of manifest.json, which knows the source keys of a version 3; None where there is none. One that cannot be
        read counts as none.

    Raises
    ------
    Refused
        ``index`` is no index of this dataset.
    """
    document = _document(dataset_id, index)
    keys = _keys(manifest)
    stores: list[ServedStore] = []
    unusable: list[str] = []
    outside = 0
    for raw in document["stores"]:
        try:
            store = _store(raw, keys)
        except (ValidationError, TypeError, AttributeError) as error:
            unusable.append(_trouble("a store", error))
            continue
        if store is None:
            outside += 1
        else:
            stores.append(store)
    return ServedIndex(
        format_version=document["format_version"],
        source_commit=document.get("source_commit") or None,
        biosigio_version=document.get("biosigio_version") or None,
        stores=tuple(sorted(stores, key=lambda store: store.entry.zarr)),
        failures=tuple(_failures(document.get("failures") or (), unusable)),
        pending=tuple(_pending(document.get("pending") or (), unusable)),
        store_count=len(document["stores"]),
        outside_raw=outside,
        unusable=tuple(unusable),
    )


def _document(dataset_id: str, data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
        kind, version, named = document["format"], document["format_version"], document["dataset_id"]
        stores = document["stores"]
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"The index of {dataset_id} at the target cannot be read as an index: look at it and move it away.",
            detail=type(error).__name__,
        ) from error
    if (kind, named) != (_FORMAT, dataset_id) or not isinstance(stores, list):
        raise Refused(f"The index at the place of {dataset_id} says that it is {kind!r} of {named!r}: move it away.")
    if version not in _VERSIONS:
        raise Refused(
            f"The index of {dataset_id} has format version {version!r}; this zarrmill takes over versions 1 to 3. "
            "A newer zarrmill may know it."
        )
    return dict(document)


def _keys(manifest: bytes | None) -> Mapping[str, str]:
    """Source key by store path."""
    if manifest is None:
        return {}
    try:
        rows = json.loads(manifest)["stores"]
        return {row["zarr"]: row["source_key"] for row in rows if row.get("source_key")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _store(raw: Mapping[str, Any], keys: Mapping[str, str]) -> ServedStore | None:
    """One entry; None for one outside the raw data."""
    named = _Identity.model_validate({"path": raw.get("path"), "zarr": raw.get("zarr")})
    if raw.get("source_tree", "raw") != "raw" or EXCLUDED_SEGMENTS.intersection(named.path.split("/")[:-1]):
        return None
    kept = {name: _known(name, value) for name, value in raw.items() if name in StoreEntry.model_fields}
    entry = StoreEntry.model_validate({"derived": False, **kept})
    key = keys.get(named.zarr) or raw.get("source_key")
    return ServedStore(path=named.path, entry=entry, source_key=key if isinstance(key, str) else None)


def _known(name: str, value: Any) -> Any:
    """A value without the fields that our models do not have."""
    model = _NESTED.get(name)
    if model is None or value is None:
        return value
    if isinstance(value, list):
        return [_known(name, one) for one in value]
    return {field: inner for field, inner in value.items() if field in model.model_fields}


def _failures(entries: Any, unusable: list[str]) -> Iterator[ServedFailure]:
    for raw in entries:
        try:
            detail = raw.get("detail")
            yield ServedFailure(
                path=raw["path"], code=FailureCode(raw["code"]), detail=None if detail is None else redact(str(detail))
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            unusable.append(_trouble("a failure", error))


def _pending(entries: Any, unusable: list[str]) -> Iterator[ServedPending]:
    for raw in entries:
        try:
            error = raw.get("last_error")
            yield ServedPending(
                path=raw["path"],
                reason=PendingReason(raw["reason"]),
                attempts=max(0, int(raw.get("attempts") or 0)),
                last_error=None if error is None else redact(str(error)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            unusable.append(_trouble("a pending recording", error))


def _trouble(what: str, error: Exception) -> str:
    lines = str(error).splitlines()
    first = f": {lines[0]}" if lines else ""
    return f"{what}: {redact(type(error).__name__ + first)}"
