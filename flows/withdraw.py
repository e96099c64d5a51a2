"""A dataset is withdrawn: out of the catalog and of every filter, and everything that was served of it removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.callback import ZarrReady
from contract.errors import LostLease, ZarrmillError
from contract.layout import events_key, index_key, manifest_key, store_key
from contract.redact import error_line
from db import leases, operators, runs
from db.withdrawal import forget_served, served_stores, take_out
from flows.ownership import is_gone, owning
from flows.run_report import leave_reports
from flows.survey import current_versions
from infra.home import Home
from infra.storage import open_target
from tasks.callback import deliver_due, enqueue
from tasks.catalog import publish_catalog
from tasks.publish.objects import listed_objects

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.runs import Run
    from flows.operations import Operator
    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["Withdrawn", "withdraw"]

log = logging.getLogger("zarrmill.flows.withdraw")

_BATCH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """What stood at the target, and whether it was removed; ``strays`` are no part of a dataset and are left."""

    dataset_id: str
    target: str
    objects: int
    size_bytes: int
    stores: int
    strays: tuple[str, ...]
    executed: bool


def withdraw(settings: Settings, engine: Engine, dataset: Dataset, operator: Operator, *, execute: bool) -> Withdrawn:
    """Take a dataset out of the catalog, then remove its index, its other documents and its stores; without ``execute`` only say it.

    Its recordings, verdicts and attempts stay known. Killed on the way it leaves a dataset that takes no part, and goes on when it is called again.

    Raises
    ------
    Busy
        A run holds the dataset.
    OSError, StorageError
        The target cannot be listed or written.
    """
    target = open_target(dataset.target, settings)
    found = listed_objects(target, dataset.dataset_id)
    stores = sorted(found.stores)
    told = Withdrawn(
        dataset_id=dataset.dataset_id,
        target=dataset.target,
        objects=found.objects,
        size_bytes=found.size_bytes,
        stores=len(stores),
        strays=tuple(found.strays),
        executed=execute,
    )
    if execute:
        _execute(settings, engine, target, dataset, stores, by=operator.name)
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="withdraw",
            executed=execute,
            subject=dataset.dataset_id,
            parameters={"target": dataset.target},
            counts={"stores": told.stores, "objects": told.objects, "size_bytes": told.size_bytes},
        )
    if execute:
        deliver_due(engine, settings)
    return told


def _execute(
    settings: Settings, engine: Engine, target: Target, dataset: Dataset, stores: list[str], *, by: str
) -> None:
    with owning(Home(settings.home)) as ownership:
        with engine.begin() as c:
            run = leases.acquire(
                c,
                dataset=dataset,
                owner=ownership.owner,
                mode="withdraw",
                versions=current_versions(),
                owner_is_gone=is_gone,
            )
            runs.note_asked(c, run=run, source_commit=None, asked={"by": by})
        try:
            _remove(engine, target, dataset, run, stores)
        except (ZarrmillError, OSError) as error:
            if not isinstance(error, LostLease):
                _note_trouble(engine, run, error)
            raise
        finally:
            with engine.begin() as c:
                leases.release(c, run=run)
            leave_reports(engine, target, dataset)


def _remove(engine: Engine, target: Target, dataset: Dataset, run: Run, stores: list[str]) -> None:
    with engine.begin() as c:
        take_out(c, run=run)
        known = served_stores(c, dataset=dataset)
    publish_catalog(engine, target)
    for key in (index_key, manifest_key, events_key):  # the index first: nothing is named that is not there
        target.delete(key(dataset.dataset_id))
    every = sorted({*stores, *known})
    for at in range(0, len(every), _BATCH):
        with engine.begin() as c:
            leases.renew(c, run=run)
        target.delete_stores([store_key(dataset.dataset_id, zarr) for zarr in every[at : at + _BATCH]])
    with engine.begin() as c:
        if dataset.published is not None:
            enqueue(c, run=run, body=_nothing_is_served(dataset, dataset.published.source_commit, known))
        forget_served(c, run=run, dataset=dataset)
        runs.finish(c, run=run, state="completed", counts={"removed": len(every)})


def _nothing_is_served(dataset: Dataset, commit: str, removed: list[str]) -> ZarrReady:
    """What whoever is told of conversions hears: a terminal status with no store, by which the dataset leaves every filter."""
    return ZarrReady(
        dataset_id=dataset.dataset_id,
        status="ready",
        store_count=0,
        commit=commit,
        converted=(),
        removed=tuple(removed),
        errors=0,
        failure_count=0,
        pending_count=0,
        discovered_count=0,
    )


def _note_trouble(engine: Engine, run: Run, error: Exception) -> None:
    sentence = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    try:
        with engine.begin() as c:
            runs.finish(c, run=run, state="failed", error=sentence)
    except ZarrmillError as another:
        log.warning("the end of run %d was not noted: %s", run.number, error_line(another))
