"""zarr-catalog.json: the datasets that a target serves."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contract.catalog import Catalog, CatalogRow
from contract.documents import CONTENT_TYPE, dump, parse
from contract.errors import PreconditionFailed, PublishConflict, Refused
from contract.layout import CATALOG_KEY, index_key
from contract.times import utc_stamp
from db import datasets, documents
from db.catalog import catalog_rows, reported_ids
from tasks.publish.one_writer import one_writer

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.catalog import CatalogFacts
    from infra.storage.protocol import Stored, Target

__all__ = ["CatalogPublished", "listed_datasets", "publish_catalog"]

_TRIES = 8
_SOME_ID = "xx000000"
_log = logging.getLogger("zarrmill.catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPublished:
    """The catalog that stands now: datasets in it, its size, and whether it was written."""

    count: int
    size_bytes: int
    changed: bool


def listed_datasets(target: Target) -> list[str] | None:
    """Ids of the datasets in the catalog that stands at the target; None when there is none that can be read."""
    live = _parsed(target.read(CATALOG_KEY))
    return None if live is None else [row.dataset_id for row in live.datasets]


def publish_catalog(engine: Engine, target: Target) -> CatalogPublished:
    """Bring the catalog up to date; it is not written when it would differ in nothing but ``generated_utc``.

    Rows of datasets that this database does not know, put there by another installation that serves into the same
    target, are kept for as long as their index stands.

    Raises
    ------
    PublishConflict
        Others kept changing the catalog.
    """
    live = target.read(CATALOG_KEY)
    rows = _rows(engine, target, live)
    if (standing := _as_it_stands(target, live, rows)) is not None:
        return standing  # before anything is asked for that a run with nothing to do must not write
    with one_writer(engine, target, CATALOG_KEY):
        return _publish(engine, target)


def _as_it_stands(target: Target, live: Stored | None, rows: list[CatalogRow]) -> CatalogPublished | None:
    """What there is to say when the catalog need not be written; None when it must be."""
    if live is None:
        return None if rows else CatalogPublished(count=0, size_bytes=0, changed=False)
    former = _parsed(live)
    if former is not None and dump(_catalog(target, rows, former.generated_utc)) == live.data:
        return CatalogPublished(count=len(rows), size_bytes=len(live.data), changed=False)
    return None


def _publish(engine: Engine, target: Target) -> CatalogPublished:
    for _ in range(_TRIES):
        # First the document, then the rows: a write that meets the version read here cannot lose newer rows.
        live = target.read(CATALOG_KEY)
        rows = _rows(engine, target, live)
        if (standing := _as_it_stands(target, live, rows)) is not None:
            return standing
        document = dump(_catalog(target, rows, utc_stamp(datetime.now(UTC))))
        condition = live.etag if live is not None else None
        try:
            etag = target.put(
                CATALOG_KEY, document, content_type=CONTENT_TYPE, if_match=condition, if_absent=live is None
            )
        except PreconditionFailed:
            continue
        _note(engine, target, document, etag)
        return CatalogPublished(count=len(rows), size_bytes=len(document), changed=True)
    raise PublishConflict("The catalog was changed by others again and again while this run published it; run again.")


def _note(engine: Engine, target: Target, document: bytes, etag: str) -> None:
    sha256 = hashlib.sha256(document).hexdigest()
    with engine.begin() as c:
        documents.note(c, target=target.url, key=CATALOG_KEY, etag=etag, size_bytes=len(document), sha256=sha256)


def _parsed(live: Stored | None) -> Catalog | None:
    if live is None:
        return None
    try:
        return parse(Catalog, live.data)
    except Refused as error:
        _log.warning("the catalog at the target was unreadable and is written anew: %s", error)
        return None


def _rows(engine: Engine, target: Target, live: Stored | None) -> list[CatalogRow]:
    with engine.connect() as c:
        facts = catalog_rows(c, target=target.url)
        known = {dataset.dataset_id for dataset in datasets.list_datasets(c, target=target.url)}
        known |= reported_ids(c, target=target.url)
    rows = [_row(target, row) for row in facts]
    former = _parsed(live)
    theirs = [row for row in former.datasets if row.dataset_id not in known] if former else []
    rows += [
        row.model_copy(update={"index_url": _index_url(target, row.dataset_id)})
        for row in theirs
        if target.etag(index_key(row.dataset_id)) is not None
    ]
    return sorted(rows, key=lambda row: row.dataset_id)


def _row(target: Target, facts: CatalogFacts) -> CatalogRow:
    return CatalogRow.model_validate(
        {
            "dataset_id": facts.dataset_id,
            "name": facts.name,
            "doi": facts.doi,
            "license": facts.license,
            "modalities": facts.modalities,
            "subject_count": facts.subject_count,
            "store_count": facts.store_count,
            "recording_count": facts.recording_count,
            "recordings_unavailable": facts.recordings_unavailable,
            "total_recording_duration": facts.total_recording_duration,
            "zarr_converted_at": utc_stamp(facts.zarr_converted_at),
            "zarr_source_commit": facts.zarr_source_commit,
            "zarr_errors": facts.zarr_errors,
            "zarr_verify_status": facts.zarr_verify_status,
            "zarr_verified_at": utc_stamp(facts.zarr_verified_at) if facts.zarr_verified_at else None,
            "index_url": _index_url(target, facts.dataset_id),
        }
    )


def _index_url(target: Target, dataset_id: str) -> str:
    return f"{target.addresses(dataset_id).contract_base}index.json"


def _catalog(target: Target, rows: list[CatalogRow], generated_utc: str) -> Catalog:
    base = target.addresses(_SOME_ID).contract_base.removesuffix(f"{_SOME_ID}/zarr/")
    return Catalog(generated_utc=generated_utc, contract_base=base, count=len(rows), datasets=tuple(rows))
