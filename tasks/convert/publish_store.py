"""One finished store on its way from scratch to the target: intent, put, and the row that says what is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from contract.documents import dump
from contract.layout import store_key
from db import stores
from db.stores import StoreRow, pack_digests, pack_etags
from infra.storage.protocol import Target
from tasks.convert.mark import marked
from tasks.convert.order import ConversionOrder, ConvertedStore, ObjectDigest

__all__ = ["publish_store", "store_row"]

_ANNEX = "annex:"
_T = TypeVar("_T")


class _Transaction(Protocol):
    def __call__(self, statement: Callable[[Connection], Any], /) -> Any: ...


def publish_store(
    transaction: _Transaction,
    target: Target,
    order: ConversionOrder,
    store: ConvertedStore,
    scratch: Path,
    *,
    primary_bytes: int,
    may_write: Callable[[], None],
) -> StoreRow:
    """Put the store at its address and return the row for ``db.recordings.done``, which closes the intent.

    ``transaction`` runs one short transaction.

    Raises
    ------
    LostLease
        The attempt was superseded; what was begun is found by its intent.
    PublishError, StorageError, OSError
        The target could not be written.
    """
    key = store_key(order.dataset_id, order.recording.zarr)
    held: dict[str, Any] = {"attempt_id": order.attempt_id, "run_number": order.run_number}
    believed, left = transaction(lambda c: (stores.believed(c, **held), stores.open_intent(c, **held)))
    for intent in left:
        may_write()
        target.repair_store(key, token=intent.token)
    may_write()
    objects = store.objects
    if target.marks_stores:
        objects = marked(target, key, scratch / "store.zarr", objects, believed, publish_id=str(order.attempt_id))
    etags = target.put_store(
        key,
        scratch / "store.zarr",
        {name: digest.sha256 for name, digest in objects.items()},
        token=str(order.attempt_id),
        may_write=may_write,
        believed=believed,
    )
    return store_row(order, store, objects, etags, primary_bytes)


def store_row(
    order: ConversionOrder,
    store: ConvertedStore,
    objects: Mapping[str, ObjectDigest],
    etags: Mapping[str, str],
    primary_bytes: int,
) -> StoreRow:
    """The row of a store that is now served."""
    content = dict(order.inputs).get(order.recording.members[0], "")
    return StoreRow(
        entry=dump(store.entry),
        source=order.fingerprint.source,
        options=order.fingerprint.options,
        engine=order.fingerprint.engine,
        biosigio=order.fingerprint.biosigio,
        digests=pack_digests({name: (one.size_bytes, one.sha256) for name, one in objects.items()}),
        etags=pack_etags(etags),
        events=store.events,
        events_row_count=store.events_row_count,
        source_key=content.removeprefix(_ANNEX) if content.startswith(_ANNEX) else None,
        size_bytes=primary_bytes,
        duration_s=store.duration_s,
        updated_utc=order.updated_utc,
    )
