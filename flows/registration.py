"""Datasets are made known: one by its source, or all that a catalog API lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from db import datasets, operators
from flows.adopt import below
from flows.operations import set_standing
from flows.request import ReconvertRequest
from flows.survey import survey
from infra.storage import open_target
from tasks.bids.dataset_facts import check_description
from tasks.upstream import checked_base, list_upstream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from flows.operations import Operator
    from infra.settings import Settings
    from tasks.upstream import UpstreamDataset

__all__ = ["Imported", "Registered", "import_catalog", "register_source"]

_EMPTY = "no recording was found in it, so there is nothing to serve: a run is refused until there is one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A dataset that is known now; ``is_new`` when it was not before. ``notes`` are sentences about its source."""

    dataset: Dataset
    is_new: bool
    discovered: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a catalog API lists, beside what is known at a target.

    Parameters
    ----------
    added, known
        Ids that were not known, and how many were.
    unlisted
        Ids that were imported from there, are listed no more, and therefore take no part any longer.
    relisted
        Ids that are listed and take no part here; nobody but an operator changes that.
    refused
        Ids whose source cannot be registered, with a sentence.
    rejected
        What the API lists under no dataset's id.
    """

    target: str
    listed: int
    added: tuple[str, ...]
    known: int
    unlisted: tuple[str, ...]
    relisted: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    rejected: tuple[str, ...]
    executed: bool


def register_source(
    settings: Settings,
    engine: Engine,
    request: ReconvertRequest,
    operator: Operator,
    *,
    visibility: str | None = None,
    upstream: str | None = None,
) -> Registered:
    """Make a dataset known, with what it says of itself; nothing is written to the target.

    ``upstream`` is a catalog API that says its DOI, licence, citation and HED version from now on.

    Raises
    ------
    Refused
        The source, its dataset_description.json, the target or the id cannot be used.
    """
    base = None if upstream is None else checked_base(upstream)
    surveyed = survey(settings, engine, request)
    check_description(surveyed.source)
    with engine.begin() as c:
        dataset = datasets.register(
            c,
            dataset_id=surveyed.choice.dataset_id,
            target=surveyed.target.url,
            source=surveyed.source.url,
            annex=surveyed.source.address.annex,
        )
        datasets.set_facts(c, dataset=dataset, facts=surveyed.facts)
        if base is not None:
            datasets.set_upstream(c, dataset=dataset, upstream=base)
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="register",
            executed=True,
            subject=dataset.dataset_id,
            parameters={"source": dataset.source, "target": dataset.target, "upstream": base},
        )
    dataset = replace(dataset, facts=surveyed.facts, upstream=base or dataset.upstream)
    if visibility is not None and visibility != dataset.visibility:
        dataset = set_standing(engine, dataset, operator, visibility=visibility)
    return Registered(
        dataset=dataset,
        is_new=surveyed.choice.registered is None,
        discovered=len(surveyed.discovery.recordings),
        notes=surveyed.notes if surveyed.discovery.recordings else (_EMPTY, *surveyed.notes),
    )


def import_catalog(
    settings: Settings, engine: Engine, sources: ReconvertRequest, operator: Operator, *, catalog: str, execute: bool
) -> Imported:
    """Make every dataset that a catalog API lists known; without ``execute`` only say which.

    Sources are not looked at: the reconcile flow does that, one by one.

    Parameters
    ----------
    sources
        Its ``source`` is where each dataset's source lies under its id, in a folder also as ``ID.git``; its ``annex`` likewise.

    Raises
    ------
    Refused, UpstreamTrouble
        The address is none, or does not answer with a whole listing.
    """
    base = checked_base(catalog)
    listing = list_upstream(base)
    place = open_target(sources.target, settings)
    with engine.connect() as c:
        known = {one.dataset_id: one for one in datasets.list_datasets(c, target=place.url)}
    listed = {one.dataset_id for one in listing.datasets}
    new = [one for one in listing.datasets if one.dataset_id not in known]
    gone = [one for one in known.values() if one.upstream == base and one.active and one.dataset_id not in listed]
    refused: list[tuple[str, str]] = []
    if execute:
        refused = _register_all(engine, sources, place.url, base, new)
        with engine.begin() as c:
            for one in gone:
                datasets.set_standing(c, dataset=one, active=False)
    done = Imported(
        target=place.url,
        listed=len(listing.datasets),
        added=tuple(one.dataset_id for one in new if one.dataset_id not in dict(refused)),
        known=len(listing.datasets) - len(new),
        unlisted=tuple(sorted(one.dataset_id for one in gone)),
        relisted=tuple(sorted(one.dataset_id for one in known.values() if not one.active and one.dataset_id in listed)),
        refused=tuple(refused),
        rejected=listing.rejected,
        executed=execute,
    )
    _note_import(engine, operator, done, catalog=base, sources=sources.source)
    return done


def _note_import(engine: Engine, operator: Operator, done: Imported, *, catalog: str, sources: str) -> None:
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="register --catalog",
            executed=done.executed,
            parameters={"catalog": catalog, "sources": sources, "target": done.target},
            counts={"listed": done.listed, "added": len(done.added), "unlisted": len(done.unlisted)},
        )


def _register_all(
    engine: Engine, sources: ReconvertRequest, target: str, base: str, new: Sequence[UpstreamDataset]
) -> list[tuple[str, str]]:
    """Register what is new, each in a transaction of its own; ids and sentences of what could not be."""
    refused: list[tuple[str, str]] = []
    for one in new:
        try:
            place = below(sources, one.dataset_id)
        except ZarrmillError as error:
            refused.append((one.dataset_id, error.sentence))
            continue
        with engine.begin() as c:
            dataset = datasets.register(
                c, dataset_id=one.dataset_id, target=target, source=place.source, annex=place.annex
            )
            datasets.set_facts(c, dataset=dataset, facts=one.facts)
            datasets.set_upstream(c, dataset=dataset, upstream=base)
    return refused
