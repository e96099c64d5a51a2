"""What stands at the target, compared with what the database believes. Reads one document and stats the stores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from contract.errors import Refused
from contract.layout import index_key, store_key
from db import documents, recordings
from tasks.publish.adoption import AdoptedEntries
from tasks.publish.documents import NOTHING_ADOPTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.recordings import RecordingState
    from infra.storage.protocol import Stored, Target

__all__ = ["LiveState", "LostStore", "compare_live", "foreign", "refuse_foreign"]


@dataclass(frozen=True, slots=True)
class LostStore:
    """A store that the database believes to be served and that does not stand at the target as it should."""

    recording_id: int
    path: str
    zarr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """The target's side of a dataset.

    Parameters
    ----------
    kind
        ``absent``: there is no index. ``ours``: the database knows every recording it names. ``foreign``: it names
        recordings that the database has never seen.
    missing
        Stores of recordings still in the source that are gone from the target; they are to be built again.
    """

    kind: Literal["absent", "ours", "foreign"]
    missing: tuple[LostStore, ...]


def compare_live(
    engine: Engine, target: Target, dataset: Dataset, *, states: Sequence[RecordingState] | None = None
) -> LiveState:
    """How the target compares with the database; to be asked before a plan is made and applied.

    Costs one read of the index and one stat (on S3 one HEAD, side by side) for each served store.

    Parameters
    ----------
    states
        ``db.recordings.snapshot`` of the dataset, if the caller has it already.

    Raises
    ------
    Refused
        What stands at the address of the index is no readable index.
    """
    key = index_key(dataset.dataset_id)
    live = target.read(key)
    with engine.connect() as c:
        known = documents.find(c, target=target.url, key=key)
        if states is None:
            states = recordings.snapshot(c, dataset=dataset)
    served = {
        store_key(dataset.dataset_id, state.zarr): state
        for state in states
        if state.discovered and state.served is not None
    }
    gone = target.missing_stores(list(served))
    missing = tuple(LostStore(state.id, state.path, state.zarr) for key, state in served.items() if key in gone)
    if live is None:
        return LiveState(kind="absent", missing=missing)
    if known is not None and known.etag == live.etag:
        return LiveState(kind="ours", missing=missing)
    adopted = AdoptedEntries.unpacked(known.adopted if known is not None else None)
    return LiveState(kind="foreign" if foreign(live, states, adopted) else "ours", missing=missing)


def foreign(live: Stored, states: Iterable[RecordingState], adopted: AdoptedEntries = NOTHING_ADOPTED) -> list[str]:
    """Up to three paths that a live index names and the database has never seen; none when the index is ours.

    Entries ``adopted`` before have been seen.

    Raises
    ------
    Refused
        It is no readable index.
    """
    try:
        document = json.loads(live.data)
        named = [entry["path"] for name in ("stores", "failures", "pending") for entry in document[name]]
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            "The index.json at the target cannot be read as an index; look at it, move it away, and run again.",
            detail=type(error).__name__,
        ) from error
    known = {state.path for state in states} | adopted.paths()
    return [path for path in named if path not in known][:3]


def refuse_foreign(dataset_id: str, unknown: Sequence[str] = ()) -> Refused:
    """The error for an index that the database does not know."""
    return Refused(
        f"The target already serves a dataset {dataset_id} that this installation does not know. If it is this one, take it "
        f"over with `zarrmill adopt {dataset_id} SOURCE`; if it is another one, give this one an id of its own with --dataset-id.",
        detail=f"unknown to the database: {', '.join(unknown)}" if unknown else None,
    )
