"""A dataset's index as a reader uses it: its facts, and where a recording stands in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from contract.codes import PENDING_SENTENCES, PendingReason
from contract.errors import NotServed, Refused, StorageError
from contract.layout import index_key
from contract.reading import INDEX_FORMAT, INDEX_VERSION, ReadEntry, ReadHead
from contract.redact import redact
from tasks.read.place import read_json, read_whole

if TYPE_CHECKING:
    from tasks.read.place import Place

__all__ = ["ReadIndex", "find_entry", "read_catalog", "read_entry", "read_index", "verify_status_of"]


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """An index and its version.

    Parameters
    ----------
    stores, failures, pending
        Its entries as they stand there.
    """

    head: ReadHead
    etag: str
    stores: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    pending: list[dict[str, Any]]


def read_index(place: Place, dataset_id: str) -> ReadIndex:
    """The index of a dataset.

    Raises
    ------
    Refused
        ``dataset_id`` is none, or the index is of a format that this reader does not know.
    NotServed
        The place serves no such dataset.
    StorageError
        It cannot be read now.
    """
    found = read_whole(place, index_key(dataset_id))
    if found is None:
        raise NotServed(f"No dataset {dataset_id} is served here.", state="unknown")
    return _parsed(found.data, found.version, dataset_id)


# an index of 25,000 stores takes a tenth of a second to parse; one version of it is parsed once
@lru_cache(maxsize=2)
def _parsed(data: bytes, version: str, dataset_id: str) -> ReadIndex:
    import json

    try:
        document = json.loads(data)
        found = (document["format"], document["format_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError("What is served as index.json is none.", detail=dataset_id) from error
    if found != (INDEX_FORMAT, INDEX_VERSION):
        raise Refused(
            f"The index of {dataset_id} is {str(found[0])[:40]!r} of format version {str(found[1])[:10]}, and this reader knows "
            f"{INDEX_FORMAT!r} of version {INDEX_VERSION}: read it with a program that knows it, or have the dataset converted anew."
        )
    try:
        head = ReadHead.model_validate(document)
        lists = [[dict(entry) for entry in document[name]] for name in ("stores", "failures", "pending")]
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise StorageError("The index that is served breaks its contract.", detail=dataset_id) from error
    return ReadIndex(head, version, *lists)


def find_entry(index: ReadIndex, recording: str) -> ReadEntry:
    """The entry of a served recording, by its path in the dataset or its store's.

    Raises
    ------
    NotServed
        The recording has failed, is pending, or is not listed at all.
    """
    by_path = next((entry for entry in index.stores if entry.get("path") == recording), None)
    if by_path is not None:
        return read_entry(by_path)
    for entry in index.failures:
        if entry.get("path") == recording:
            raise NotServed(
                str(entry.get("reason")),
                state="failed",
                reason=str(entry.get("code")),
                detail=_said(entry, "detail"),
            )
    for entry in index.pending:
        if entry.get("path") == recording:
            reason = str(entry.get("reason"))
            known = {word.value: sentence for word, sentence in PENDING_SENTENCES.items()}
            sentence = known.get(reason, known[PendingReason.NOT_ATTEMPTED.value])
            raise NotServed(sentence, state="pending", reason=reason, detail=_said(entry, "last_error"))
    by_zarr = next((entry for entry in index.stores if entry.get("zarr") == recording), None)
    if by_zarr is not None:
        return read_entry(by_zarr)
    raise NotServed(
        f"recording: {index.head.dataset_id} lists no {recording[:200]!r}; take a `path` of its index.", state="unknown"
    )


def _said(entry: dict[str, Any], name: str) -> str | None:
    """Text of an index that another installation may have written."""
    return redact(str(entry[name])) if entry.get(name) else None


def read_entry(entry: dict[str, Any]) -> ReadEntry:
    """An entry of ``stores``, checked; StorageError when it breaks the contract."""
    try:
        return ReadEntry.model_validate(entry)
    except ValidationError as error:
        raise StorageError("An entry of the index breaks its contract.", detail=str(entry.get("path"))) from error


def read_catalog(place: Place) -> list[dict[str, Any]]:
    """The rows of the catalog, an empty list where there is none."""
    found = read_json(place, place.catalog_key)
    if found is None:
        return []
    rows = found[0].get("datasets") if isinstance(found[0], dict) else None
    if not isinstance(rows, list):
        raise StorageError("What is served as catalog is none.")
    return [row for row in rows if isinstance(row, dict)]


def verify_status_of(place: Place, dataset_id: str) -> str | None:
    """The verdict that the catalog names for a dataset; None when there is none, or no catalog."""
    for row in read_catalog(place):
        if row.get("dataset_id") == dataset_id:
            status = row.get("zarr_verify_status")
            return status if status in ("verified", "failed", "unverifiable") else None
    return None
