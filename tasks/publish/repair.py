"""What an interrupted run left at the target: half prepared stores, and stores that were put but not noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.layout import store_key
from db import recordings, stores
from tasks.publish.live import LostStore

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.stores import OpenIntent
    from infra.storage.protocol import Target

__all__ = ["repair_intents"]


def repair_intents(engine: Engine, target: Target, dataset: Dataset) -> tuple[LostStore, ...]:
    """Clean up after interrupted publishes of stores; to be called once a run holds the dataset, before it plans.

    A store that stands at the target but was never noted is removed: nothing names it, and its recording is still due.

    Returns
    -------
    Stores of which other bytes stand at the target than the database believes: they must be built again. Their intents
    stay open until that is done, so that a second crash cannot hide them.
    """
    with engine.connect() as c:
        left = [intent for intent in stores.open_intents(c, dataset=dataset) if not intent.held]
        states = {state.id: state for state in recordings.snapshot(c, dataset=dataset)} if left else {}
    lost: list[LostStore] = []
    for intent in left:
        state = states.get(intent.recording_id)
        if _is_sound(engine, target, dataset, intent) or state is None or not state.discovered:
            with engine.begin() as c:
                stores.close_intent(c, attempt_id=intent.attempt_id)
        else:
            lost.append(LostStore(intent.recording_id, state.path, intent.zarr))
    return tuple(lost)


def _is_sound(engine: Engine, target: Target, dataset: Dataset, intent: OpenIntent) -> bool:
    """Remove what the attempt left; whether the address then holds exactly what the database believes."""
    key = store_key(dataset.dataset_id, intent.zarr)
    target.repair_store(key, token=intent.token)
    with engine.connect() as c:
        noted = stores.digests(c, dataset=dataset, zarr=intent.zarr)
        etags = stores.etags(c, dataset=dataset, zarr=intent.zarr)
    if noted is None:
        target.delete_stores([key])
        return True
    return target.store_stands(key, noted, etags)
