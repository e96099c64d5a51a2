"""Reads what a finished store says of itself, and edits its attributes in place."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasks.convert.documents import METADATA, indented
from tasks.convert.order import ObjectDigest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["StoreGroup", "attributes", "digest_objects", "edit_attributes", "read_groups"]


_READ_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGroup:
    """One channel group as it stands on disk: its own attributes, level 0's, and the shapes of its arrays."""

    name: str
    attributes: Mapping[str, Any]
    level0: Mapping[str, Any]
    shape: tuple[int, ...]
    view_shapes: Mapping[int, tuple[int, ...]]

    @property
    def labels(self) -> tuple[str, ...]:
        """Channel labels in row order."""
        return tuple(str(channel["label"]) for channel in self.attributes.get("channels", ()))


def attributes(node: Path) -> dict[str, Any]:
    """The attributes of a group or array; {} when it has none."""
    return dict(_document(node).get("attributes", {}))


def edit_attributes(node: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Let ``edit`` change the attributes of a group or array; written beside and renamed over, so never half.

    NaN and infinity are refused: they are no JSON, and a browser could not read the store.
    """
    document = _document(node)
    values = dict(document.get("attributes", {}))
    edit(values)
    document["attributes"] = values
    beside = node / (METADATA + ".new")
    beside.write_text(indented(document), encoding="utf-8")
    os.replace(beside, node / METADATA)  # noqa: PTH105 - the pathlib name hides that this is the atomic one


def read_groups(store: Path) -> tuple[StoreGroup, ...]:
    """Every channel group that the root names, in its order.

    Raises
    ------
    FileNotFoundError, KeyError
        A group or its level 0 is not there.
    """
    return tuple(_group(store / str(name)) for name in attributes(store).get("channel_groups", ()))


def _group(node: Path) -> StoreGroup:
    view = node / "view"
    levels = (
        {int(child.name): _shape(child) for child in view.iterdir() if child.is_dir() and child.name.isdigit()}
        if view.is_dir()
        else {}
    )
    level0 = _document(node / "0")
    return StoreGroup(
        name=node.name,
        attributes=attributes(node),
        level0=level0.get("attributes", {}),
        shape=tuple(int(extent) for extent in level0["shape"]),
        view_shapes=dict(sorted(levels.items())),
    )


def digest_objects(store: Path) -> dict[str, ObjectDigest]:
    """Size and SHA-256 of every object of the store, by its name relative to it, sorted."""
    found: dict[str, ObjectDigest] = {}
    for path in _files(os.fspath(store), ""):
        with open(os.path.join(store, path), "rb", buffering=0) as file:  # noqa: PTH118, PTH123 - pathlib takes as long as the file
            size = os.fstat(file.fileno()).st_size
            whole = size <= _READ_AT_ONCE
            digest = hashlib.sha256(file.read()) if whole else hashlib.file_digest(file, "sha256")
            found[path] = ObjectDigest(size, digest.hexdigest())
    return dict(sorted(found.items(), key=lambda one: one[0].split("/")))


def _files(folder: str, before: str) -> Iterator[str]:
    """Names of the files below ``folder``, each after ``before``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, f"{before}{entry.name}/")
            elif entry.is_file():
                yield before + entry.name


def all_finite(values: Any) -> bool:
    """Whether every one of ``values`` is a finite number."""
    return all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values)


def _document(node: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((node / METADATA).read_bytes())
    return document


def _shape(node: Path) -> tuple[int, ...]:
    return tuple(int(extent) for extent in _document(node)["shape"])
