"""Removal of stores that no published index names any more. Always after the index, never because a scope narrowed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.errors import StorageError
from contract.layout import store_key
from contract.redact import error_line
from db import leases, stores

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.runs import Run
    from infra.storage.protocol import Target

__all__ = ["Removal", "remove_unnamed"]

_BATCH = 200
_log = logging.getLogger("zarrmill.publish")


@dataclass(frozen=True, slots=True)
class Removal:
    """Paths of the stores that are gone, and whether some could not be removed; those are tried again by the next run."""

    zarrs: tuple[str, ...] = ()
    failed: bool = False


def remove_unnamed(engine: Engine, target: Target, run: Run, dataset: Dataset) -> Removal:
    """Remove the stores whose recordings are gone from the source, or changed and then failed.

    The objects go first, then their rows: a crash between leaves rows that the next run removes.

    Raises
    ------
    LostLease
        Another run has taken over; what was removed until then was nobody's.
    """
    with engine.connect() as c:
        unnamed = stores.stores_to_remove(c, dataset=dataset)
    gone: list[str] = []
    for start in range(0, len(unnamed), _BATCH):
        batch = unnamed[start : start + _BATCH]
        with engine.begin() as c:
            leases.renew(c, run=run)
        try:
            target.delete_stores([store_key(dataset.dataset_id, zarr) for zarr in batch])
        except (OSError, StorageError) as error:
            _log.warning("stores of %s could not be removed: %s", dataset.dataset_id, error_line(error))
            return Removal(tuple(gone), failed=True)
        with engine.begin() as c:
            leases.renew(c, run=run)
            stores.removed(c, dataset=dataset, stores=batch)
        gone += batch
    return Removal(tuple(gone))
