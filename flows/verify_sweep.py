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
from db import datasets, documents, leases, requests, store_objects, store_verdicts, stores, verdicts
from flows.stop import StopSignal
from flows.sweep_request import DatasetSwept, StoreSwept, SweepRequest
from flows.verify_due import chosen_datasets, due_stores, standing_datasets, stands_as_left
from infra.storage import open_target
from tasks.convert.scratch import WorkerScratch
from tasks.read.place import archive_place, target_place
from tasks.sources import SourceAddress
from tasks.verify.documents import Documents, check_documents
from tasks.verify.listing import check_listing
from tasks.verify.objects import body_digest
from tasks.verify.report import NoVerdict, Report
from tasks.verify.sources import SourceChoice
from tasks.verify.store import Surroundings, bytes_as_left, verify_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.store_objects import JudgedStore
    from infra.settings import Settings
    from tasks.verify.report import Found

__all__ = ["answer_requests", "verify_sweep"]

_log = logging.getLogger("zarrmill.verify")
_MOST_REQUESTS = 1000
_HOLDS = frozenset({"verified", "unverifiable"})
_REPLACED = "it was replaced, or a run holds the dataset"


def verify_sweep(
    settings: Settings,
    engine: Engine,
    request: SweepRequest,
    *,
    on_dataset: Callable[[DatasetSwept], None] = lambda _swept: None,
    stop: StopSignal | None = None,
) -> tuple[DatasetSwept, ...]:
    """Compare stores with their sources and write verdicts; nothing else is written, at the target least of all.

    Datasets whose verification was asked for come first, and are compared whole. Datasets whose verdict stands come last: each
    one's objects are listed, and it is compared when they are not as they were left, or when its turn has come again.

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
    for dataset in chosen_datasets(settings, engine, request):
        if stop.state != "go":
            break
        if (dataset.target, dataset.dataset_id) not in seen:
            swept.append(_sweep(settings, engine, dataset, request, stop))
            on_dataset(swept[-1])
            seen.add((dataset.target, dataset.dataset_id))
    if request.dataset_id is None and not request.every:
        for dataset in standing_datasets(settings, engine, request):
            if stop.state != "go":
                break
            if (dataset.target, dataset.dataset_id) not in seen:
                found = _look_again(settings, engine, dataset, request, stop)
                if found is not None:
                    swept.append(found)
                    on_dataset(found)
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


def _look_again(
    settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest, stop: StopSignal
) -> DatasetSwept | None:
    """Look at a dataset whose verdict stands, by one listing of its objects, and compare it if anything is to be compared.

    None when everything stands as it was left, or a run holds the dataset. An index or events.parquet that is another also counts.
    """
    with engine.connect() as c:
        if leases.is_live(c, dataset=dataset):
            return None
    try:
        left = stands_as_left(settings, engine, dataset)
    except (ZarrmillError, OSError) as error:
        trouble = error.sentence if isinstance(error, ZarrmillError) else f"{type(error).__name__}: {error}"
        return _conclude(engine, dataset, Report(dataset.dataset_id).found(), [], redact(trouble))
    if not left or due_stores(settings, engine, dataset, request):
        return _sweep(settings, engine, dataset, request, stop)
    with engine.begin() as c:
        verdicts.note_sweep(c, dataset=dataset, unjudged=0, trouble=None)
    return None


def _sweep(
    settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest, stop: StopSignal
) -> DatasetSwept:
    """One dataset; what is wrong with anything but its stores is told as trouble."""
    looked: list[StoreSwept] = []
    trouble = None
    report = Report(dataset.dataset_id)
    try:
        with _surroundings(settings, engine, dataset, request, report) as (around, scratch, changed):
            looked = _stores(settings, engine, around, scratch, changed=changed, request=request, stop=stop)
    except Refused as error:
        if request.path is not None:
            raise
        trouble = error.sentence
    except ZarrmillError as error:
        trouble = error.sentence
    except (NoVerdict, OSError) as error:
        trouble = redact(str(error) if isinstance(error, NoVerdict) else f"{type(error).__name__}: {error}")
    swept = _conclude(engine, dataset, report.found(), looked, trouble)
    # of a recording that was named nothing is said about the other ones
    return swept if request.path is None else replace(swept, as_left=min(swept.as_left, int(not looked)))


@contextmanager
def _surroundings(
    settings: Settings, engine: Engine, dataset: Dataset, request: SweepRequest, report: Report
) -> Iterator[tuple[Surroundings, WorkerScratch, list[JudgedStore]]]:
    """The dataset's documents, its source, the scratch of this sweep, which is removed on every path, and stores that have changed."""
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
        judged = store_objects.judged(c, dataset=dataset)
    with ExitStack() as stack:
        scratch = WorkerScratch(settings.scratch)
        stack.callback(scratch.close)
        scratch.tend(lambda _attempt: True)  # of its own it has none yet: what others left behind is removed
        found = check_documents(target, dataset, events_row, scratch.folder, report)
        if found.events_file is not None:
            stack.callback(found.events_file.close)
        entries = {} if found.index is None else {entry.zarr: entry for entry in found.index.stores}
        changed = check_listing(target, dataset, known | entries.keys(), judged, report)
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
                by_bytes=request.dataset_id is not None,
            ),
            scratch,
            [judged[zarr] for zarr in sorted(changed)],
        )


def _base(found: Documents, otherwise: str) -> str:
    return otherwise if found.index is None else found.index.contract_base


def _stores(
    settings: Settings,
    engine: Engine,
    around: Surroundings,
    scratch: WorkerScratch,
    *,
    changed: Sequence[JudgedStore],
    request: SweepRequest,
    stop: StopSignal,
) -> list[StoreSwept]:
    """The stores that are due or have changed, compared; of a dataset that was named also those whose bytes turn out to be others."""
    due = dict(due_stores(settings, engine, around.dataset, request))
    due |= {each.recording_id: each.path for each in changed if request.path in (None, each.path, each.zarr)}
    looked_at = due
    if around.by_bytes:
        with engine.connect() as c:
            looked_at = dict(store_verdicts.stores_to_check(c, dataset=around.dataset, path=request.path, every=True))

    def one(recording_id: int, path: str) -> StoreSwept | None:
        if stop.state != "go":
            return None
        attempt = uuid4()
        try:
            folder = scratch.make(attempt) / "source"
            return _store(engine, around, recording_id, path, folder, is_due=recording_id in due)
        finally:
            scratch.remove(attempt)

    with ThreadPoolExecutor(settings.verify_workers, thread_name_prefix="zarrmill-verify") as pool:
        futures = [pool.submit(one, *store) for store in looked_at.items()]
        try:
            done = [future.result() for future in as_completed(futures)]
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return sorted((swept for swept in done if swept is not None), key=lambda swept: swept.path)


def _store(
    engine: Engine, around: Surroundings, recording_id: int, path: str, folder: Path, *, is_due: bool
) -> StoreSwept | None:
    """One store, compared; None for one that is not due and whose bytes are those that were left."""
    with engine.connect() as c:
        row = store_verdicts.served_store(c, dataset=around.dataset, recording_id=recording_id)
    if row is None:
        return StoreSwept(path=path, status=None, why="it is published no longer")
    try:
        if not is_due and bytes_as_left(around, row):
            return None
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
        as_left=0 if trouble else tally.verified + tally.unverifiable - sum(one.status in _HOLDS for one in looked),
        examples=examples,
    )
