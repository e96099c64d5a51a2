"""Which of the stores, verdicts and attempts that a target's documents state still hold for the source as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tasks.adoption.served_index import ServedFailure, ServedIndex, ServedPending, ServedStore
    from tasks.bids.recording import DiscoveredRecording
    from tasks.sources.protocol import TreeEntry

__all__ = ["Trust", "trust"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What is taken over.

    Parameters
    ----------
    stores
        Trusted stores, by store path.
    failures, pending
        Verdicts and counted attempts that are taken over.
    changed
        Recordings whose store is not known to be true to the source; they are converted anew.
    gone
        Stores whose recording the source no longer holds.
    """

    stores: tuple[ServedStore, ...]
    failures: tuple[ServedFailure, ...]
    pending: tuple[ServedPending, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]


def trust(
    served: ServedIndex, recordings: Iterable[DiscoveredRecording], tree: Mapping[str, TreeEntry], commit: str
) -> Trust:
    """Compare what is served with what is there.

    A store is trusted when the whole source is in the state that the index names, or when the git-annex key that the store
    was made from is the key of the recording's first file now. Verdicts and attempts say nothing about a changed source, and
    have no key: they are taken over only with the state as a whole.

    Parameters
    ----------
    commit
        40 hex characters of the source's state now (``Source.commit``).
    """
    known = {one.path: one for one in recordings}
    same = served.source_commit == commit
    stores: list[ServedStore] = []
    changed: list[str] = []
    gone: list[str] = []
    for store in served.stores:
        recording = known.get(store.path)
        if recording is None:
            gone.append(store.path)
        elif _is_true(store, recording, tree, same=same):
            stores.append(store)
        else:
            changed.append(store.path)
    return Trust(
        stores=tuple(stores),
        failures=tuple(one for one in served.failures if same and one.path in known),
        pending=tuple(one for one in served.pending if same and one.path in known),
        changed=tuple(changed),
        gone=tuple(gone),
    )


def _is_true(store: ServedStore, recording: DiscoveredRecording, tree: Mapping[str, TreeEntry], *, same: bool) -> bool:
    if recording.failure is not None or recording.zarr != store.entry.zarr:
        return False
    return same or (
        store.source_key is not None and tree[recording.members[0]].content_id == f"annex:{store.source_key}"
    )
