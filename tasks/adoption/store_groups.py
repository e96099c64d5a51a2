"""What an index entry does not say of its store, read from the store's own metadata: its channel groups, and a correction."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from contract.errors import PublishError, Refused
from contract.index import GroupEntry, SssEntry, StoreEntry
from contract.layout import ROOT_METADATA, store_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.storage.protocol import Target
    from tasks.adoption.served_index import ServedStore

__all__ = ["with_groups"]

_SIDE_BY_SIDE: Final = 16  # each is three small reads: a matter of waiting, not of work
_MOST_GROUPS: Final = 64
_NOTHING_TOLD: Final = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ValidationError,
    Refused,
    PublishError,
)
"""What metadata that are none, or those of a name that no group can have, raise; the target's own trouble is none of these."""


def with_groups(
    target: Target, dataset_id: str, stores: Iterable[ServedStore]
) -> tuple[tuple[ServedStore, ...], tuple[str, ...]]:
    """The stores, those of an entry without channel groups with what their metadata say; and paths of those that say nothing.

    Three small objects are read of each such store of one group, and two for each further group. Readers of an index of
    version 3 rely on them; those of version 1 had none.

    Raises
    ------
    StorageError, OSError
        The target does not answer. What is not there, or no metadata, is no error: the entry stays as it was.
    """

    def one(store: ServedStore) -> ServedStore | None:
        if store.entry.groups:
            return store
        try:
            entry = _completed(target, store_key(dataset_id, store.entry.zarr), store.entry)
        except _NOTHING_TOLD:
            return None
        return replace(store, entry=entry)

    asked = list(stores)
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="zarrmill-adopt") as pool:
        found = list(pool.map(one, asked))
    silent = tuple(store.path for store, told in zip(asked, found, strict=True) if told is None)
    return tuple(told or store for store, told in zip(asked, found, strict=True)), silent


def _completed(target: Target, key: str, entry: StoreEntry) -> StoreEntry:
    root = _document(target, key)["attributes"]
    names = list(root["channel_groups"])
    if not 0 < len(names) <= _MOST_GROUPS:
        raise ValueError("a store without channel groups, or with too many")
    groups = tuple(_group(target, key, name) for name in names)
    told: dict[str, Any] = {"groups": groups}
    told["modalities"] = tuple(sorted({group.modality.lower() for group in groups if group.modality}))
    if "sss" in root:
        told |= {"sss": SssEntry.model_validate(root["sss"]), "derived": True}
    return StoreEntry.model_validate({**dict(entry), **told})


def _group(target: Target, key: str, name: str) -> GroupEntry:
    own = _document(target, f"{key}/{name}")["attributes"]
    array = _document(target, f"{key}/{name}/0")
    level0 = array["attributes"]
    n_channels, n_samples = array["shape"]
    return GroupEntry.model_validate(
        {
            "name": name,
            "modality": own.get("modality"),
            "rate": own["rate"],
            "n_channels": n_channels,
            "n_samples": n_samples,
            "duration_s": n_samples / own["rate"],
            "source_rate_hz": level0.get("source_rate_hz", own.get("original_rate")),
            "n_view_levels": own.get("n_view_levels"),
            "view_chunk_columns": own.get("view_chunk_columns"),
            "chunk_samples": level0.get("chunk_samples"),
            "shard_samples": level0.get("shard_samples"),
        }
    )


def _document(target: Target, key: str) -> dict[str, Any]:
    """The metadata of a group or an array. KeyError when nothing stands there."""
    found = target.read(f"{key}/{ROOT_METADATA}")
    if found is None:
        raise KeyError(key)
    document = json.loads(found.data)
    if not isinstance(document, dict):
        raise TypeError("it is no zarr.json")
    return document
