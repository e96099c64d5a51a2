"""The rows of a target's catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db.listing import HAS_ZARR, LISTED

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["CatalogFacts", "catalog_rows", "reported_ids"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFacts:
    """A catalog row without its address.

    ``recording_count`` counts stores and failures, ``recordings_unavailable`` failures; the duration is in seconds. Of a
    dataset that only other converters reported these are None. The verdict is None unless it is about what is published now.
    """

    dataset_id: str
    name: str | None
    doi: str | None
    license: str | None
    modalities: tuple[str, ...]
    subject_count: int | None
    store_count: int
    recording_count: int | None
    recordings_unavailable: int | None
    total_recording_duration: float | None
    zarr_converted_at: datetime
    zarr_source_commit: str | None
    zarr_errors: int | None
    zarr_verify_status: str | None
    zarr_verified_at: datetime | None


_ROWS = text(f"SELECT listed.* FROM ({LISTED}) listed WHERE {HAS_ZARR} ORDER BY dataset_id")


def catalog_rows(c: Connection, *, target: str) -> list[CatalogFacts]:
    """The public, active datasets that are ready and have a store, by id. One of ours that reconverts stays."""
    return [
        CatalogFacts(
            dataset_id=row.dataset_id,
            name=row.name,
            doi=row.doi,
            license=row.license,
            modalities=tuple(row.modalities),
            subject_count=row.subject_count,
            store_count=row.store_count,
            recording_count=None if row.is_reported else row.store_count + row.failure_count,
            recordings_unavailable=None if row.is_reported else row.failure_count,
            total_recording_duration=row.duration_s,
            zarr_converted_at=row.converted_at,
            zarr_source_commit=row.source_commit,
            zarr_errors=row.errors,
            zarr_verify_status=row.verify_status,
            zarr_verified_at=row.verified_at,
        )
        for row in c.execute(_ROWS, {"target": target})
    ]


def reported_ids(c: Connection, *, target: str) -> set[str]:
    """The datasets at a target of which another converter reported, whatever it said."""
    return set(c.scalars(text("SELECT dataset_id FROM received WHERE target = :target"), {"target": target}))
