"""The objects that stand below a dataset's address, beside what the database and the index know of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contract.documents import parse
from contract.errors import Refused
from contract.index import LocalIndex
from contract.layout import events_key, index_key, manifest_key, store_key
from db import recordings, store_objects
from tasks.publish.live import LostStore
from tasks.publish.roots import ROOT

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.dataset_values import Dataset
    from infra.storage.protocol import StandingObject, Target

__all__ = ["Differences", "DifferentStore", "ListedObjects", "compare_objects", "listed_objects"]

_STORE_ENDING = ".zarr"


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentStore:
    """A store whose objects are not those that its conversion left, with their names in the store.

    ``recording_id`` and ``path`` are of its recording; ``rebuilt``: the recording is still in the source.
    """

    zarr: str
    recording_id: int
    path: str
    rebuilt: bool
    missing: tuple[str, ...]
    mismatched: tuple[str, ...]
    extra: tuple[str, ...]

    def lost(self) -> LostStore:
        """The store as one that is to be built again."""
        return LostStore(self.recording_id, self.path, self.zarr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How a prefix differs from what it should hold.

    Parameters
    ----------
    objects, size_bytes
        All that stands there.
    stores
        Stores that were compared.
    unknown
        Paths of stores whose digests are not known, because they were taken over; only their root was looked for.
    different
        Stores that do not stand as they should.
    orphans
        Paths of stores that neither the database nor the index knows.
    strays
        Keys of objects that are neither a document nor part of a store; they are never removed.
    """

    objects: int
    size_bytes: int
    stores: int
    unknown: tuple[str, ...] = ()
    different: tuple[DifferentStore, ...] = ()
    orphans: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()

    @property
    def damaged(self) -> tuple[DifferentStore, ...]:
        """Stores that lack an object, or hold other bytes."""
        return tuple(one for one in self.different if one.missing or one.mismatched)

    @property
    def none(self) -> bool:
        """Whether everything stands as it should."""
        return not (self.different or self.orphans or self.strays)


@dataclass(slots=True)
class ListedObjects:
    """What stands below a dataset's address: how much, the objects of each store by name, and keys that belong to none."""

    objects: int = 0
    size_bytes: int = 0
    stores: dict[str, dict[str, StandingObject]] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)


def compare_objects(engine: Engine, target: Target, dataset: Dataset) -> Differences:
    """List the prefix once and compare every store with the digests, or etags, that its conversion left.

    On S3 nothing but the listing is read; in a folder the bytes of every object are.

    Raises
    ------
    OSError, StorageError
        The target cannot be listed to its end: then nothing is said about it.
    """
    found = listed_objects(target, dataset.dataset_id)
    with engine.connect() as c:
        states = {state.id: state for state in recordings.snapshot(c, dataset=dataset)}
        known = {row.zarr: row for row in store_objects.object_rows(c, dataset=dataset)}
    different: list[DifferentStore] = []
    unknown: list[str] = []
    for zarr, row in known.items():
        state = states[row.recording_id]
        standing = found.stores.get(zarr, {})
        if not row.digests:
            unknown.append(zarr)
        missing, mismatched, extra = _compared(row, standing)
        if missing or mismatched or extra:
            one = DifferentStore(
                zarr=zarr,
                recording_id=row.recording_id,
                path=state.path,
                rebuilt=state.discovered,
                missing=tuple(missing),
                mismatched=tuple(mismatched),
                extra=tuple(extra),
            )
            different.append(one)
    named = known.keys() | _named_by_index(target, dataset.dataset_id)
    return Differences(
        objects=found.objects,
        size_bytes=found.size_bytes,
        stores=len(known),
        unknown=tuple(unknown),
        different=tuple(different),
        orphans=tuple(sorted(found.stores.keys() - named)),
        strays=tuple(found.strays),
    )


def listed_objects(target: Target, dataset_id: str) -> ListedObjects:
    """One listing of the prefix: objects of stores by store, and strays.

    Raises
    ------
    OSError, StorageError
        The target cannot be listed to its end.
    """
    prefix = store_key(dataset_id, "x" + _STORE_ENDING).removesuffix("x" + _STORE_ENDING)
    documents = {index_key(dataset_id), manifest_key(dataset_id), events_key(dataset_id)}
    counted = ListedObjects()
    for key, one in target.list_objects(prefix):
        counted.objects += 1
        counted.size_bytes += one.size_bytes
        if key in documents:
            continue
        split = _in_store(key.removeprefix(prefix))
        if split is None:
            counted.strays.append(key)
        else:
            counted.stores.setdefault(split[0], {})[split[1]] = one
    return counted


def _in_store(name: str) -> tuple[str, str] | None:
    """Store path and name in the store; None for what lies in no store. Of nested endings the first counts."""
    segments = name.split("/")
    for at, segment in enumerate(segments[:-1]):
        if segment.endswith(_STORE_ENDING):
            return "/".join(segments[: at + 1]), "/".join(segments[at + 1 :])
    return None


def _compared(
    row: store_objects.ObjectRow, standing: dict[str, StandingObject]
) -> tuple[list[str], list[str], list[str]]:
    """Names that are missing, that stand with other bytes, and that should not be there."""
    if not row.digests:
        return ([] if ROOT in standing else [ROOT]), [], []
    missing = sorted(row.digests.keys() - standing.keys())
    extra = sorted(standing.keys() - row.digests.keys())
    mismatched = [
        name
        for name, (size, sha256) in sorted(row.digests.items())
        if name in standing
        and (standing[name].size_bytes != size or standing[name].etag != _etag_of(row, name, sha256))
    ]
    return missing, mismatched, extra


def _etag_of(row: store_objects.ObjectRow, name: str, sha256: str) -> str:
    """The etag that the object should have: the target's own, or where it has none of its own the hash of the bytes."""
    return sha256 if row.etags is None else row.etags.get(name, "")


def _named_by_index(target: Target, dataset_id: str) -> set[str]:
    """Store paths that the live index names, ours or another installation's; none may be taken for an orphan."""
    live = target.read(index_key(dataset_id))
    if live is None:
        return set()
    try:
        return {entry.zarr for entry in parse(LocalIndex, live.data).stores}
    except Refused as error:
        raise Refused(
            f"The index of {dataset_id} at the target cannot be read, so nothing can be said of what it does not name; "
            "publish it again with convert.",
            detail=error.sentence,
        ) from error
