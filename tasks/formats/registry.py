"""Finds the recording formats that are installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasks.formats.protocol import ENTRY_POINT_GROUP, NeedsSuffix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.formats.protocol import RecordingFormat

__all__ = ["Endings", "endings", "load"]


@lru_cache(maxsize=1)
def load() -> Mapping[str, RecordingFormat]:
    """Every installed format by its name.

    Returns
    -------
    Mapping of str to RecordingFormat
        An entry point of the group ``zarrmill.formats`` names a class without arguments; its name is the format's.

    Raises
    ------
    ValueError
        Two distributions claim one name, or a class calls itself otherwise than its entry point.
    """
    found: dict[str, RecordingFormat] = {}
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda e: (e.name, e.value)):
        one: RecordingFormat = entry.load()()
        if entry.name in found or one.name != entry.name:
            raise ValueError(
                f"the recording format {entry.name!r} ({entry.value}) is claimed twice or calls itself {one.name!r}"
            )
        found[entry.name] = one
    return MappingProxyType(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endings:
    """How recordings are known by their names.

    Parameters
    ----------
    files, folders
        Ending in lower case -> name of the format.
    companions
        Name of the format -> endings of its companions, for those that have any.
    precedence
        Name of the format -> its place when two recordings claim one store.
    vague
        Endings of files that are recordings only where the name says so.
    """

    files: Mapping[str, str]
    folders: Mapping[str, str]
    companions: Mapping[str, frozenset[str]]
    precedence: Mapping[str, int]
    vague: frozenset[str]


@lru_cache(maxsize=1)
def endings() -> Endings:
    """The endings of every installed format.

    Raises
    ------
    ValueError
        Two formats claim one ending.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name, one in load().items():
        for claimed, extensions in ((files, one.extensions), (folders, one.folder_extensions)):
            for extension in extensions:
                if extension in claimed:
                    raise ValueError(
                        f"the formats {claimed[extension]!r} and {name!r} both claim the ending {extension}"
                    )
                claimed[extension] = name
    return Endings(
        files=MappingProxyType(files),
        folders=MappingProxyType(folders),
        companions=MappingProxyType({name: one.companions for name, one in load().items() if one.companions}),
        precedence=MappingProxyType({name: one.precedence for name, one in load().items()}),
        vague=frozenset().union(*(one.vague_extensions for one in load().values() if isinstance(one, NeedsSuffix))),
    )
