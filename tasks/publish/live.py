"""What stands at the target, compared with what the database believes. Reads one document and looks for stores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import text

from contract.errors import Refused
from contract.layout import index_key, store_key
from db import documents, recordings
from tasks.publish.adoption import AdoptedEntries
from tasks.publish.documents import NOTHING_ADOPTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.recordings import RecordingState
    from infra.storage.protocol import Stored, Target

__all__ = ["LOOKED_FOR", "LiveState", "LostStore", "compare_live", "foreign", "refuse_foreign"]

LOOKED_FOR: Final = 100
"""Stores that are looked for where each look is a request and the index is ours: 25,000 would take most of a minute."""


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

    Costs a look for each served store, and a read of the index where it is not the one that was noted. Where a look is a
    request and the index is as noted, 100 stores are looked for, others each hour; one of them missing, all are.

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
    etag = target.etag(key)
    with engine.connect() as c:
        known = documents.find(c, target=target.url, key=key)
        now: datetime = c.execute(text("SELECT zarrmill_now()")).scalar_one()
        if states is None:
            states = recordings.snapshot(c, dataset=dataset)
    is_noted = etag is not None and known is not None and known.etag == etag
    served = {
        store_key(dataset.dataset_id, state.zarr): state
        for state in states
        if state.discovered and state.served is not None
    }
    gone = _gone(target, list(served), f"{now:%Y-%m-%d %H}" if is_noted else None)
    missing = tuple(LostStore(state.id, state.path, state.zarr) for key, state in served.items() if key in gone)
    if is_noted:
        return LiveState(kind="ours", missing=missing)
    live = target.read(key)
    if live is None:
        return LiveState(kind="absent", missing=missing)
    adopted = AdoptedEntries.unpacked(known.adopted if known is not None else None)
    return LiveState(kind="foreign" if foreign(live, states, adopted) else "ours", missing=missing)


def _gone(target: Target, keys: Sequence[str], hour: str | None) -> set[str]:
    """Those of ``keys`` at which no store stands, as far as it was looked; everywhere when ``hour`` is None.

    The same are looked for in one hour, so that a plan and the run after it see the same.
    """
    if hour is None or not target.looks_cost_requests or len(keys) <= LOOKED_FOR:
        return target.missing_stores(keys)
    some = Random(hour).sample(sorted(keys), LOOKED_FOR)  # noqa: S311 - which are looked for is no secret
    return target.missing_stores(keys) if target.missing_stores(some) else set()


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
