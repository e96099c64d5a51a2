"""What a viewer must know of a store before it reads a chunk: its metadata and its events, all of one version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.documents import read_attributes
from contract.errors import Refused
from contract.layout import ROOT_METADATA
from contract.reading import ReadGroup, ReadGroupAttributes
from tasks.read.store import read_consistently
from tasks.read.store_events import event_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["MOST_EVENTS", "Opening", "OpeningGroup", "read_opening"]

MOST_EVENTS = 100_000
"""Events that an opening holds; of more the first ones, by onset."""

_AT_ONCE = 8
_WAITS_S = (0.05, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class OpeningGroup:
    """A channel group: its ``zarr.json`` and those of its arrays, as they stand, by their paths in the store."""

    name: str
    documents: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A store as it was at one moment.

    Parameters
    ----------
    version
        By which its root is told from another one; in quotes it is the root's ETag over HTTP.
    root
        The attributes of its root group.
    events
        Columns ``onset``, ``duration``, ``code``, with ``labels`` and ``descriptions`` by code; None without events.
    """

    version: str
    root: Mapping[str, Any]
    groups: tuple[OpeningGroup, ...]
    events: Mapping[str, Any] | None


def read_opening(place: Place, dataset_id: str, zarr: str) -> Opening:
    """The opening of a store: some twenty small objects of it, several at once.

    Raises
    ------
    Refused
        The store is not what its contract says.
    StorageError
        It cannot be read now.
    StorageUnavailable
        It is being replaced, or there is none.
    """
    with ThreadPoolExecutor(_AT_ONCE, "opening") as at_once:
        return read_consistently(place, dataset_id, zarr, lambda reading: _opening(reading, at_once), waits_s=_WAITS_S)


def _opening(reading: StoreReading, at_once: ThreadPoolExecutor) -> Opening:
    events = at_once.submit(event_columns, reading, MOST_EVENTS)
    names = _group_names(reading.root)
    heads = dict(zip(names, at_once.map(reading.metadata, names), strict=True))
    wanted = {name: _arrays(name, head) for name, head in heads.items()}
    paths = [path for each in wanted.values() for path in each]
    arrays = dict(zip(paths, at_once.map(reading.metadata, paths), strict=True))
    groups = tuple(
        OpeningGroup(
            name,
            {
                f"{name}/{ROOT_METADATA}": heads[name],
                **{f"{path}/{ROOT_METADATA}": arrays[path] for path in wanted[name]},
            },
        )
        for name in names
    )
    return Opening(version=reading.version, root=reading.root, groups=groups, events=events.result())


def _group_names(root: Mapping[str, Any]) -> list[str]:
    given = root.get("channel_groups")
    if not isinstance(given, list) or not given:
        raise Refused("The store names no channel groups; it must be made anew.")
    return [read_attributes(ReadGroup, {"name": name}).name for name in given]


def _arrays(name: str, head: Mapping[str, Any]) -> list[str]:
    levels = read_attributes(ReadGroupAttributes, head.get("attributes", {})).view_levels
    return [f"{name}/0", *(f"{name}/view/{level}" for level in levels)]
