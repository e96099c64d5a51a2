"""The datasets of a target as everybody may see them: one list of our own and of those that other converters reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from db.coverage import SERVED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = [
    "HAS_ZARR",
    "LISTED",
    "LISTED_PRIVATE_TOO",
    "SORTS",
    "Filters",
    "ListedDataset",
    "Page",
    "Totals",
    "find_listed",
    "listed",
    "totals",
]

LISTED: Final = """
    SELECT d.pk AS dataset_pk, d.dataset_id, d.name, d.doi, d.license, d.citation, d.hed_version, d.has_hed, d.modalities, d.tasks,
           d.subject_count, d.registered_at, d.converting,
           COALESCE(r.zarr_status, d.status, CASE WHEN d.converting THEN 'pending' END) AS zarr_status,
           COALESCE(r.zarr_store_count, d.store_count) AS store_count,
           d.duration_s, COALESCE(r.zarr_converted_at, d.converted_at) AS converted_at,
           COALESCE(r.zarr_source_commit, d.source_commit) AS source_commit,
           COALESCE(r.zarr_index_etag, d.index_etag) AS index_etag,
           COALESCE(r.zarr_errors, d.errors) AS errors, COALESCE(r.zarr_failure_count, d.failure_count) AS failure_count,
           COALESCE(CAST(r.zarr_data_failures ->> 'pending' AS bigint), d.pending_count) AS pending_count,
           COALESCE(CAST(r.zarr_data_failures ->> 'discovered' AS bigint), d.discovered_count) AS discovered_count,
           COALESCE(r.zarr_deterministic, d.deterministic) AS deterministic,
           COALESCE(r.zarr_failed_at, d.failed_at) AS failed_at, d.error, r.zarr_data_failures AS data_failures,
           r.zarr_pool_breaks AS pool_breaks, r.dataset_id IS NOT NULL AS is_reported,
           v.status AS verify_status, v.verified_at
    FROM datasets d
    -- once a run of ours ended, what it left is what stands; a run that published nothing takes away nothing that others serve
    LEFT JOIN received r ON r.target = d.target AND r.dataset_id = d.dataset_id
         AND (d.status IS NULL OR d.source_commit IS NULL AND r.zarr_status = 'ready' AND r.zarr_store_count > 0)
    LEFT JOIN LATERAL (
        SELECT * FROM verdicts WHERE dataset_pk = d.pk ORDER BY verified_at DESC, pk DESC LIMIT 1
    ) v ON v.index_etag IS NOT DISTINCT FROM d.index_etag
       AND v.stores_verified + v.stores_failed + v.stores_unverifiable >= COALESCE(d.store_count, 0)
    WHERE d.target = :target AND d.active AND d.visibility = 'public'
    UNION ALL
    SELECT NULL, r.dataset_id, NULL, NULL, NULL, NULL, NULL, NULL, '{}', '{}', NULL, r.registered_at, false, r.zarr_status,
           r.zarr_store_count, NULL, r.zarr_converted_at, r.zarr_source_commit, r.zarr_index_etag, r.zarr_errors,
           r.zarr_failure_count, CAST(r.zarr_data_failures ->> 'pending' AS bigint),
           CAST(r.zarr_data_failures ->> 'discovered' AS bigint), r.zarr_deterministic, r.zarr_failed_at, NULL, r.zarr_data_failures,
           r.zarr_pool_breaks, true, NULL, NULL
    FROM received r
    WHERE r.target = :target
      AND NOT EXISTS (SELECT FROM datasets d WHERE d.target = r.target AND d.dataset_id = r.dataset_id)
"""
"""Every public, active dataset at ``:target``. Wants a parameter ``target``.

The verdict is the last one, while it is about the index that stands and about all of its stores. ``db.verdicts.STANDING`` also looks at
each store, which for a list of 1,000 datasets would read a million rows.
"""

LISTED_PRIVATE_TOO: Final = LISTED.replace(" AND d.visibility = 'public'", "")
"""The same with private ones, for those who may see everything."""

HAS_ZARR: Final = "zarr_status = 'ready' AND COALESCE(store_count, 0) > 0"
"""SQL over ``LISTED``: there is a copy to read. Its meaning is fixed and does not depend on verification."""

_MISSING = "COALESCE(discovered_count - store_count, errors + COALESCE(pending_count, 0), 0)"
_COVERAGE = {
    "complete": f"COALESCE(store_count, 0) > 0 AND {_MISSING} = 0",
    "partial": f"COALESCE(store_count, 0) > 0 AND {_MISSING} > 0",
    "none": "COALESCE(store_count, 0) = 0",
}
_WITHIN = "position(lower(:{name}) IN lower({text})) > 0"
_FAILED = f"""EXISTS (
    SELECT FROM recordings r WHERE r.dataset_pk = listed.dataset_pk AND r.due = 'failed' AND r.code = :code AND NOT ({SERVED}))"""

SORTS: Final[Mapping[str, str]] = {
    "id": "dataset_id",
    "newest": "converted_at DESC NULLS LAST, dataset_id",
    "oldest": "converted_at NULLS LAST, dataset_id",
    "name": "lower(name) NULLS LAST, dataset_id",
    "participants": "subject_count DESC NULLS LAST, dataset_id",
    "duration": "duration_s DESC NULLS LAST, dataset_id",
    "stores": "store_count DESC NULLS LAST, dataset_id",
}
"""The orders by their public names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What of a list is wanted; unset means everything.

    Parameters
    ----------
    search
        Part of the id, the name or the DOI, in any case.
    modality, task
        Part of one, in any case.
    coverage
        complete, partial or none.
    status
        A zarr_status, or ``none`` for datasets that have none.
    code
        A failure code with which at least one recording is published.
    """

    has_zarr: bool = False
    has_zarr_verified: bool = False
    search: str | None = None
    modality: str | None = None
    task: str | None = None
    coverage: str | None = None
    status: str | None = None
    code: str | None = None

    def conditions(self) -> list[str]:
        """SQL over ``LISTED listed``; its parameters have the names of the fields."""
        wanted = []
        if self.has_zarr or self.has_zarr_verified:
            wanted.append(HAS_ZARR)
        if self.has_zarr_verified:
            wanted.append("verify_status = 'verified'")
        if self.search is not None:
            words = "concat_ws(' ', dataset_id, name, doi)"
            wanted.append(_WITHIN.format(name="search", text=words))
        if self.modality is not None:
            wanted.append(_WITHIN.format(name="modality", text="array_to_string(modalities, ',')"))
        if self.task is not None:
            wanted.append(_WITHIN.format(name="task", text="array_to_string(tasks, ',')"))
        if self.coverage is not None:
            wanted.append(_COVERAGE[self.coverage])
        if self.status is not None:
            wanted.append("zarr_status IS NULL" if self.status == "none" else "zarr_status = :status")
        if self.code is not None:
            wanted.append(_FAILED)
        return wanted

    def values(self) -> dict[str, Any]:
        """The parameters of ``conditions``."""
        named = ("search", "modality", "task", "status", "code")
        return {name: getattr(self, name) for name in named if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDataset:
    """One row of ``LISTED``. ``dataset_pk`` is None where only other converters reported of it."""

    dataset_pk: int | None
    dataset_id: str
    name: str | None
    doi: str | None
    license: str | None
    citation: str | None
    hed_version: str | None
    has_hed: bool | None
    modalities: tuple[str, ...]
    tasks: tuple[str, ...]
    subject_count: int | None
    registered_at: datetime
    converting: bool
    zarr_status: str | None
    store_count: int | None
    duration_s: float | None
    converted_at: datetime | None
    source_commit: str | None
    index_etag: str | None
    errors: int | None
    failure_count: int | None
    pending_count: int | None
    discovered_count: int | None
    deterministic: bool | None
    failed_at: datetime | None
    error: str | None
    data_failures: Mapping[str, Any] | None
    pool_breaks: int | None
    is_reported: bool
    verify_status: str | None
    verified_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list, and how long the whole list is."""

    datasets: tuple[ListedDataset, ...]
    total_count: int


def listed(c: Connection, *, target: str, filters: Filters, sort: str, limit: int, offset: int) -> Page:
    """The datasets that fit, in order, by one statement."""
    wanted = " AND ".join(f"({one})" for one in filters.conditions()) or "true"
    statement = text(f"""
        WITH hits AS MATERIALIZED (SELECT * FROM ({LISTED}) listed WHERE {wanted}),
             page AS (SELECT * FROM hits ORDER BY {SORTS[sort]} LIMIT :limit OFFSET :offset)
        SELECT (SELECT count(*) FROM hits) AS total_count, page.* FROM (SELECT 1) one LEFT JOIN page ON true
        ORDER BY {SORTS[sort]}
    """)
    values = {"target": target, "limit": limit, "offset": offset, **filters.values()}
    rows = c.execute(statement, values).all()
    found = tuple(_dataset(row) for row in rows if row.dataset_id is not None)
    return Page(datasets=found, total_count=rows[0].total_count)


_ONE = text(f"SELECT 0 AS total_count, listed.* FROM ({LISTED}) listed WHERE dataset_id = :dataset_id")


def find_listed(c: Connection, *, target: str, dataset_id: str) -> ListedDataset | None:
    """The dataset of this id, or None when there is none that everybody may see."""
    row = c.execute(_ONE, {"target": target, "dataset_id": dataset_id}).one_or_none()
    return None if row is None else _dataset(row)


def _dataset(row: Any) -> ListedDataset:
    values = dict(row._mapping)
    del values["total_count"]
    values |= {"modalities": tuple(row.modalities), "tasks": tuple(row.tasks)}
    return ListedDataset(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Numbers of a target: datasets by status, recordings by published list, and what is under way."""

    datasets: Mapping[str, int]
    recordings: Mapping[str, int]
    converting: int
    callbacks_waiting: int


_TOTALS = text(
    """
    SELECT COALESCE(zarr_status, 'none') AS status, count(*) AS datasets, sum(store_count) AS stores,
           sum(failure_count) AS failures, sum(pending_count) AS pending,
           (SELECT count(*) FROM recordings WHERE attempt_id IS NOT NULL) AS converting,
           (SELECT count(*) FROM callbacks WHERE delivered_at IS NULL) AS callbacks
    FROM (LISTED) listed GROUP BY ROLLUP (1)
""".replace("LISTED", LISTED)
)


def totals(c: Connection, *, target: str) -> Totals:
    """Everything that is counted of a target, by one statement that looks at no recording that is not converting."""
    rows = c.execute(_TOTALS, {"target": target}).all()
    everything = next(row for row in rows if row.status is None)
    by_status = dict.fromkeys(("none", "pending", "ready", "failed"), 0)
    by_status |= {row.status: row.datasets for row in rows if row.status is not None}
    return Totals(
        datasets=by_status,
        recordings={name: int(getattr(everything, name) or 0) for name in ("stores", "failures", "pending")},
        converting=everything.converting,
        callbacks_waiting=everything.callbacks,
    )
