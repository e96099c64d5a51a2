"""The store of a renamed recording: a copy within the target whose root, index entry and event rows carry the new name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contract.documents import CONTENT_TYPE, dump, parse
from contract.errors import PublishError
from contract.index import StoreEntry
from contract.layout import ROOT_METADATA, store_key
from contract.store import PUBLISH_ID
from db.stores import StoreRow, pack_digests, pack_etags
from tasks.events.rows import renamed_rows
from tasks.publish.roots import edited_root

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract.store import Provenance
    from db.store_objects import CopiedStore
    from infra.storage.protocol import Target
    from tasks.bids.recording import DiscoveredRecording

__all__ = ["Renaming", "copy_renamed"]

_NAMES_FILES: Final = "sidecar_notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """One recording under its new name, and the store it had under the old one.

    ``fingerprint`` is of its inputs under their new names; ``updated_utc`` the start of the run.
    """

    recording: DiscoveredRecording
    fingerprint: str
    provenance: Provenance
    updated_utc: str
    origin: CopiedStore


def copy_renamed(
    target: Target, dataset_id: str, one: Renaming, *, publish_id: str, may_write: Callable[[], None]
) -> StoreRow | None:
    """Copy the store and give the row for ``db.recordings.done``; None when it has to be converted after all.

    That is so when its digests are not known, or its root speaks of files by name.

    Raises
    ------
    LostLease
        From ``may_write``, asked before each write.
    PublishError, StorageError, OSError
        The store could not be copied; what was begun is found by the attempt's intent.
    """
    origin, recording = one.origin, one.recording
    root = target.read(f"{store_key(dataset_id, origin.zarr)}/{ROOT_METADATA}")
    if root is None or not origin.digests:
        return None
    if hashlib.sha256(root.data).hexdigest() != origin.digests[ROOT_METADATA][1]:
        return None
    renamed = edited_root(root.data, lambda attributes: _rename(attributes, one, target.marks_stores and publish_id))
    if _NAMES_FILES.encode() in root.data:
        return None
    key = store_key(dataset_id, recording.zarr)
    may_write()
    etags = dict(target.copy_store(store_key(dataset_id, origin.zarr), key, may_write=may_write))
    live = target.read(f"{key}/{ROOT_METADATA}")
    if live is None:
        raise PublishError("A copied store has no root.", detail=key)
    may_write()
    etag = target.put(f"{key}/{ROOT_METADATA}", renamed, content_type=CONTENT_TYPE, if_match=live.etag)
    if etags:
        etags[ROOT_METADATA] = etag
    digests = {**origin.digests, ROOT_METADATA: (len(renamed), hashlib.sha256(renamed).hexdigest())}
    events = origin.events and renamed_rows(origin.events, zarr=recording.zarr, entities=recording.entities)
    return StoreRow(
        entry=dump(_entry(one)),
        source=one.fingerprint,
        options=origin.options,
        engine=origin.engine,
        biosigio=origin.biosigio,
        digests=pack_digests(digests),
        etags=pack_etags(etags),
        events=events,
        events_row_count=origin.events_row_count,
        source_key=origin.source_key,
        size_bytes=origin.size_bytes,
        duration_s=origin.duration_s,
        updated_utc=one.updated_utc,
    )


def _rename(attributes: dict[str, Any], one: Renaming, publish_id: str | bool) -> None:
    metadata = dict(attributes.get("recording_metadata", {}))
    metadata["source_file"] = one.recording.path
    attributes["recording_metadata"] = metadata
    derived = attributes.get("nemar", {}).get("derived", False)
    attributes["nemar"] = {**one.provenance.model_dump(mode="json"), "derived": derived}
    if publish_id:
        attributes[PUBLISH_ID] = publish_id


def _entry(one: Renaming) -> StoreEntry:
    """The index entry under the new name."""
    recording = one.recording
    former = parse(StoreEntry, one.origin.entry)
    units = former.units_report
    if units is not None and recording.sidecars.channels is not None:
        units = units.model_copy(update={"sidecar": recording.sidecars.channels})
    return former.model_copy(
        update={
            "path": recording.path,
            "zarr": recording.zarr,
            "updated_utc": one.updated_utc,
            "units_report": units,
            "split_members": recording.split_members or None,
        }
    )
