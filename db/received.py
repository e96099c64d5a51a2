"""What other converters report about datasets: the columns that each status writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

__all__ = ["Report", "note_report", "reported_alone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report as it is stored. ``data_failures`` is a summary, never a list."""

    dataset_id: str
    status: Literal["converting", "ready", "failed"]
    store_count: int | None = None
    index_etag: str | None = None
    commit: str | None = None
    errors: int = 0
    failure_count: int = 0
    deterministic: bool = False
    data_failures: Mapping[str, Any] | None = None
    pool_breaks: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.failure_count <= self.errors:
            raise ValueError("failure_count must lie between 0 and errors")


_KNOWN = """(
    :register OR EXISTS (SELECT FROM datasets WHERE target = :target AND dataset_id = :dataset_id)
    OR EXISTS (SELECT FROM received WHERE target = :target AND dataset_id = :dataset_id)
)"""
_BASE = {"target": ":target", "dataset_id": ":dataset_id", "received_at": "zarrmill_now()"}
_RUN = {
    "zarr_errors": "CAST(:errors AS bigint)",
    "zarr_failure_count": "CAST(:failure_count AS bigint)",
    "zarr_deterministic": "CAST(:deterministic AS boolean)",
    "zarr_data_failures": "CAST(:data_failures AS jsonb)",
}
_POOL = {"zarr_pool_breaks": "CAST(:pool_breaks AS bigint)"}
_WRITES: dict[str, dict[str, str]] = {
    # what was published before keeps standing, and so does when and how
    "converting": {"zarr_status": "'pending'", **dict.fromkeys(_RUN, "NULL"), "zarr_failed_at": "NULL"},
    "ready": {
        "zarr_status": "'ready'",
        "zarr_converted_at": "zarrmill_now()",
        "zarr_store_count": "CAST(:store_count AS bigint)",
        "zarr_index_etag": ":index_etag",
        "zarr_source_commit": ":commit",
        **_RUN,
        **_POOL,
        "zarr_failed_at": "CASE WHEN CAST(:errors AS bigint) > 0 THEN zarrmill_now() END",
    },
    "failed": {"zarr_status": "'failed'", **_RUN, **_POOL, "zarr_failed_at": "zarrmill_now()"},
}


def note_report(c: Connection, *, target: str, report: Report, register: bool) -> bool:
    """Write the columns of the report's status, by one statement; whether the dataset is known.

    With ``register`` every dataset is known from its first report on.
    """
    columns = _BASE | _WRITES[report.status]
    updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in ("target", "dataset_id"))
    statement = text(f"""
        INSERT INTO received ({", ".join(columns)}) SELECT {", ".join(columns.values())} WHERE {_KNOWN}
        ON CONFLICT (target, dataset_id) DO UPDATE SET {updates}
    """)
    values = {
        "target": target,
        "register": register,
        "dataset_id": report.dataset_id,
        "store_count": report.store_count,
        "index_etag": report.index_etag,
        "commit": report.commit,
        "errors": report.errors,
        "failure_count": report.failure_count,
        "deterministic": report.deterministic,
        "data_failures": None if report.data_failures is None else json.dumps(dict(report.data_failures)),
        "pool_breaks": report.pool_breaks,
    }
    return c.execute(statement, values).rowcount == 1


def reported_alone(c: Connection, *, target: str) -> list[tuple[str, str]]:
    """Id and status of every dataset at a target that only other converters reported, by id."""
    rows = c.execute(
        text("""
            SELECT dataset_id, zarr_status FROM received r WHERE target = :target
              AND NOT EXISTS (SELECT FROM datasets d WHERE d.target = r.target AND d.dataset_id = r.dataset_id)
            ORDER BY dataset_id
        """),
        {"target": target},
    )
    return [(row.dataset_id, row.zarr_status) for row in rows]
