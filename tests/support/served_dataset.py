"""What a folder target serves of one dataset, read as a stranger would: documents, stores, events."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOMENTS = ("updated_utc", "errors", "attempts", "last_attempt_utc", "last_error")


@dataclass(frozen=True)
class Served:
    """The dataset ``dataset_id`` below ``target``."""

    target: Path
    dataset_id: str

    @property
    def base(self) -> Path:
        return self.target / self.dataset_id / "zarr"

    @property
    def index(self) -> dict[str, Any]:
        return json.loads((self.base / "index.json").read_text())

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.base / "manifest.json").read_text())

    @property
    def catalog(self) -> dict[str, Any]:
        return json.loads((self.target / "zarr-catalog.json").read_text())

    def store(self, path: str) -> Path:
        """The store of the recording at this BIDS path."""
        (entry,) = [entry for entry in self.index["stores"] if entry["path"] == path]
        return self.base / entry["zarr"]

    def lists(self) -> dict[str, str]:
        """Each recording's path with the list that names it, or its code or reason there."""
        index = self.index
        found = {entry["path"]: "served" for entry in index["stores"]}
        found |= {entry["path"]: entry["code"] for entry in index["failures"]}
        found |= {entry["path"]: entry["reason"] for entry in index["pending"]}
        return found

    def settled_index(self) -> dict[str, Any]:
        """The index without what depends on when and how often a run tried."""
        return _without_moments(self.index)

    def files(self) -> dict[str, tuple[int, int]]:
        """(inode, modification time) of every file below the dataset's base: equal when nothing was written."""
        return {
            str(path.relative_to(self.target)): (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in sorted(self.target.rglob("*"))
            if path.is_file() and ".zarrmill" not in path.parts
        }


def _without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_moments(inner) for name, inner in value.items() if name not in _MOMENTS}
    if isinstance(value, list):
        return [_without_moments(inner) for inner in value]
    return value


def object_digests(store: Path) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of every object of a store."""
    return {
        str(path.relative_to(store)): (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }
