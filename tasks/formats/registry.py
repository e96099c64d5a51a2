"""Finds the recording formats that are installed."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from tasks.formats.protocol import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.formats.protocol import RecordingFormat

__all__ = ["load"]


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
