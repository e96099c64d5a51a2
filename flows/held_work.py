"""Runs that hold a dataset and convert nothing: stores' statements of provenance, and objects that should not stand so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.layout import store_key
from db import datasets, leases
from flows.conversion import Instead, carry_out
from flows.preview import opened_database
from flows.request import ReconvertRequest
from flows.session import Opening, hold
from flows.standing import check_standing
from flows.survey import survey
from infra.storage import open_target
from tasks.publish.objects import compare_objects
from tasks.publish.roots import rewrite_roots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from distributed import Client
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.runs import Mode
    from flows.request import ProgressEvent, RunSummary
    from flows.session import Session
    from flows.stop import StopSignal
    from infra.settings import Settings
    from infra.storage.protocol import Target
    from tasks.publish.live import LostStore
    from tasks.publish.objects import Differences
    from tasks.publish.roots import Rewritten

__all__ = ["Reconciled", "Republished", "reconcile_objects", "republish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Republished:
    """How the dataset stands, and what became of its stores' roots."""

    summary: RunSummary
    roots: Rewritten


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What differed. ``summary`` is None when nothing was executed, or nothing was there to execute.

    ``removed_objects`` and ``removed_stores`` count what was removed; ``due`` the recordings that are due again.
    """

    dataset_id: str
    target: str
    differences: Differences
    summary: RunSummary | None = None
    removed_objects: int = 0
    removed_stores: int = 0
    due: int = 0


def republish(
    settings: Settings,
    *,
    dataset_id: str,
    target: str,
    on_event: Callable[[ProgressEvent], None],
    stop: StopSignal,
) -> Republished:
    """Make every store of a dataset state the present DOI, licence, citation, HED version and address, and publish.

    Neither Prefect nor Dask starts, no signal is read or written, and what is due stays due.

    Raises
    ------
    Refused
        The dataset is not known, or its source or target cannot be used.
    Busy
        Another run holds it.
    """
    done: list[Rewritten] = []

    def work(session: Session) -> bool:
        done.append(rewrite_roots(session.engine, session.survey.target, session.run, session.dataset))
        return done[-1].written > 0

    with opened_database(settings) as (engine, _url):
        opening = _opening(
            settings,
            engine,
            _known(settings, engine, dataset_id, target),
            on_event=on_event,
            stop=stop,
            called="republish",
        )
        with hold(opening) as session:
            summary = _carry_out(session, Instead("rewriting provenance", work))
    return Republished(summary=summary, roots=done[0])


def reconcile_objects(
    settings: Settings,
    *,
    dataset_id: str,
    target: str,
    execute: bool,
    on_event: Callable[[ProgressEvent], None],
    stop: StopSignal,
) -> Reconciled:
    """Compare the objects below a dataset's address with what its conversions left, and with ``execute`` mend it.

    A store that lacks objects or holds other bytes leaves the index and is due again; objects and stores that nothing names
    are removed. What is no part of a store is told and left. Without ``execute`` nothing is written.

    Raises
    ------
    Refused
        The dataset is not known, or its index cannot be read.
    Busy
        Another run holds it.
    OSError, StorageError
        The target could not be listed to its end.
    """
    with opened_database(settings) as (engine, _url):
        dataset = _known(settings, engine, dataset_id, target)
        place = open_target(dataset.target, settings)
        seen = compare_objects(engine, place, dataset)
        told = Reconciled(dataset_id=dataset_id, target=place.url, differences=seen)
        if not execute or not (seen.different or seen.orphans):
            return told
        mending = _Mending(engine, place)
        opening = _opening(
            settings, engine, dataset, on_event=on_event, stop=stop, called="reconcile", find_lost=mending.find_lost
        )
        with hold(opening) as session:
            summary = _carry_out(session, Instead("removing what nothing names", mending.work))
    assert mending.found is not None
    return replace(
        told,
        differences=mending.found,
        summary=summary,
        removed_objects=mending.removed_objects,
        removed_stores=len(mending.found.orphans),
        due=sum(one.rebuilt for one in mending.found.damaged),
    )


@dataclass(slots=True)
class _Mending:
    """What differs once the dataset is held, and what was removed of it."""

    engine: Engine
    target: Target
    found: Differences | None = None
    removed_objects: int = 0

    def find_lost(self, dataset: Dataset) -> Collection[LostStore]:
        """Compare again, because whoever held the dataset before may have changed it; the stores that are due again."""
        self.found = compare_objects(self.engine, self.target, dataset)
        return [one.lost() for one in self.found.damaged if one.rebuilt]

    def work(self, session: Session) -> bool:
        """Remove what nothing names; whether there was any."""
        assert self.found is not None
        self.removed_objects = _remove_extra(session, self.found)
        return bool(self.removed_objects or self.found.orphans)


def _known(settings: Settings, engine: Engine, dataset_id: str, target: str) -> Dataset:
    place = open_target(target, settings)
    with engine.connect() as c:
        dataset = datasets.find(c, dataset_id=dataset_id, target=place.url)
    if dataset is None:
        raise Refused(
            f"{dataset_id} at {place.url} is not known here: convert makes a dataset, adopt takes one over, status lists them."
        )
    check_standing(dataset)
    return dataset


def _opening(
    settings: Settings,
    engine: Engine,
    dataset: Dataset,
    *,
    on_event: Callable[[ProgressEvent], None],
    stop: StopSignal,
    called: Mode,
    find_lost: Callable[[Dataset], Collection[LostStore]] = lambda _dataset: (),
) -> Opening:
    request = ReconvertRequest(
        source=dataset.source, target=dataset.target, dataset_id=dataset.dataset_id, annex=dataset.annex
    )
    surveyed = survey(settings, engine, request)
    is_open = surveyed.target.prepare()
    check_standing(dataset, is_open=is_open)
    return Opening(
        settings=settings,
        engine=engine,
        request=request,
        survey=surveyed,
        on_event=on_event,
        stop=stop,
        called=called,
        find_lost=find_lost,
        is_open=is_open,
    )


def _carry_out(session: Session, instead: Instead) -> RunSummary:
    def no_cluster() -> Client:
        raise AssertionError("a run that converts nothing asks for no cluster")

    return carry_out(session, no_cluster, stage=lambda _name, work: work(), instead=instead)


def _remove_extra(session: Session, found: Differences) -> int:
    """Remove the objects of known stores that their conversions did not leave, and the stores that nothing names."""
    target, dataset_id = session.survey.target, session.dataset.dataset_id
    removed = 0
    for one in found.different:
        with session.engine.begin() as c:
            leases.renew(c, run=session.run)
        for name in one.extra:
            target.delete(f"{store_key(dataset_id, one.zarr)}/{name}")
            removed += 1
    with session.engine.begin() as c:
        leases.renew(c, run=session.run)
    target.delete_stores([store_key(dataset_id, zarr) for zarr in found.orphans])
    return removed
