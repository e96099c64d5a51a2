"""Taking over a dataset that a target serves and that this installation does not know."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.layout import index_key, is_dataset_id
from db import datasets, documents
from flows.preview import opened_database
from infra.storage import open_target
from tasks.publish.documents import comparable
from tasks.sources import open_source

if TYPE_CHECKING:
    from infra.settings import Settings
    from infra.storage.protocol import Stored

__all__ = ["Adopted", "adopt"]

_INDEX_FORMAT = "nemar-zarr-index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was taken over: the dataset's id, where it is served, what it is to be made from, and the stores it serves."""

    dataset_id: str
    target: str
    source: str
    stores: int


def adopt(settings: Settings, *, dataset_id: str, source: str, target: str) -> Adopted:
    """Make the dataset at the target this installation's, to be made from ``source`` from now on.

    Nothing at the target is written. The next convert makes every recording anew, replaces each store when its new one
    is finished, and the index at the end; what the old index named and the source does not hold stays as objects.

    Raises
    ------
    Refused
        The target serves no such dataset, its index cannot be read, or the installation knows it already.
    """
    if not is_dataset_id(dataset_id):
        raise Refused(f"{dataset_id!r} is no dataset id: two lower-case letters and six digits, such as xx000001.")
    place = open_target(target, settings)
    origin = open_source(source, settings)
    key = index_key(dataset_id)
    live = place.read(key)
    if live is None:
        raise Refused(
            f"{place.url} holds no index of {dataset_id}: there is nothing to take over. What is left of it, such as "
            f"a manifest.json, has to be moved away by hand before convert can use that id."
        )
    stores = _stores(live, dataset_id)
    with opened_database(settings) as (engine, _url), engine.begin() as c:
        if datasets.find(c, dataset_id=dataset_id, target=place.url) is not None:
            raise Refused(f"{dataset_id} at {place.url} is known here already: zarrmill convert goes on with it.")
        datasets.register(c, dataset_id=dataset_id, target=place.url, source=origin.url)
        documents.note(
            c,
            target=place.url,
            key=key,
            etag=live.etag,
            size_bytes=len(live.data),
            sha256=hashlib.sha256(live.data).hexdigest(),
            comparable_sha256=comparable(live.data),
        )
    return Adopted(dataset_id=dataset_id, target=place.url, source=origin.url, stores=stores)


def _stores(live: Stored, dataset_id: str) -> int:
    """How many stores the index names, of any format version."""
    try:
        document = json.loads(live.data)
        kind, named, stores = document["format"], document["dataset_id"], len(document["stores"])
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            f"The index of {dataset_id} at the target cannot be read as an index: look at it and move it away.",
            detail=type(error).__name__,
        ) from error
    if (kind, named) != (_INDEX_FORMAT, dataset_id):
        raise Refused(f"The index at the place of {dataset_id} says that it is {kind!r} of {named!r}: move it away.")
    return stores
