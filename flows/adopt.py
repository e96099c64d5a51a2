"""Taking over a dataset that a target serves and that this installation does not know."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.documents import dump
from contract.errors import Refused, ZarrmillError
from contract.layout import CATALOG_KEY, events_key, index_key, is_dataset_id, manifest_key
from db import datasets, documents, leases, recordings, runs
from db.adoption import UNKNOWN_BIOSIGIO, AdoptedStore, adopt_failures, adopt_pending, adopt_stores
from db.apply import apply_plan
from flows.ownership import is_gone, owning
from flows.preview import opened_database
from flows.run_report import leave_reports
from flows.survey import current_versions, survey
from infra.home import Home, private_folder
from infra.processes import user_name
from infra.storage import open_target
from tasks.adoption.event_rows import rows_by_store
from tasks.adoption.served_index import read_served_index
from tasks.adoption.store_groups import with_groups
from tasks.adoption.trust import trust
from tasks.catalog import listed_datasets
from tasks.plan.worklist import plan
from tasks.publish.documents import comparable
from tasks.sources import source_exists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection, Engine

    from db.runs import Run
    from flows.request import ReconvertRequest
    from flows.survey import Survey
    from infra.settings import Settings
    from infra.storage.protocol import Stored, Target
    from tasks.adoption.served_index import ServedIndex, ServedStore
    from tasks.adoption.trust import Trust
    from tasks.bids.recording import DiscoveredRecording

__all__ = ["Adopted", "Skipped", "adopt", "adopt_all", "below"]

_NO_STAMP = "1970-01-01T00:00:00Z"  # of a store whose index does not say when it was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was taken over.

    Parameters
    ----------
    stores
        Stores that the index named.
    trusted
        Of them, those that are carried as they are.
    to_convert
        Recordings of the source that the next convert makes: new, changed, or of a store that could not be trusted.
    failures, attempts
        Verdicts, and recordings with counted attempts, that were taken over.
    gone
        Stores whose recording the source no longer holds; no index will name them.
    outside_raw
        Stores of files outside the raw data; no index will name them.
    notes
        Sentences about what could not be used.
    """

    dataset_id: str
    target: str
    source: str
    format_version: int
    stores: int
    trusted: int
    to_convert: int
    failures: int
    attempts: int
    gone: int
    outside_raw: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A dataset of the target that was not taken over, and why."""

    dataset_id: str
    why: str


def adopt(settings: Settings, request: ReconvertRequest) -> Adopted:
    """Make the dataset ``request.dataset_id`` at the target this installation's, to be made from the source from now on.

    The source is compared as the request says it is read: at its commit or moment, with its annex.
    Nothing at the target is written. A store that is known to be true to the source (``tasks.adoption.trust``) is carried by
    the next convert; everything else is converted, and replaced when its new store is finished.

    Raises
    ------
    Refused
        The target serves no such dataset, its index cannot be read, or the installation knows it already.
    Busy
        Another command registered and holds it meanwhile.
    """
    dataset_id = request.dataset_id
    if dataset_id is None or not is_dataset_id(dataset_id):
        raise Refused(f"{dataset_id!r} is no dataset id: two lower-case letters and six digits, such as xx000001.")
    with opened_database(settings) as (engine, _url):
        return _adopt(settings, engine, dataset_id, request)


def adopt_all(settings: Settings, request: ReconvertRequest) -> tuple[list[Adopted], list[Skipped]]:
    """Take over every dataset of the target's catalog that is not known here.

    Parameters
    ----------
    request
        Its ``source`` is a folder or an address below which each dataset's source lies under its id, in a folder also as the
        bare repository ``ID.git``, and so is its ``annex``; its commit and its moment are those of every source.
    """
    adopted: list[Adopted] = []
    skipped: list[Skipped] = []
    with opened_database(settings) as (engine, _url):
        place = open_target(request.target, settings)
        listed = listed_datasets(place)
        if listed is None:
            raise Refused(f"{place.url} has no {CATALOG_KEY}: name the datasets to take over one by one.")
        with engine.connect() as c:
            known = {one.dataset_id for one in datasets.list_datasets(c, target=place.url)}
        for dataset_id in listed:
            if dataset_id in known:
                skipped.append(Skipped(dataset_id=dataset_id, why="it is known here already"))
                continue
            try:
                adopted.append(_adopt(settings, engine, dataset_id, below(request, dataset_id)))
            except ZarrmillError as error:
                skipped.append(Skipped(dataset_id=dataset_id, why=error.sentence))
    return adopted, skipped


def below(request: ReconvertRequest, dataset_id: str) -> ReconvertRequest:
    """The request for one dataset of those that lie side by side."""
    annex = None if request.annex is None else f"{request.annex.rstrip('/')}/{dataset_id}"
    source = f"{request.source.rstrip('/')}/{dataset_id}"
    if not source_exists(source) and source_exists(f"{source}.git"):
        source += ".git"  # how servers of git keep bare repositories
    return replace(request, source=source, annex=annex, dataset_id=dataset_id)


def _adopt(settings: Settings, engine: Engine, dataset_id: str, request: ReconvertRequest) -> Adopted:
    place = open_target(request.target, settings)
    live, stated = place.read(index_key(dataset_id)), place.read(manifest_key(dataset_id))
    if live is None:
        raise Refused(
            f"{place.url} holds no index of {dataset_id}: there is nothing to take over. What is left of it, such as "
            f"a manifest.json, has to be moved away by hand before convert can use that id."
        )
    served = read_served_index(dataset_id, live.data, stated.data if stated is not None else None)
    surveyed = survey(settings, engine, request)
    if surveyed.choice.registered is not None:
        raise Refused(f"{dataset_id} at {place.url} is known here already: zarrmill convert goes on with it.")
    trusted = trust(served, surveyed.discovery.recordings, surveyed.source.tree(), surveyed.commit)
    told, silent = with_groups(place, dataset_id, trusted.stores)
    trusted = replace(trusted, stores=told)
    with ExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory(dir=private_folder(settings.scratch), prefix="adopt-"))
        ownership = stack.enter_context(owning(Home(settings.home)))
        events, trouble = _events_file(place, dataset_id, Path(scratch))
        c = stack.enter_context(engine.begin())
        run = _registered(c, surveyed, ownership.owner)
        moved = _Taking(served=served, trusted=trusted, surveyed=surveyed, events=events).move(c, run)
        for key, document in ((index_key(dataset_id), live), (manifest_key(dataset_id), stated)):
            if document is not None:
                _note_document(c, place, key, document, run)
        registered = datasets.find(c, dataset_id=dataset_id, target=place.url)
        to_convert = 0 if registered is None else len(recordings.due(c, dataset=registered))
        counts = {"stores": moved[0], "failures": moved[1]}
        runs.note_asked(c, run=run, source_commit=surveyed.commit, asked={"by": user_name()})
        runs.finish(c, run=run, state="completed", counts=counts)
        leases.release(c, run=run)
    unreported = () if registered is None else leave_reports(engine, place, registered)
    return Adopted(
        dataset_id=dataset_id,
        target=place.url,
        source=surveyed.source.url,
        format_version=served.format_version,
        stores=served.store_count,
        trusted=moved[0],
        to_convert=to_convert,
        failures=moved[1],
        attempts=moved[2],
        gone=len(trusted.gone),
        outside_raw=served.outside_raw,
        notes=(*trouble, *_unusable(served), *_silent(silent), *unreported),
    )


def _events_file(target: Target, dataset_id: str, scratch: Path) -> tuple[Path | None, tuple[str, ...]]:
    """A copy of the served events.parquet that was read through once, and a note when it cannot be used."""
    path = scratch / "events.parquet"
    if target.fetch(events_key(dataset_id), path) is None:
        return None, ()
    try:
        for _one in rows_by_store(path):
            pass
    except ValueError as error:
        return None, (f"its events.parquet cannot be used ({error}); stores with events are converted anew",)
    return path, ()


def _unusable(served: ServedIndex) -> tuple[str, ...]:
    if not served.unusable:
        return ()
    return (f"{len(served.unusable)} entries of the index could not be used; the first: {served.unusable[0]}",)


def _silent(paths: Sequence[str]) -> tuple[str, ...]:
    if not paths:
        return ()
    return (
        f"neither the index nor their own metadata tell the channel groups of {len(paths)} stores; the first: {paths[0]}",
    )


def _registered(c: Connection, surveyed: Survey, owner: leases.Owner) -> Run:
    """The dataset registered, held by a run, with every recording of the source due."""
    dataset = datasets.register(
        c,
        dataset_id=surveyed.choice.dataset_id,
        target=surveyed.target.url,
        source=surveyed.source.url,
        annex=surveyed.source.address.annex,
    )
    datasets.set_facts(c, dataset=dataset, facts=surveyed.facts)
    versions = current_versions()
    run = leases.acquire(c, dataset=dataset, owner=owner, mode="adopt", versions=versions, owner_is_gone=is_gone)
    planned = plan(
        surveyed.discovery.recordings,
        surveyed.source.tree(),
        (),
        now=c.execute(text("SELECT zarrmill_now()")).scalar_one(),
        options=versions.options,
        engine=versions.engine,
        biosigio=versions.biosigio,
    )
    apply_plan(c, dataset=dataset, run=run, rows=planned.rows())
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taking:
    """What is taken over, with all that its rows are made of. ``events``: a copy of events.parquet that was read through."""

    served: ServedIndex
    trusted: Trust
    surveyed: Survey
    events: Path | None

    def move(self, c: Connection, run: Run) -> tuple[int, int, int]:
        """Write it; how many stores, verdicts and counts of attempts moved."""
        trusted = self.trusted
        return (
            adopt_stores(c, run=run, stores=self._rows()),
            adopt_failures(c, run=run, failures=((one.path, one.code, one.detail) for one in trusted.failures)),
            adopt_pending(
                c, run=run, pending=((one.path, one.reason, one.attempts, one.last_error) for one in trusted.pending)
            ),
        )

    def _rows(self) -> Iterator[AdoptedStore]:
        """The trusted stores. One that says it has events, which cannot be had, is left to be converted."""
        recordings = {one.path: one for one in self.surveyed.discovery.recordings}
        wanted = {store.entry.zarr: store for store in self.trusted.stores}
        with_rows: set[str] = set()
        for zarr, rows, count in rows_by_store(self.events) if self.events is not None else ():
            if zarr in wanted:
                with_rows.add(zarr)
                yield self._row(wanted[zarr], recordings, rows, count)
        for zarr, store in wanted.items():
            if zarr not in with_rows and not store.entry.n_events:
                yield self._row(store, recordings, None, 0)

    def _row(
        self, store: ServedStore, recordings: Mapping[str, DiscoveredRecording], rows: bytes | None, count: int
    ) -> AdoptedStore:
        entry, version = store.entry, self.served.format_version
        primary = self.surveyed.source.tree()[recordings[store.path].members[0]]
        return AdoptedStore(
            path=store.path,
            entry=dump(entry),
            biosigio=self.served.biosigio_version or UNKNOWN_BIOSIGIO,
            events=rows,
            events_row_count=count,
            source_key=store.source_key,
            size_bytes=primary.size_bytes or 0,
            duration_s=max((group.duration_s or 0.0 for group in entry.groups or ()), default=0.0),
            updated_utc=entry.updated_utc or _NO_STAMP,
            note=f"taken over from an index of format version {version}; the digests of its objects are not known",
        )


def _note_document(c: Connection, target: Target, key: str, document: Stored, run: Run) -> None:
    documents.note(
        c,
        target=target.url,
        key=key,
        etag=document.etag,
        size_bytes=len(document.data),
        sha256=hashlib.sha256(document.data).hexdigest(),
        comparable_sha256=comparable(document.data),
        run_id=run.id,
    )
