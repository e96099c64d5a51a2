"""events.parquet of a dataset: assembled from the rows in the database, put before the index, put back if that fails."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.errors import LostLease, PublishError, ZarrmillError
from contract.events import CONTENT_TYPE
from contract.layout import events_key
from db import documents
from tasks.publish.documents import EventsFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from db.documents import PublishedDocument
    from db.published import PublishedSnapshot
    from infra.storage.protocol import Target

__all__ = ["EventsStep", "events_are_current", "publish_events", "put_back"]

_log = logging.getLogger("zarrmill.publish")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsStep:
    """How the step went.

    Parameters
    ----------
    file
        What the index may name; None when the dataset has no event rows, or when ``failed``.
    etag, sha256, version
        Of the file, for the documents row.
    failed
        Building or writing it did not succeed; what stood before stands still, and the index must not name it.
    wrote
        Whether the object was replaced.
    predecessor
        A copy of what it replaced; None when there was none.
    """

    file: EventsFile | None = None
    etag: str = ""
    sha256: str = ""
    version: str = ""
    failed: bool = False
    wrote: bool = False
    predecessor: Path | None = None


def events_are_current(target: Target, snapshot: PublishedSnapshot) -> PublishedDocument | None:
    """The documents row of events.parquet when the object is what a new build would be; None otherwise."""
    key = events_key(snapshot.dataset.dataset_id)
    known = documents.find(snapshot.connection, target=target.url, key=key)
    if known is None or known.comparable_sha256 != snapshot.events_version() or known.etag != target.etag(key):
        return None
    return known


def publish_events(
    target: Target, snapshot: PublishedSnapshot, scratch: Path, may_write: Callable[[], None]
) -> EventsStep:
    """Bring events.parquet up to date, if the dataset has event rows. A failure is logged and told, never raised.

    Raises
    ------
    LostLease
        From ``may_write``, asked before the write.
    """
    if not snapshot.events_row_count:
        return EventsStep()
    from pyarrow import ArrowException

    try:
        return _publish(target, snapshot, scratch, may_write)
    except LostLease:
        raise
    except (OSError, ValueError, MemoryError, ZarrmillError, ArrowException) as error:
        _log.warning("events.parquet of %s was not published: %s", snapshot.dataset.dataset_id, error)
        return EventsStep(failed=True)


def _publish(target: Target, snapshot: PublishedSnapshot, scratch: Path, may_write: Callable[[], None]) -> EventsStep:
    from tasks.events.parquet import write_parquet

    current = events_are_current(target, snapshot)
    if current is not None and current.row_count == snapshot.events_row_count:
        file = EventsFile(current.row_count, current.size_bytes)
        return EventsStep(file=file, etag=current.etag, sha256=current.sha256, version=current.comparable_sha256)
    built = scratch / "events.parquet"
    rows = write_parquet(snapshot.events(), built)
    if rows != snapshot.events_row_count:
        raise PublishError(f"events.parquet has {rows} rows where the conversions left {snapshot.events_row_count}.")
    with built.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    key = events_key(snapshot.dataset.dataset_id)
    step = EventsStep(file=EventsFile(rows, built.stat().st_size), sha256=sha256, version=snapshot.events_version())
    previous = scratch / "events.previous.parquet"
    before = target.fetch(key, previous)
    if before == sha256:  # a target whose etag is the content's hash, and a run that died before it noted the write
        return replace(step, etag=before)
    may_write()
    etag = target.put(key, built, content_type=CONTENT_TYPE)
    return replace(step, etag=etag, wrote=True, predecessor=previous if before is not None else None)


def put_back(target: Target, dataset_id: str, step: EventsStep) -> None:
    """Undo a replacement, because the index that would have named the new file was not published."""
    if not step.wrote:
        return
    key = events_key(dataset_id)
    if step.predecessor is None:
        target.delete(key)
    else:
        target.put(key, step.predecessor, content_type=CONTENT_TYPE)
