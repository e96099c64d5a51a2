"""Trees of names without files, for what is decided by names alone."""

from __future__ import annotations

from tasks.bids.discovery import discover
from tasks.bids.recording import DiscoveredRecording, Discovery
from tasks.sources.protocol import Absence, TreeEntry


def tree_of(*paths: str, size_bytes: int | None = 10, absent: dict[str, Absence] | None = None) -> dict[str, TreeEntry]:
    """An entry for every path; its content id is made of the path."""
    absent = absent or {}
    return {path: TreeEntry(size_bytes, f"sha256:{path}", absent.get(path)) for path in paths}


def found(*paths: str) -> Discovery:
    return discover(tree_of(*paths))


def paths(*tree: str) -> list[str]:
    return [recording.path for recording in found(*tree).recordings]


def only(*paths: str) -> DiscoveredRecording:
    """The one recording of a tree."""
    (recording,) = found(*paths).recordings
    return recording


def in_folder(folder: str, *names: str) -> list[str]:
    return [f"{folder}/{name}" for name in names]
