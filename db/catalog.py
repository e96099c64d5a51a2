"""The rows of a target's catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db.verdicts import STANDING

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["CatalogFacts", "catalog_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFacts:
    """A catalog row without its address.

    ``recording_count`` counts stores and failures, ``recordings_unavailable`` failures; the duration is in seconds. The verdict is
    None unless it is about all that is published now.
    """

    dataset_id: str
    name: str | None
    doi: str | None
    license: str | None
    modalities: tuple[str, ...]
    subject_count: int | None
    store_count: int
    recording_count: int
    recordings_unavailable: int
    total_recording_duration: float
    zarr_converted_at: datetime
    zarr_source_commit: str
    zarr_errors: int | None
    zarr_verify_status: str | None
    zarr_verified_at: datetime | None


_ROWS = text(f"""
    SELECT d.*, v.status AS verify_status, v.verified_at
    FROM datasets d
    LEFT JOIN {STANDING} v ON true
    WHERE d.target = :target AND d.active AND d.visibility = 'public' AND d.status = 'ready' AND d.store_count > 0
    ORDER BY d.dataset_id
""")


def catalog_rows(c: Connection, *, target: str) -> list[CatalogFacts]:
    """The public, active datasets that are ready and have a store, by id. One that reconverts stays."""
    return [
        CatalogFacts(
            dataset_id=row.dataset_id,
            name=row.name,
            doi=row.doi,
            license=row.license,
            modalities=tuple(row.modalities),
            subject_count=row.subject_count,
            store_count=row.store_count,
            recording_count=row.store_count + row.failure_count,
            recordings_unavailable=row.failure_count,
            total_recording_duration=row.duration_s,
            zarr_converted_at=row.converted_at,
            zarr_source_commit=row.source_commit,
            zarr_errors=row.errors,
            zarr_verify_status=row.verify_status,
            zarr_verified_at=row.verified_at,
        )
        for row in c.execute(_ROWS, {"target": target})
    ]
