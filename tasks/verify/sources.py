"""The source of a store as its conversion read it: a folder as it lies there, or a repository at a commit."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from tasks.sources import SourceAddress, open_source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.settings import Settings
    from tasks.sources.protocol import Source

__all__ = ["SourceChoice"]

_OF_A_COMMIT = "git:"


class SourceChoice:
    """Opens the dataset's source; safe to ask from several threads.

    Parameters
    ----------
    address
        Where it is. Without a commit of its own, stores that were made from one are compared at ``published_commit``: their
        inputs are named by git's objects, which a repository holds whatever is checked out.

    Raises
    ------
    Refused
        There is nothing there that can be read.
    """

    def __init__(self, address: SourceAddress, published_commit: str, settings: Settings) -> None:
        self._plain = open_source(address, settings)
        self._settings = settings
        self._at_commit = SourceAddress(url=address.url, commit=published_commit, annex=address.annex)
        self._opened: Source | None = None
        self._is_chosen = address.commit is not None or address.at is not None
        self._lock = Lock()

    def of(self, inputs: Mapping[str, str]) -> Source:
        """The source that holds these inputs, path to content id."""
        names_objects = any(content_id.startswith(_OF_A_COMMIT) for content_id in inputs.values())
        if self._is_chosen or not names_objects or self._plain.address.commit is not None:
            return self._plain
        with self._lock:
            if self._opened is None:
                self._opened = open_source(self._at_commit, self._settings)
            return self._opened
