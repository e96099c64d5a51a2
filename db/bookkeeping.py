"""The tables beside the state of recordings: documents, verdicts, the outbox, the ledger of machines."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, Count, DatasetKey, Json, Key, Moment, Path, RunKey

__all__ = [
    "Callback",
    "CallbackDelivery",
    "Contender",
    "Document",
    "Drain",
    "Host",
    "Intent",
    "KnownHeader",
    "Reservation",
    "RunReport",
    "StoreVerdict",
    "Sweep",
    "Verdict",
]


class Document(Base):
    """A document as it was last published at a target, by key."""

    __tablename__ = "documents"
    target: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True)
    etag: Mapped[str]
    size_bytes: Mapped[int]
    sha256: Mapped[str]
    comparable_sha256: Mapped[str]
    made_from: Mapped[str | None]
    row_count: Mapped[int | None]
    adopted: Mapped[bytes | None]
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"))
    written_at: Mapped[Moment]


class Intent(Base):
    """A store that is being put at the target; left over, it names what a crash may have left half done."""

    __tablename__ = "intents"
    __table_args__ = (Index(None, "dataset_pk", "zarr"),)
    attempt_id: Mapped[UUID] = mapped_column(primary_key=True)
    dataset_pk: Mapped[DatasetKey]
    recording_pk: Mapped[int] = mapped_column(ForeignKey("recordings.pk", ondelete="CASCADE"))
    zarr: Mapped[Path]
    opened_at: Mapped[Moment]


class KnownHeader(Base):
    """What the header of a recording says that its projection needs, by a hash over format and content ids."""

    __tablename__ = "known_headers"
    __table_args__ = (CheckConstraint("pg_column_size(header) < 16384", name="thin"),)
    key: Mapped[Path] = mapped_column(primary_key=True)
    header: Mapped[Json]
    noted_at: Mapped[Moment]


class RunReport(Base):
    """The report that a run left beside its target, or what kept it from being written."""

    __tablename__ = "run_reports"
    __table_args__ = (
        CheckConstraint("num_nulls(size_bytes, trouble) = 1", name="written_or_trouble"),
        CheckConstraint("tries > 0 AND size_bytes >= 0 AND length(trouble) <= 4000", name="thin"),
    )
    run_id: Mapped[RunKey] = mapped_column(primary_key=True)
    made_at: Mapped[Moment]
    tries: Mapped[int] = mapped_column(Integer, server_default=text("1"))
    size_bytes: Mapped[int | None]
    trouble: Mapped[str | None]


class Verdict(Base):
    """What a verify sweep found about a published dataset."""

    __tablename__ = "verdicts"
    __table_args__ = (
        Index(None, "dataset_pk", "verified_at"),
        CheckConstraint("status IN ('verified', 'failed', 'unverifiable')", name="status"),
        CheckConstraint(
            "checked >= 0 AND mismatches >= 0 AND (status = 'failed') = (mismatches > 0)", name="failed_has_mismatch"
        ),
        CheckConstraint("status <> 'verified' OR checked > 0", name="verified_means_checked"),
        CheckConstraint("pg_column_size(examples) < 16384", name="thin"),
    )
    pk: Mapped[Key]
    dataset_pk: Mapped[DatasetKey]
    source_commit: Mapped[str]
    status: Mapped[str]
    verified_at: Mapped[Moment]
    checked: Mapped[int]
    mismatches: Mapped[int]
    examples: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'"))
    index_etag: Mapped[str | None]
    stores_verified: Mapped[Count]
    stores_failed: Mapped[Count]
    stores_unverifiable: Mapped[Count]


class StoreVerdict(Base):
    """What a verify sweep found about a store; it stands for as long as the store has this digest and this source."""

    __tablename__ = "store_verdicts"
    __table_args__ = (
        Index(None, "dataset_pk"),
        CheckConstraint("status IN ('verified', 'failed', 'unverifiable')", name="status"),
        CheckConstraint(
            "checked >= 0 AND mismatches >= 0 AND (status = 'failed') = (mismatches > 0)", name="failed_has_mismatch"
        ),
        CheckConstraint("status <> 'verified' OR checked > 0", name="verified_means_checked"),
        CheckConstraint("(status = 'unverifiable') = (why IS NOT NULL)", name="unverifiable_has_why"),
        CheckConstraint("pg_column_size(examples) < 16384 AND length(why) <= 4000", name="thin"),
    )
    recording_pk: Mapped[int] = mapped_column(ForeignKey("recordings.pk", ondelete="CASCADE"), primary_key=True)
    dataset_pk: Mapped[DatasetKey]
    digest: Mapped[str]
    body_digest: Mapped[str]
    source: Mapped[str]
    status: Mapped[str]
    why: Mapped[str | None]
    checked: Mapped[int]
    mismatches: Mapped[int]
    examples: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'"))
    seed: Mapped[int]
    revision: Mapped[int]
    verified_at: Mapped[Moment]


class Sweep(Base):
    """The last time that a verify sweep came to a dataset, and what kept it from a verdict."""

    __tablename__ = "sweeps"
    __table_args__ = (CheckConstraint("unjudged >= 0 AND length(trouble) <= 4000", name="unjudged"),)
    dataset_pk: Mapped[DatasetKey] = mapped_column(primary_key=True)
    attempted_at: Mapped[Moment]
    unjudged: Mapped[int]
    trouble: Mapped[str | None]


class Callback(Base):
    """The outbox: what the outside is told about a run, at every address at least once, in order per dataset.

    ``delivered_at`` is when the last address had accepted it.
    """

    __tablename__ = "callbacks"
    __table_args__ = (
        Index("uq_callbacks_one_terminal", "run_id", unique=True, postgresql_where=text("status <> 'converting'")),
        Index("uq_callbacks_one_converting", "run_id", unique=True, postgresql_where=text("status = 'converting'")),
        Index("ix_callbacks_waiting", "dataset_pk", "pk", postgresql_where=text("delivered_at IS NULL")),
        CheckConstraint("status IN ('converting', 'ready', 'failed')", name="status"),
        CheckConstraint("(delivered_at IS NULL) = (body IS NOT NULL)", name="body_until_delivered"),
        CheckConstraint("octet_length(body) <= 16777216", name="thin"),
    )
    pk: Mapped[Key]
    dataset_pk: Mapped[DatasetKey]
    run_id: Mapped[RunKey]
    status: Mapped[str]
    body: Mapped[bytes | None]
    created_at: Mapped[Moment]
    delivered_at: Mapped[datetime | None]


class CallbackDelivery(Base):
    """How one callback fares at one address. ``endpoint`` names the address and tells nothing secret of it."""

    __tablename__ = "callback_deliveries"
    __table_args__ = (
        CheckConstraint("delivered_at IS NULL OR taken_until IS NULL", name="delivered_is_not_taken"),
        CheckConstraint("endpoint <> '' AND length(endpoint) <= 500 AND length(last_error) <= 4000", name="thin"),
    )
    callback_pk: Mapped[int] = mapped_column(ForeignKey("callbacks.pk", ondelete="CASCADE"), primary_key=True)
    endpoint: Mapped[str] = mapped_column(primary_key=True)
    tries: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    next_try_at: Mapped[Moment]
    taken_until: Mapped[datetime | None]
    delivered_at: Mapped[datetime | None]
    last_error: Mapped[str | None]


class Drain(Base):
    """A worker, or all, that takes nothing new; what runs there is let go ``grace_s`` after it was asked."""

    __tablename__ = "drains"
    __table_args__ = (
        CheckConstraint("worker <> ''", name="worker"),
        CheckConstraint("grace_s >= 0", name="grace"),
    )
    worker: Mapped[str] = mapped_column(primary_key=True)
    grace_s: Mapped[float]
    why: Mapped[str | None]
    asked_at: Mapped[Moment]


class Host(Base):
    """A machine (boot id and cgroup) and what of it no command has reserved."""

    __tablename__ = "hosts"
    __table_args__ = (
        CheckConstraint("free_memory_bytes BETWEEN 0 AND memory_bytes", name="memory"),
        CheckConstraint("free_scratch_bytes BETWEEN 0 AND scratch_bytes", name="scratch"),
        CheckConstraint("free_slots BETWEEN 0 AND slots", name="slots"),
    )
    key: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    memory_bytes: Mapped[int]
    scratch_bytes: Mapped[int]
    slots: Mapped[int]
    free_memory_bytes: Mapped[int]
    free_scratch_bytes: Mapped[int]
    free_slots: Mapped[int]
    seen_at: Mapped[Moment]


class Reservation(Base):
    """A part of a machine held by one command for as long as it renews it; for a run, on one of its workers."""

    __tablename__ = "reservations"
    __table_args__ = (
        Index(None, "host_key"),
        CheckConstraint("memory_bytes >= 0 AND scratch_bytes >= 0 AND slots >= 0", name="sizes"),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True)
    host_key: Mapped[str] = mapped_column(ForeignKey("hosts.key", ondelete="CASCADE"))
    memory_bytes: Mapped[int]
    scratch_bytes: Mapped[int]
    slots: Mapped[int]
    owner_host: Mapped[str]
    owner_pid: Mapped[int]
    lock_path: Mapped[str]
    expires_at: Mapped[datetime]
    run_id: Mapped[UUID | None]
    worker: Mapped[str | None]


class Contender(Base):
    """A run that has recordings waiting for a worker, and its claim to a share of it."""

    __tablename__ = "contenders"
    __table_args__ = (
        Index(None, "host_key"),
        CheckConstraint("priority BETWEEN 1 AND 100", name="priority"),
        CheckConstraint("waiting_count >= 0 AND waiting_bytes >= 0 AND drained_bytes >= 0", name="sizes"),
    )
    run_id: Mapped[RunKey] = mapped_column(primary_key=True)
    worker: Mapped[str] = mapped_column(primary_key=True)
    host_key: Mapped[str] = mapped_column(ForeignKey("hosts.key", ondelete="CASCADE"))
    priority: Mapped[int]
    waiting_count: Mapped[int]
    waiting_bytes: Mapped[int]
    drained_bytes: Mapped[int]
    since: Mapped[Moment]
    expires_at: Mapped[datetime]
