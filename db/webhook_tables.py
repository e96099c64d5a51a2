"""The table of what other converters reported."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, Moment, Path

__all__ = ["Received"]


class Received(Base):
    """The state of a dataset at a target as another converter last reported it, column by column as its readers know them."""

    __tablename__ = "received"
    __table_args__ = (
        CheckConstraint("dataset_id ~ '^[a-z]{2}[0-9]{6}$'", name="id_shape"),
        CheckConstraint("zarr_status IN ('pending', 'ready', 'failed')", name="status"),
        CheckConstraint("zarr_status <> 'ready' OR zarr_converted_at IS NOT NULL", name="ready_has_moment"),
        CheckConstraint(
            "zarr_status <> 'pending' OR num_nonnulls(zarr_errors, zarr_failure_count, zarr_deterministic, zarr_data_failures,"
            " zarr_failed_at) = 0",
            name="pending_is_cleared",
        ),
        CheckConstraint("zarr_status <> 'failed' OR zarr_failed_at IS NOT NULL", name="failed_has_moment"),
        CheckConstraint(
            "zarr_store_count >= 0 AND zarr_errors >= 0 AND zarr_failure_count >= 0 AND zarr_pool_breaks >= 0",
            name="counts",
        ),
        CheckConstraint("zarr_failure_count <= zarr_errors", name="failures_are_errors"),
        CheckConstraint(
            "length(zarr_index_etag) <= 1000 AND length(zarr_source_commit) <= 1000 AND pg_column_size(zarr_data_failures) < 4096",
            name="thin",
        ),
    )
    target: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[Path] = mapped_column(primary_key=True)
    zarr_status: Mapped[str]
    zarr_converted_at: Mapped[datetime | None]
    zarr_store_count: Mapped[int | None]
    zarr_index_etag: Mapped[str | None]
    zarr_source_commit: Mapped[str | None]
    zarr_errors: Mapped[int | None]
    zarr_failure_count: Mapped[int | None]
    zarr_deterministic: Mapped[bool | None]
    zarr_data_failures: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    zarr_pool_breaks: Mapped[int | None]
    zarr_failed_at: Mapped[datetime | None]
    registered_at: Mapped[Moment]
    received_at: Mapped[Moment]
