"""The metadata of a store that is being written: every node's document, in memory until all of them are complete."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["METADATA", "ROOT", "Documents", "indented"]

METADATA = "zarr.json"
ROOT = ""

_encoded = json.JSONEncoder(allow_nan=False).encode


class Documents:
    """The documents of a store's nodes by their names; the root's is ``""``.

    Each is changed here as often as it must be, and written once: a document is many files of a small store, and writing
    it anew for each change would be most of what they cost.
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[str, Any]] = {}

    def put(self, node: str, document: dict[str, Any]) -> None:
        """Give ``node`` its document."""
        self._held[node] = document

    def document(self, node: str) -> dict[str, Any]:
        """The whole document of a node."""
        return self._held[node]

    def attributes(self, node: str = ROOT) -> dict[str, Any]:
        """The attributes of a group or array."""
        return dict(self._held[node]["attributes"])

    def edit(self, node: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Let ``change`` change the attributes of a group or array."""
        values = self.attributes(node)
        change(values)
        self._held[node]["attributes"] = values

    def take(self, other: Documents, node: str, name: str) -> None:
        """Take ``node`` of ``other`` and all below it over, under ``name``."""
        for own in other._below(node):
            self._held[name + own[len(node) :]] = other._held[own]

    def remove(self, node: str) -> None:
        """Forget ``node`` and all below it."""
        for own in self._below(node):
            del self._held[own]

    def __contains__(self, node: str) -> bool:
        """Whether there is such a node."""
        return node in self._held

    def write(self, store: Path) -> None:
        """Write every document below ``store``, the root's last: without it nothing is a store.

        Raises
        ------
        ValueError
            An attribute holds NaN or infinity: they are no JSON, and a browser could not read the store.
        """
        for node, document in sorted(self._held.items(), reverse=True):
            content = indented(document).encode()
            folder = os.path.join(store, node)  # noqa: PTH118 - pathlib takes longer to think of a name than the file to be written
            if not os.path.isdir(folder):  # noqa: PTH112 - as above
                os.makedirs(folder)  # noqa: PTH103 - as above
            with open(os.path.join(folder, METADATA), "wb") as file:  # noqa: PTH118, PTH123 - as above
                file.write(content)

    def _below(self, node: str) -> list[str]:
        return [own for own in self._held if own == node or own.startswith(node + "/")]


def indented(value: Any, line: str = "\n") -> str:
    """What ``json.dumps(value, indent=2, allow_nan=False)`` gives, in a quarter of its time: the library indents without its compiled part.

    Raises
    ------
    TypeError
        It holds what is no JSON, or a key that is no text.
    ValueError
        It holds NaN or infinity.
    """
    if isinstance(value, dict):
        if not value:
            return "{}"
        inner = line + "  "
        members = [f"{_encoded(_key(key))}: {indented(member, inner)}" for key, member in value.items()]
        return "{" + inner + ("," + inner).join(members) + line + "}"
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        inner = line + "  "
        return "[" + inner + ("," + inner).join([indented(member, inner) for member in value]) + line + "]"
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return _encoded(value)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys of a document are text, not {type(key).__name__}")
    return key
