"""Recordings that would be written to one place: one of them is served, each other becomes a failure that names it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from tasks.formats.registry import endings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tasks.bids.recording import DiscoveredRecording

__all__ = ["with_collisions"]

_NO_READER = 1_000_000
_DOCUMENTS = frozenset({"index.json", "manifest.json", "events.parquet"})


def with_collisions(recordings: Iterable[DiscoveredRecording]) -> list[DiscoveredRecording]:
    """The recordings, all but one of each shared place with a ``store_path_collision`` verdict.

    The recording whose format has the lowest ``precedence`` is served, of one format the first path; one that has a
    verdict already claims nothing. The two formats that
    BIDS recommends for EEG come first, then by how faithfully the reader keeps units and labels.

    Shared is one store path (``x_eeg.set`` beside ``x_eeg.edf``); a store path inside another store (a recording below
    a folder called like a store), where replacing the outer store would delete the inner one; and a path below the
    name of a published document. Names that differ in case are different places.
    """
    by_store: dict[str, list[DiscoveredRecording]] = defaultdict(list)
    for recording in recordings:
        by_store[recording.zarr].append(recording)
    judged: list[DiscoveredRecording] = []
    served: dict[str, DiscoveredRecording] = {}
    for store, claimants in by_store.items():
        first, *others = sorted(claimants, key=_precedence)
        served[store] = first
        if first.failure is not None:
            judged += others  # nobody has the store, and each has its own reason
        else:
            judged += [_refused(other, f"{first.path} claims the same store") for other in others]
    for store, first in served.items():
        outer = next((served[prefix] for prefix in _prefixes(store) if prefix in served), None)
        if first.failure is not None:
            judged.append(first)
        elif outer is not None and outer.failure is None:
            judged.append(_refused(first, f"the store of {outer.path} lies around this one's"))
        elif store.partition("/")[0] in _DOCUMENTS:
            judged.append(_refused(first, f"{store.partition('/')[0]} is the name of a published document"))
        else:
            judged.append(first)
    return judged


def _precedence(recording: DiscoveredRecording) -> tuple[bool, int, str]:
    return recording.failure is not None, endings().precedence.get(recording.format, _NO_READER), recording.path


def _refused(recording: DiscoveredRecording, detail: str) -> DiscoveredRecording:
    return replace(recording, failure=(FailureCode.STORE_PATH_COLLISION, detail))


def _prefixes(store: str) -> Iterator[str]:
    """Every folder above the store that is called like a store."""
    end = store.find("/")
    while end >= 0:
        if store[:end].endswith(".zarr"):
            yield store[:end]
        end = store.find("/", end + 1)
