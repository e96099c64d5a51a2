"""What a source of a dataset must offer. A source is one file behind this Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["Source", "TreeEntry"]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of the dataset. ``content_id`` changes whenever the content may have changed."""

    size_bytes: int
    content_id: str


class Source(Protocol):
    """One dataset at one moment."""

    url: str
    """What ``open_source`` was given, made absolute; stored with the dataset."""

    def tree(self) -> Mapping[str, TreeEntry]:
        """Every file, by its path relative to the dataset, read in one pass."""
        ...

    def commit(self) -> str:
        """40 hex characters that name the state of the dataset."""
        ...

    def read(self, path: str) -> bytes:
        """The content of a sidecar. Raises OSError."""
        ...

    def fetch(self, paths: Iterable[str], scratch: Path) -> None:
        """Make ``paths`` readable below ``scratch`` under their own names; cheap where links will do."""
        ...

    def unchanged(self, inputs: Mapping[str, str]) -> bool:
        """Whether every path still has the content id given for it."""
        ...
