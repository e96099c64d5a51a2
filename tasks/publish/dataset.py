"""One dataset onto its target: events, index, manifest, then removal; each step leaves a target that a reader can use."""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contract.documents import CONTENT_TYPE
from contract.errors import LostLease, PreconditionFailed, PublishConflict, ZarrmillError
from contract.layout import events_key, index_key, manifest_key
from db import datasets, documents, leases, recordings, stores
from db.published import published_snapshot
from tasks.publish.adoption import AdoptedEntries
from tasks.publish.documents import Draft, EventsFile, comparable, made_from
from tasks.publish.events_file import EventsStep, events_are_current, publish_events, put_back
from tasks.publish.live import foreign, refuse_foreign
from tasks.publish.one_writer import one_writer
from tasks.publish.removal import Removal, remove_unnamed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from db.coverage import Coverage
    from db.published import PublishedSnapshot
    from db.runs import Run
    from infra.storage.protocol import Stored, Target
    from tasks.publish.edition import Edition

__all__ = ["Published", "is_current", "publish"]

_log = logging.getLogger("zarrmill.publish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """How a publication went.

    Parameters
    ----------
    etag
        Of the index that stands now.
    coverage, not_attempted_count
        What it says.
    duration_s
        Seconds of signal served: each store's longest channel group.
    changed
        Whether the index was written; False when it differed in nothing but ``updated_utc`` and ``errors``.
    removed
        Paths of stores that were removed.
    events_row_count
        Rows of the events.parquet that the index names; None without one.
    events_upload_failed, manifest_upload_failed, removal_failed
        What was left for the next publication.
    """

    etag: str
    coverage: Coverage
    not_attempted_count: int
    duration_s: float
    changed: bool
    removed: tuple[str, ...]
    events_row_count: int | None
    events_upload_failed: bool
    manifest_upload_failed: bool
    removal_failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """The index as it stands after its step."""

    etag: str
    document: bytes
    changed: bool


def publish(engine: Engine, target: Target, run: Run, edition: Edition, *, scratch: Path) -> Published:
    """Publish the dataset as the database has it now; safe to stop at any point and to repeat.

    Parameters
    ----------
    run
        Holds the dataset; asked again before each write.
    scratch
        An existing folder for events.parquet while it is built.

    Raises
    ------
    Refused
        The index at the target is foreign or unreadable, or ours would break its contract. Nothing was written.
    PublishConflict
        Somebody else changed the index twice meanwhile. events.parquet is as it was.
    LostLease
        Another run has taken over.
    """
    with one_writer(engine, target, index_key(edition.dataset.dataset_id)):
        return _publish(engine, target, run, edition, scratch)


def _publish(engine: Engine, target: Target, run: Run, edition: Edition, scratch: Path) -> Published:
    work = _Publication(engine, target, run, edition)
    dataset = edition.dataset
    with TemporaryDirectory(dir=scratch, prefix="publish-") as folder, published_snapshot(engine, dataset) as snapshot:
        draft = _draft(target, snapshot, edition)
        live = work.live()
        document = draft.index(snapshot.events_row_count or None)
        if _differs(live, document):
            draft.check(document)
        events = publish_events(target, snapshot, Path(folder), work.may_write)
        if events.failed:
            document = draft.index(None)
            draft.check(document)
        with _events_go_with_the_index(target, dataset.dataset_id, events):
            moved = work.move_index(live, draft, document)
        origin = made_from(snapshot, edition, target.addresses(dataset.dataset_id), events.file)
        work.note(draft, snapshot.duration_s, moved, events, origin)
        manifest_failed = not work.publish_manifest(snapshot, draft, events.file, origin)
    work.remove_stale_events(events)
    removal = remove_unnamed(engine, target, run, dataset) if edition.remove_vanished else Removal()
    return Published(
        etag=moved.etag,
        coverage=draft.coverage,
        not_attempted_count=draft.not_attempted_count,
        duration_s=snapshot.duration_s,
        changed=moved.changed,
        removed=removal.zarrs,
        events_row_count=events.file.row_count if events.file else None,
        events_upload_failed=events.failed,
        manifest_upload_failed=manifest_failed,
        removal_failed=removal.failed,
    )


def _draft(target: Target, snapshot: PublishedSnapshot, edition: Edition) -> Draft:
    """The draft with what was adopted before and is not ours meanwhile."""
    dataset = edition.dataset
    known = documents.find(snapshot.connection, target=target.url, key=index_key(dataset.dataset_id))
    adopted = AdoptedEntries.unpacked(known.adopted if known is not None else None)
    if adopted:
        ours = recordings.snapshot(snapshot.connection, dataset=dataset)
        adopted = adopted.without({state.path for state in ours}, {state.zarr for state in ours})
    return Draft(snapshot, edition, target.addresses(dataset.dataset_id), adopted)


def _differs(live: Stored | None, document: bytes) -> bool:
    return live is None or comparable(live.data) != comparable(document)


@contextmanager
def _events_go_with_the_index(target: Target, dataset_id: str, events: EventsStep) -> Iterator[None]:
    """Put the former events.parquet back when the index that names the new one cannot be published."""
    try:
        yield
    except LostLease:  # the file is another run's business now
        raise
    except BaseException:
        put_back(target, dataset_id, events)
        raise


class _Publication:
    """The steps of one publication that read or write the target's documents."""

    def __init__(self, engine: Engine, target: Target, run: Run, edition: Edition) -> None:
        self._engine = engine
        self._target = target
        self._run = run
        self._edition = edition
        self._dataset_id = edition.dataset.dataset_id

    def may_write(self) -> None:
        """Raise LostLease unless the run still holds the dataset; renew its lease when it does."""
        with self._engine.begin() as c:
            leases.renew(c, run=self._run)

    def live(self) -> Stored | None:
        """The live index, when it is ours; Refused when it is not."""
        key = index_key(self._dataset_id)
        live = self._target.read(key)
        if live is None:
            return None
        with self._engine.connect() as c:
            known = documents.find(c, target=self._target.url, key=key)
            if known is not None and known.etag == live.etag:
                return live
            adopted = AdoptedEntries.unpacked(known.adopted if known is not None else None)
            unknown = foreign(live, recordings.snapshot(c, dataset=self._edition.dataset), adopted)
        if unknown:
            raise refuse_foreign(self._dataset_id, unknown)
        return live

    def move_index(self, live: Stored | None, draft: Draft, document: bytes) -> _Moved:
        """Put the index over the version that was read; over a newer one once more, then give up.

        What the newer one names and the database has never seen is kept in ours.
        """
        key = index_key(self._dataset_id)
        for _ in range(2):
            if live is not None and not _differs(live, document):
                return _Moved(etag=live.etag, document=live.data, changed=False)
            self.may_write()
            condition = live.etag if live is not None else None
            try:
                etag = self._target.put(
                    key, document, content_type=CONTENT_TYPE, if_match=condition, if_absent=live is None
                )
            except PreconditionFailed:
                live = self._target.read(key)
                if live is not None and live.data == document:  # our own write, whose answer was lost
                    return _Moved(etag=live.etag, document=document, changed=True)
                document = self._with_theirs(live, draft, document)
            else:
                return _Moved(etag=etag, document=document, changed=True)
        raise PublishConflict(
            f"The index of {self._dataset_id} was changed by somebody else twice while this run published it; "
            "make sure that only one installation publishes it, and run again."
        )

    def _with_theirs(self, live: Stored | None, draft: Draft, document: bytes) -> bytes:
        """The document with the entries of ``live`` that the database has never seen."""
        if live is None:
            return document
        with self._engine.connect() as c:
            states = recordings.snapshot(c, dataset=self._edition.dataset)
        if not foreign(live, states):  # and Refused when it is no readable index
            return document
        theirs = AdoptedEntries.of(live.data).without(
            {state.path for state in states}, {state.zarr for state in states}
        )
        draft.adopt(theirs.beside(draft.adopted))
        _log.warning(
            "another installation published %d recordings of %s that this one does not know; their entries are kept, "
            "their events are not in events.parquet",
            len(theirs),
            self._dataset_id,
        )
        events_row_count = json.loads(document).get("events_row_count")
        merged = draft.index(events_row_count)
        draft.check(merged)
        return merged

    def note(self, draft: Draft, duration_s: float, moved: _Moved, events: EventsStep, origin: str) -> None:
        """Note in one transaction that the index stands, and the events.parquet that it names."""
        edition = self._edition
        with self._engine.begin() as c:
            datasets.note_published(
                c,
                run=self._run,
                source_commit=edition.source_commit,
                index_etag=moved.etag,
                counts=draft.coverage,
                duration_s=duration_s,
                errors=edition.errors,
                deterministic=edition.deterministic,
            )
            adopted = draft.adopted.packed()
            self._note_document(c, index_key(self._dataset_id), moved.document, moved.etag, origin, adopted=adopted)
            if events.file is not None:
                documents.note(
                    c,
                    target=self._target.url,
                    key=events_key(self._dataset_id),
                    etag=events.etag,
                    size_bytes=events.file.size_bytes,
                    sha256=events.sha256,
                    comparable_sha256=events.version,
                    row_count=events.file.row_count,
                    run_id=self._run.id,
                )

    def _note_document(
        self, c: Connection, key: str, document: bytes, etag: str, origin: str, *, adopted: bytes | None = None
    ) -> None:
        documents.note(
            c,
            target=self._target.url,
            key=key,
            etag=etag,
            size_bytes=len(document),
            sha256=hashlib.sha256(document).hexdigest(),
            comparable_sha256=comparable(document),
            made_from=origin,
            adopted=adopted,
            run_id=self._run.id,
        )

    def publish_manifest(
        self, snapshot: PublishedSnapshot, draft: Draft, events: EventsFile | None, origin: str
    ) -> bool:
        """Bring manifest.json up to date; whether that succeeded. Nothing that readers rely on hangs on it."""
        key = manifest_key(self._dataset_id)
        try:
            document = draft.manifest(snapshot, events)
            live = self._target.read(key)
            if live is not None and not _differs(live, document):
                document, etag = live.data, live.etag
            else:
                self.may_write()
                etag = self._target.put(key, document, content_type=CONTENT_TYPE)
        except LostLease:
            raise
        except (OSError, ValueError, ZarrmillError) as error:
            _log.warning("manifest.json of %s was not published: %s", self._dataset_id, error)
            return False
        with self._engine.begin() as c:
            self._note_document(c, key, document, etag, origin)
        return True

    def remove_stale_events(self, events: EventsStep) -> None:
        """Remove an events.parquet that the index no longer names because the dataset has no event rows any more."""
        key = events_key(self._dataset_id)
        if events.file is not None or events.failed:
            return
        with self._engine.connect() as c:
            known = documents.find(c, target=self._target.url, key=key)
        if known is None and self._target.etag(key) is None:
            return
        self.may_write()
        self._target.delete(key)
        with self._engine.begin() as c:
            documents.forget(c, target=self._target.url, key=key)


def is_current(engine: Engine, target: Target, edition: Edition) -> bool:
    """Whether ``publish`` would write and remove nothing: what stands at the target is what the database has."""
    dataset = edition.dataset
    with published_snapshot(engine, dataset) as snapshot:
        published = dataset.published
        if dataset.status != "ready" or published is None or published.source_commit != edition.source_commit:
            return False
        if edition.remove_vanished and stores.stores_to_remove(snapshot.connection, dataset=dataset):
            return False
        return _documents_stand(target, snapshot, edition)


def _documents_stand(target: Target, snapshot: PublishedSnapshot, edition: Edition) -> bool:
    dataset = edition.dataset
    etag = target.etag(index_key(dataset.dataset_id))
    if etag is None or dataset.published is None or etag != dataset.published.index_etag:
        return False
    events = None
    if snapshot.events_row_count:
        row = events_are_current(target, snapshot)
        if row is None or row.row_count is None:
            return False
        events = EventsFile(row.row_count, row.size_bytes)
    elif target.etag(events_key(dataset.dataset_id)) is not None:
        return False
    origin = made_from(snapshot, edition, target.addresses(dataset.dataset_id), events)
    keys = (index_key(dataset.dataset_id), manifest_key(dataset.dataset_id))
    return all(_stands(target, snapshot, key, origin) for key in keys) or _built_anew(target, snapshot, edition, events)


def _stands(target: Target, snapshot: PublishedSnapshot, key: str, origin: str) -> bool:
    """Whether what stands at the key was written from these very rows."""
    known = documents.find(snapshot.connection, target=target.url, key=key)
    return known is not None and known.made_from == origin and known.etag == target.etag(key)


def _built_anew(target: Target, snapshot: PublishedSnapshot, edition: Edition, events: EventsFile | None) -> bool:
    """Whether index and manifest would come out as they stand."""
    dataset_id = edition.dataset.dataset_id
    live, stated = target.read(index_key(dataset_id)), target.read(manifest_key(dataset_id))
    draft = _draft(target, snapshot, edition)
    if _differs(live, draft.index(events.row_count if events else None)):
        return False
    return not _differs(stated, draft.manifest(snapshot, events))
