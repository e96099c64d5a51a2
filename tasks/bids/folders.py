"""Which folders of a dataset are recordings themselves, and which are not raw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.bids.entities import split_extension, split_path
from tasks.bids.other_formats import FOLDERS, stands_for_a_recording
from tasks.bids.scope import EXCLUDED_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["EXCLUDED", "FolderRecording", "Folders"]


@dataclass(frozen=True, slots=True)
class FolderRecording:
    """A folder that is one recording."""

    path: str
    format: str


EXCLUDED = FolderRecording("", "")
"""Stands for "not raw" in the answers of ``Folders``."""


class Folders:
    """The standing of every folder, worked out once a folder.

    A 4D/BTi recording is a folder (never the top) that directly holds a file starting with ``c,rf`` and a file named
    exactly ``config``: BIDS gives it no extension, and ``config`` alone is everywhere (``.datalad/config``). Of nested
    candidates the outermost wins: what lies inside a recording is part of it. A folder of a format without a reader
    (``.mff``) is one too.
    """

    def __init__(self, paths: Iterable[str], formats: Mapping[str, str]) -> None:
        self._formats = formats
        with_data: set[str] = set()
        with_config: set[str] = set()
        for path in paths:
            folder, name = split_path(path)
            if name == "config":
                with_config.add(folder)
            elif name.startswith("c,rf"):
                with_data.add(folder)
        self._bti = with_data & with_config
        self._known: dict[str, FolderRecording | None] = {"": None}

    def standing(self, folder: str) -> FolderRecording | None:
        """The recording that the folder is or lies in, ``EXCLUDED`` when it is not raw, None for an ordinary one."""
        if folder in self._known:
            return self._known[folder]
        standing: FolderRecording | None = None
        end = 0
        while standing is None and end < len(folder):
            start = end + 1 if end else 0
            end = folder.find("/", start)
            end = len(folder) if end < 0 else end
            prefix = folder[:end]
            if prefix not in self._known:
                self._known[prefix] = self._first_look(prefix, folder[start:end])
            standing = self._known[prefix]
        self._known[folder] = standing
        return standing

    def _first_look(self, folder: str, name: str) -> FolderRecording | None:
        if name in EXCLUDED_SEGMENTS:
            return EXCLUDED
        ending = split_extension(name)[1].lower()
        named = self._formats.get(ending)
        if named is None and ending in FOLDERS and stands_for_a_recording(folder):
            named = FOLDERS[ending]
        if named is not None:
            return FolderRecording(folder, named)
        return FolderRecording(folder, "bti") if folder in self._bti else None
