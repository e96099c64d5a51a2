"""The recipe for a window of a served recording: its documents are read, the rest is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.recipe_making import group_of, make_recipe
from tasks.read.index import find_entry, read_index, verify_status_of
from tasks.read.store import read_consistently
from tasks.read.window import select_in

if TYPE_CHECKING:
    from contract.recipe import Recipe
    from contract.window import WindowAsked
    from tasks.read.place import Place

__all__ = ["recipe_for"]


def recipe_for(place: Place, dataset_id: str, asked: WindowAsked) -> Recipe:
    """How to read a window; costs the index, the catalog, and three small objects of the store.

    Raises
    ------
    Refused
        The question is wrong; the sentence begins with the field.
    NotServed
        The recording has failed, is pending, or is not known.
    StorageError
        It cannot be read now.
    """
    index = read_index(place, dataset_id)
    entry = find_entry(index, asked.recording)
    group = group_of(entry, asked.group)
    selection = read_consistently(
        place, dataset_id, entry.zarr, lambda reading: select_in(reading, entry.zarr, group.name, asked)
    )
    return make_recipe(
        selection,
        head=index.head,
        entry=entry,
        group=group,
        index_etag=index.etag,
        verify_status=verify_status_of(place, dataset_id),
    )
