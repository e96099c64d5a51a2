"""The verify sweep: datasets whose verdict does not stand are compared with their source, store by store."""

from __future__ import annotations

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from contract.errors import Refused, ZarrmillError
from contract.layout import dataset_prefix, events_key
from contract.redact import redact
from db import datasets, documents, leases, requests, store_verdicts, stores, verdicts
from flows.stop import StopSignal
from flows.sweep_request import DatasetSwept, StoreSwept, SweepRequest
from infra.storage import open_target
from tasks.convert.scratch import WorkerScratch
from tasks.read.place import archive_place, target_place
from tasks.sources import SourceAddress
from tasks.verify.documents import Documents, check_documents, check_names
from tasks.verify.objects import body_digest
from tasks.verify.report import NoVerdict, Report
from tasks.verify.sources import SourceChoice
from tasks.verify.store import Surroundings, verify_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from infra.settings import Settings
    from tasks.verify.report import Found

__all__ = ["answer_requests", "due_for_sweep", "verify_sweep"]

_log = logging.getLogger("zarrmill.verify")
_MOST_REQUESTS = 1000
_REPLACED = "it was replaced, or a run holds the dataset"


def due_for_sweep(settings: Settings, engine: Engine, request: SweepRequest) -> list[tuple[Dataset, list[str]]]:
    """Each dataset that a sweep would look at, with the paths of the recordings whose stores it would."""
    found = []
    for dataset in _chosen(settings, engine, request):
        with engine.connect() as c:
            due = store_verdicts.stores_to_check(c, dataset=dataset, path=request.path, every=request.every)
        found.append((dataset, [path for _, path in due]))
    return found


def verify_sweep(
    settings: Settings,
    engine: Engine,
    request: SweepRequest,
    *,
    on_dataset: Callable[[DatasetSwept], None] = lambda _swept: None,
    stop: StopSignal | None = None,
) -> tuple[DatasetSwept, ...]:
    """Compare stores with their sources and write verdicts; nothing else is written, at the target least of all.

    Datasets whose verification was asked for come first, and are compared whole.

    As many stores are looked at side by side as ``ZARRMILL_VERIFY_WORKERS`` says. Whatever is wrong with a machine, a network
    or a source that does not answer gives no verdict: what was known before stands. When it is asked to stop, what is being
    compared is finished.

    Raises
    ------
    Refused
        The dataset is not known, or ``path`` names no published recording of it.
    sqlalchemy.exc.OperationalError
        The database is away; verdicts are as they were.
    """
    stop = stop or StopSignal()
    swept: list[DatasetSwept] = []
    if request.dataset_id is None:
        swept += answer_requests(settings, engine, request, on_dataset=on_dataset, stop=stop)
    seen = {(one.target, one.dataset_id) for one in swept}
    for dataset in _chosen(settings, engine, request):
        if stop.state != "go":
            break
        if (dataset.target, dataset.dataset_id) not in seen:
            swept.append(_sweep(settings, engine, dataset, request, stop))
            on_dataset(swept[-1])
    return tuple(swept)


def answer_requests(
    settings: Settings,
    engine: Engine,
    request: SweepRequest,
    *,
    on_dataset: Callable[[DatasetSwept], None] = lambda _swept: None,
    stop: StopSignal | None = None,
) -> tuple[DatasetSwept, ...]:
    """Compare every store of each dataset whose verification somebody asked for (``db.requests``), the first asked first.

    A request whose dataset gets no verdict has failed, with the trouble; the daily sweep comes to the dataset all the same.
    """
    stop = stop or StopSignal()
    swept: list[DatasetSwept] = []
    url = None if request.target is None else open_target(request.target, settings).url
    with engine.connect() as c:
        asked = requests.next_due(c, work="verify", limit=_MOST_REQUESTS)
    for one in asked:
        if stop.state != "go" or url not in (None, one.target):
            continue
        with engine.begin() as c:
            begun = requests.start(c, pk=one.pk)
            dataset = datasets.find(c, dataset_id=one.dataset_id, target=one.target)
            if begun is None or dataset is None:
                continue
            if dataset.published is None:
                requests.refuse(c, pk=one.pk, error="The dataset is not published, so there is nothing to compare.")
                continue
        found = _sweep(settings, engine, dataset, replace(request, every=True), stop)
        with engine.begin() as c:
            requests.end(c, pk=one.pk, error=found.trouble)
        swept.append(found)
        on_dataset(found)
    return tuple(swept)


def _chosen(settings: Settings, engine: Engine, request: SweepRequest) -> list[Dataset]:
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


def _sweep(
    settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest, stop: StopSignal
) -> DatasetSwept:
    """One dataset; what is wrong with anything but its stores is told as trouble."""
    looked: list[StoreSwept] = []
    trouble = None
    report = Report(dataset.dataset_id)
    try:
        with _surroundings(settings, engine, dataset, request, report) as (around, scratch):
            looked = _stores(settings, engine, around, scratch, request=request, stop=stop)
    except Refused as error:
        if request.path is not None:
            raise
        trouble = error.sentence
    except ZarrmillError as error:
        trouble = error.sentence
    except (NoVerdict, OSError) as error:
        trouble = redact(str(error) if isinstance(error, NoVerdict) else f"{type(error).__name__}: {error}")
    return _conclude(engine, dataset, report.found(), looked, trouble)


@contextmanager
def _surroundings(
    settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest, report: Report
) -> Iterator[tuple[Surroundings, WorkerScratch]]:
    """The dataset's documents, its source and the scratch of this sweep, which is removed on every path."""
    target = open_target(dataset.target, settings)
    address = SourceAddress(
        url=dataset.source, commit=request.commit, annex=request.annex or dataset.annex, at=request.at
    )
    assert dataset.published is not None
    sources = SourceChoice(address, dataset.published.source_commit, settings)
    settings.scratch.mkdir(parents=True, exist_ok=True)
    with engine.connect() as c:
        if leases.is_live(c, dataset=dataset):
            raise NoVerdict("a run holds the dataset; it is compared when the run has ended")
        events_row = documents.find(c, target=target.url, key=events_key(dataset.dataset_id))
        known = stores.standing(c, dataset=dataset)
    with ExitStack() as stack:
        scratch = WorkerScratch(settings.scratch)
        stack.callback(scratch.close)
        scratch.tend(lambda _attempt: True)  # of its own it has none yet: what others left behind is removed
        found = check_documents(target, dataset, events_row, scratch.folder, report)
        if found.events_file is not None:
            stack.callback(found.events_file.close)
        entries = {} if found.index is None else {entry.zarr: entry for entry in found.index.stores}
        check_names(target, dataset, known | entries.keys(), report)
        place = target_place(target)
        if request.over_http:
            base = target.addresses(dataset.dataset_id).data_base
            place = archive_place(base.removesuffix(dataset_prefix(dataset.dataset_id)))
            stack.callback(place.close)
        yield (
            Surroundings(
                dataset=dataset,
                target=target,
                sources=sources,
                contract_base=_base(found, target.addresses(dataset.dataset_id).contract_base),
                entries=entries,
                events_file=found.events_file,
                place=place,
                seed=request.seed,
                thorough=request.every,
            ),
            scratch,
        )


def _base(found: Documents, otherwise: str) -> str:
    return otherwise if found.index is None else found.index.contract_base


def _stores(
    settings: Settings,
    engine: Engine,
    around: Surroundings,
    scratch: WorkerScratch,
    *,
    request: SweepRequest,
    stop: StopSignal,
) -> list[StoreSwept]:
    with engine.connect() as c:
        due = store_verdicts.stores_to_check(c, dataset=around.dataset, path=request.path, every=request.every)
    if request.path is not None and not due:
        with engine.connect() as c:
            if not store_verdicts.stores_to_check(c, dataset=around.dataset, path=request.path, every=True):
                raise Refused(f"{request.path} names no published recording of {around.dataset.dataset_id}.")

    def one(recording_id: int, path: str) -> StoreSwept | None:
        if stop.state != "go":
            return None
        attempt = uuid4()
        try:
            return _store(engine, around, recording_id, path, scratch.make(attempt) / "source")
        finally:
            scratch.remove(attempt)

    with ThreadPoolExecutor(settings.verify_workers, thread_name_prefix="zarrmill-verify") as pool:
        futures = [pool.submit(one, *store) for store in due]
        try:
            done = [future.result() for future in as_completed(futures)]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return sorted((swept for swept in done if swept is not None), key=lambda swept: swept.path)


def _store(engine: Engine, around: Surroundings, recording_id: int, path: str, folder: Path) -> StoreSwept:
    with engine.connect() as c:
        row = store_verdicts.served_store(c, dataset=around.dataset, recording_id=recording_id)
    if row is None:
        return StoreSwept(path=path, status=None, why="it is published no longer")
    try:
        judged = verify_store(around, row, folder)
    except NoVerdict as error:
        _log.warning("%s of %s has no verdict: %s", path, around.dataset.dataset_id, error)
        return StoreSwept(path=path, status=None, why=redact(str(error)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = judged.found
    with engine.begin() as c:
        kept = store_verdicts.found(
            c,
            store=row,
            body_digest=body_digest(row.digests),
            status=found.status,
            why=found.why,
            checked=found.checked,
            mismatches=found.mismatches,
            examples=found.examples,
            seed=around.seed,
        )
    if not kept:
        return StoreSwept(path=path, status=None, why=_REPLACED, whole=judged.whole)
    return StoreSwept(
        path=path,
        status=found.status,
        why=found.why,
        whole=judged.whole,
        mismatches=found.mismatches,
        examples=found.examples,
    )


def _conclude(
    engine: Engine, dataset: Dataset, documents_found: Found, looked: list[StoreSwept], trouble: str | None
) -> DatasetSwept:
    """Write the dataset's verdict once every published store has one, or as soon as something of it does not hold."""
    status = None
    assert dataset.published is not None
    with engine.begin() as c:
        tally = verdicts.tally(c, dataset=dataset)
        examples = (*documents_found.examples, *tally.examples)[:20]
        fails = tally.mismatches + documents_found.mismatches > 0
        whole = not tally.unjudged and all(one.status is not None for one in looked)
        if trouble is None and (whole or fails) and not leases.is_live(c, dataset=dataset):
            status = verdicts.record(
                c,
                dataset=dataset,
                source_commit=dataset.published.source_commit,
                checked=tally.checked if tally.verified or tally.failed or documents_found.mismatches else 0,
                mismatches=tally.mismatches + documents_found.mismatches,
                examples=examples,
                stores=(tally.verified, tally.failed, tally.unverifiable),
                index_etag=dataset.published.index_etag,
            )
        if trouble is None and not whole:
            trouble = next((one.why for one in looked if one.status is None), "it was asked to stop")
        verdicts.note_sweep(c, dataset=dataset, unjudged=tally.unjudged, trouble=trouble)
    return DatasetSwept(
        dataset_id=dataset.dataset_id,
        target=dataset.target,
        status=status,
        trouble=trouble,
        stores=tuple(looked),
        verified=tally.verified,
        failed=tally.failed,
        unverifiable=tally.unverifiable,
        unjudged=tally.unjudged,
        examples=examples,
    )
