"""One listing of a dataset's objects: what nothing put there, and stores that are not as they were when they were verified."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from contract.layout import dataset_prefix, events_key, index_key, manifest_key
from contract.verification import Check
from infra.storage.folder import FolderTarget

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from db.dataset_values import Dataset
    from db.store_objects import JudgedStore
    from infra.storage.protocol import Target
    from tasks.verify.report import Report

__all__ = ["check_listing"]

_STORE = ".zarr"
_EXAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """An object as a listing shows it: by its etag in a bucket, by the time of its last change in a folder."""

    name: str
    size_bytes: int
    etag: str | None = None
    changed_at: float | None = None


def check_listing(
    target: Target, dataset: Dataset, known: Collection[str], judged: Mapping[str, JudgedStore], report: Report
) -> set[str]:
    """Look for objects that are neither a document nor part of one of the stores ``known`` by path. No object is read.

    Returns
    -------
    Those of the ``judged`` whose objects have other names, sizes or etags than their conversion left, or, in a folder, were
    changed since their verdict.
    """
    prefix = dataset_prefix(dataset.dataset_id)
    documents = {name(dataset.dataset_id).removeprefix(prefix) for name in (index_key, manifest_key, events_key)}
    orphans: set[str] = set()
    seen: set[str] = set()
    changed: set[str] = set()
    # a store's objects stand together in a listing, so one store at a time is held
    for name, objects in groupby(_listed(target, prefix), lambda one: _store_of(one.name) or one.name):
        if name in documents:
            continue
        if name not in known:
            orphans.add(name)
        seen.add(name)
        if name in judged and not _as_left(judged[name], list(objects)):
            changed.add(name)
    report.checked += 1
    for name in sorted(orphans)[:_EXAMPLES]:
        report.fail(Check.OBJECT_FOREIGN, f"{name} stands below the dataset, and nothing names it")
    return changed | (judged.keys() - seen)


def _as_left(store: JudgedStore, objects: Sequence[_Listed]) -> bool:
    verified_at = store.verified_at.timestamp()
    if any(one.changed_at is not None and one.changed_at > verified_at for one in objects):
        return False
    digests, etags = store.digests, store.etags
    if not digests:
        return True  # it was taken over: what its conversion left is not known
    found = {one.name.removeprefix(f"{store.zarr}/"): one for one in objects}
    if found.keys() != digests.keys():
        return False
    return all(
        one.size_bytes == digests[name][0] and (etags is None or one.etag in (None, etags.get(name)))
        for name, one in found.items()
    )


def _store_of(name: str) -> str | None:
    segments = name.split("/")
    for at, segment in enumerate(segments[:-1]):
        if segment.endswith(_STORE):
            return "/".join(segments[: at + 1])
    return None


def _listed(target: Target, prefix: str) -> Iterator[_Listed]:
    if not isinstance(target, FolderTarget):
        for key, one in target.list_objects(prefix):
            yield _Listed(name=key.removeprefix(prefix), size_bytes=one.size_bytes, etag=one.etag)
        return
    top = target.root / prefix
    for where, folders, names in os.walk(top, onerror=_raise):
        inside = os.path.relpath(where, top)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                # of the two times the one that no program can set: a copy may keep the time of the last write
                stat = os.lstat(f"{where}/{name}")
                path = name if inside == "." else f"{inside}/{name}"
                yield _Listed(name=path, size_bytes=stat.st_size, changed_at=stat.st_ctime)


def _raise(error: OSError) -> None:
    raise error
