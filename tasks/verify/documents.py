"""What a dataset serves beside its stores: its documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.documents import parse
from contract.errors import Refused
from contract.index import LocalIndex
from contract.layout import index_key
from contract.verification import Check
from tasks.verify.events_file import EventsFile, fetch_events_file

if TYPE_CHECKING:
    from pathlib import Path

    from db.dataset_values import Dataset
    from db.documents import PublishedDocument
    from infra.storage.protocol import Target
    from tasks.verify.report import Report

__all__ = ["Documents", "check_documents"]


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents as they are served; ``index`` is None where there is none that can be read."""

    index: LocalIndex | None
    events_file: EventsFile | None


def check_documents(
    target: Target, dataset: Dataset, events_row: PublishedDocument | None, scratch: Path, report: Report
) -> Documents:
    """Read index.json and events.parquet, and compare them with what was last published.

    Raises
    ------
    OSError, StorageError
        The target could not be read.
    """
    index = _index(target, dataset, report)
    from pyarrow import ArrowException

    try:
        file, etag = fetch_events_file(target, dataset.dataset_id, scratch / "events.parquet")
    except (ArrowException, ValueError):
        report.fail(Check.EVENTS_FILE, "events.parquet cannot be read")
        return Documents(index, None)
    named = index is not None and index.events_parquet is not None
    if named:
        report.hold(Check.EVENTS_FILE, file is not None, "the index names events.parquet, which is not there")
    if file is None or not named or index is None:
        return Documents(index, None)
    known = None if events_row is None else events_row.etag
    report.hold(Check.EVENTS_FILE, known in (None, etag), "events.parquet holds other bytes than were published")
    detail = f"events.parquet has {file.row_count} rows, the index says {index.events_row_count}"
    report.hold(Check.EVENTS_FILE, file.row_count == index.events_row_count, detail)
    return Documents(index, file)


def _index(target: Target, dataset: Dataset, report: Report) -> LocalIndex | None:
    live = target.read(index_key(dataset.dataset_id))
    if live is None:
        report.fail(Check.INDEX, "index.json is not there")
        return None
    try:
        index = parse(LocalIndex, live.data)
    except Refused as error:
        report.fail(Check.INDEX, f"index.json breaks its contract: {error.sentence}")
        return None
    published = None if dataset.published is None else dataset.published.index_etag
    report.hold(Check.INDEX, live.etag == published, "index.json is not the one that was published")
    for name in ("doi", "license", "citation", "hed_version"):
        own, wanted = getattr(index, name), getattr(dataset.facts, name)
        report.hold(Check.INDEX, own == wanted, f"index.json says {name} {own!r}, the dataset {wanted!r}")
    return index
