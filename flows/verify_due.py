"""What a verify sweep is to compare: by the verdicts that are kept, and by a look at what stands at the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.layout import index_key
from db import datasets, store_objects, store_verdicts, stores, verdicts
from infra.storage import open_target
from tasks.verify.listing import check_listing
from tasks.verify.report import Report

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from flows.sweep_request import SweepRequest
    from infra.settings import Settings

__all__ = ["chosen_datasets", "due_for_sweep", "due_stores", "standing_datasets", "stands_as_left"]


def due_for_sweep(settings: Settings, engine: Engine, request: SweepRequest) -> list[tuple[Dataset, list[str]]]:
    """Each dataset that a sweep would compare, with the paths of the recordings whose stores it would.

    The target is not asked, so stores that only their objects show to be due are not among them.

    Raises
    ------
    Refused
        The dataset is not known, or ``path`` names no published recording of it.
    """
    found = [
        (dataset, due_stores(settings, engine, dataset, request))
        for dataset in chosen_datasets(settings, engine, request)
    ]
    if request.dataset_id is None and not request.every:
        standing = [
            (dataset, due_stores(settings, engine, dataset, request))
            for dataset in standing_datasets(settings, engine, request)
        ]
        found += [(dataset, due) for dataset, due in standing if due]
    return [(dataset, [path for _, path in due]) for dataset, due in found]


def chosen_datasets(settings: Settings, engine: Engine, request: SweepRequest) -> list[Dataset]:
    """The dataset that is named; else those whose verdict does not stand, or every one that is published.

    Raises
    ------
    Refused
        It is not published here.
    """
    url = None if request.target is None else open_target(request.target, settings).url
    if request.dataset_id is None:
        if request.path is not None:
            raise Refused("A recording is named without its dataset: say which one.")
        with engine.connect() as c:
            if not request.every:
                return verdicts.to_verify(c, target=url)
            return [one for one in datasets.list_datasets(c, target=url) if one.active and one.published is not None]
    with engine.connect() as c:
        dataset = datasets.find(c, dataset_id=request.dataset_id, target=url)
    if dataset is None or dataset.published is None:
        raise Refused(f"{request.dataset_id} is not published here: status lists what is.")
    return [dataset]


def standing_datasets(settings: Settings, engine: Engine, request: SweepRequest) -> list[Dataset]:
    """Datasets whose verdict stands."""
    url = None if request.target is None else open_target(request.target, settings).url
    with engine.connect() as c:
        return verdicts.to_verify(c, target=url, standing=True)


def due_stores(settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest) -> list[tuple[int, str]]:
    """(recording id, path) of the stores that are to be compared, by what is known of them."""
    with engine.connect() as c:
        due = store_verdicts.stores_to_check(
            c, dataset=dataset, path=request.path, every=request.every, again_days=settings.verify_again_days
        )
        known = due or store_verdicts.stores_to_check(c, dataset=dataset, path=request.path, every=True)
    if request.path is not None and not known:
        raise Refused(f"{request.path} names no published recording of {dataset.dataset_id}.")
    return due


def stands_as_left(settings: Settings, engine: Engine, dataset: Dataset) -> bool:
    """Whether a dataset stands as it was when its verdict was found, by one listing of its objects and the etag of its index.

    Raises
    ------
    OSError, ZarrmillError
        The target could not be looked at.
    """
    assert dataset.published is not None
    with engine.connect() as c:
        judged, known = store_objects.judged(c, dataset=dataset), stores.standing(c, dataset=dataset)
    target = open_target(dataset.target, settings)
    report = Report(dataset.dataset_id)
    changed = check_listing(target, dataset, known, judged, report)
    index_stands = target.etag(index_key(dataset.dataset_id)) == dataset.published.index_etag
    return index_stands and not changed and not report.mismatches
