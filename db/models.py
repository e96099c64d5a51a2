"""The tables of state: what is due, what is served, who holds it, what happened; and all others by name.

A recording has two facts, kept apart. What is **due** stands in ``recordings``, what is **served** is a row of ``stores``. The two
deferred foreign keys between them keep ``recordings.served_source`` equal to the fingerprint of the served store, or null without
one, so that a CHECK on one row can say: a discovered recording with nothing due is served and true to its source. Coverage then
sums by construction.

Every CHECK that ties columns to a state is here; a row that breaks one is a defect of ours and is refused by the server.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Computed,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, Count, DatasetKey, Flag, Json, Key, Moment, Path, RunKey
from db.bookkeeping import (
    Callback,
    CallbackDelivery,
    Contender,
    Document,
    Host,
    Intent,
    KnownHeader,
    Reservation,
    RunReport,
    StoreVerdict,
    Sweep,
    Verdict,
)
from db.service_tables import Alarm, Approval, FlowRun, OperatorAction, Pause, Policy, Request
from db.tally_tables import Mark, Tally, TallyChange, TallyDay
from db.webhook_tables import Received

__all__ = [
    "Alarm",
    "Approval",
    "Attempt",
    "Base",
    "Callback",
    "CallbackDelivery",
    "Contender",
    "Dataset",
    "DatasetLease",
    "Document",
    "FlowRun",
    "Host",
    "Intent",
    "KnownHeader",
    "Mark",
    "OperatorAction",
    "Pause",
    "Policy",
    "Received",
    "Recording",
    "Request",
    "Reservation",
    "Run",
    "RunReport",
    "Store",
    "StoreVerdict",
    "Sweep",
    "Tally",
    "TallyChange",
    "TallyDay",
    "Verdict",
]


class Dataset(Base):
    """A dataset at one target: its facts, and what was last published of it."""

    __tablename__ = "datasets"
    __table_args__ = (
        UniqueConstraint("target", "dataset_id"),
        Index(None, "target", "source"),
        CheckConstraint("dataset_id ~ '^[a-z]{2}[0-9]{6}$'", name="id_shape"),
        CheckConstraint("visibility IN ('public', 'private')", name="visibility"),
        CheckConstraint("status IN ('ready', 'failed')", name="status"),
        CheckConstraint("source_commit ~ '^[0-9a-f]{40}$'", name="commit_shape"),
        CheckConstraint(
            "num_nulls(source_commit, index_etag, discovered_count, store_count, failure_count, pending_count, duration_s,"
            " converted_at) IN (0, 8)",
            name="published_whole",
        ),
        CheckConstraint("discovered_count = store_count + failure_count + pending_count", name="coverage"),
        CheckConstraint("status IS DISTINCT FROM 'ready' OR source_commit IS NOT NULL", name="ready_is_published"),
        CheckConstraint("(status IS NOT DISTINCT FROM 'failed') = (failed_at IS NOT NULL)", name="failed_has_moment"),
        CheckConstraint("visibility = 'public' OR NOT anonymous", name="private_is_not_anonymous"),
        CheckConstraint("withdrawn_at IS NULL OR (NOT active AND status IS NULL)", name="withdrawn_is_not_served"),
    )
    pk: Mapped[Key]
    dataset_id: Mapped[Path]
    target: Mapped[str]
    source: Mapped[str]
    visibility: Mapped[str] = mapped_column(server_default=text("'public'"))
    anonymous: Mapped[Flag]
    active: Mapped[bool] = mapped_column(server_default=text("true"))
    registered_at: Mapped[Moment]
    last_run_number: Mapped[Count]
    name: Mapped[str | None]
    doi: Mapped[str | None]
    license: Mapped[str | None]
    citation: Mapped[str | None]
    hed_version: Mapped[str | None]
    has_hed: Mapped[bool | None]
    modalities: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    tasks: Mapped[list[str]] = mapped_column(server_default=text("'{}'"))
    subject_count: Mapped[int | None]
    status: Mapped[str | None]
    converting: Mapped[Flag]
    source_commit: Mapped[str | None]
    index_etag: Mapped[str | None]
    discovered_count: Mapped[int | None]
    store_count: Mapped[int | None]
    failure_count: Mapped[int | None]
    pending_count: Mapped[int | None]
    duration_s: Mapped[float | None]
    converted_at: Mapped[datetime | None]
    errors: Mapped[int | None]
    deterministic: Mapped[bool | None]
    failed_at: Mapped[datetime | None]
    error: Mapped[str | None]
    annex: Mapped[str | None]
    upstream: Mapped[str | None]
    withdrawn_at: Mapped[datetime | None]


class Run(Base):
    """One command's work on one dataset. A higher number voids the attempts of every lower one."""

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("dataset_pk", "number"),
        Index("uq_runs_one_running", "dataset_pk", unique=True, postgresql_where=text("state = 'running'")),
        CheckConstraint("state IN ('running', 'completed', 'failed', 'cancelled', 'lost')", name="state"),
        CheckConstraint("(state = 'running') = (ended_at IS NULL)", name="running_has_no_end"),
        CheckConstraint(
            "mode IN ('auto', 'full', 'retry-pending', 'adopt', 'republish', 'reconcile', 'verify', 'withdraw')",
            name="mode",
        ),
        CheckConstraint("number > 0", name="number"),
        CheckConstraint(
            "pg_column_size(counts) < 65536 AND pg_column_size(asked) < 16384 AND length(source_commit) <= 250"
            " AND length(error) <= 4000",
            name="thin",
        ),
        Index(None, "started_at"),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True)
    dataset_pk: Mapped[DatasetKey]
    number: Mapped[int]
    mode: Mapped[str]
    state: Mapped[str] = mapped_column(server_default=text("'running'"))
    stage: Mapped[str | None]
    zarrmill: Mapped[str]
    options: Mapped[str]
    engine: Mapped[str]
    biosigio: Mapped[str]
    owner_host: Mapped[str]
    owner_pid: Mapped[int]
    started_at: Mapped[Moment]
    ended_at: Mapped[datetime | None]
    counts: Mapped[Json]
    error: Mapped[str | None]
    source_commit: Mapped[str | None]
    asked: Mapped[Json]
    flow_run_id: Mapped[UUID | None]


class DatasetLease(Base):
    """Who works on a dataset now; the row exists while somebody does."""

    __tablename__ = "dataset_leases"
    __table_args__ = (
        ForeignKeyConstraint(["dataset_pk", "run_number"], ["runs.dataset_pk", "runs.number"], ondelete="CASCADE"),
    )
    dataset_pk: Mapped[DatasetKey] = mapped_column(primary_key=True)
    run_id: Mapped[RunKey] = mapped_column(unique=True)
    run_number: Mapped[int]
    owner_host: Mapped[str]
    owner_pid: Mapped[int]
    lock_path: Mapped[str]
    expires_at: Mapped[datetime]


_NOTHING_CLAIMED = "num_nonnulls(attempt_id, run_number, worker, claimed_at, lease_expires_at)"


class Recording(Base):
    """A recording of a dataset and what is due for it."""

    __tablename__ = "recordings"
    __table_args__ = (
        UniqueConstraint("dataset_pk", "path"),
        UniqueConstraint("pk", "served_source"),
        Index(None, "dataset_pk", "zarr"),
        # questions over HTTP for one state or one code of a dataset, without looking at its other recordings
        Index("ix_recordings_failed", "dataset_pk", "code", "path", postgresql_where=text("due = 'failed'")),
        Index("ix_recordings_due", "dataset_pk", "path", postgresql_where=text("due IN ('pending', 'converting')")),
        Index("ix_recordings_claimed", "attempt_id", unique=True, postgresql_where=text("attempt_id IS NOT NULL")),
        ForeignKeyConstraint(
            ["pk", "served_source"],
            ["stores.recording_pk", "stores.source"],
            name="fk_recordings_served",
            deferrable=True,
            initially="DEFERRED",
            use_alter=True,
        ),
        CheckConstraint("due IN ('none', 'pending', 'converting', 'failed')", name="due"),
        CheckConstraint("discovered OR due = 'none'", name="absent_has_nothing_due"),
        CheckConstraint(
            "NOT discovered OR due <> 'none' OR (served_source IS NOT NULL AND served_source = source)",
            name="nothing_due_is_served",
        ),
        CheckConstraint("(due IN ('pending', 'converting')) = (reason IS NOT NULL)", name="pending_has_reason"),
        CheckConstraint("(due IN ('pending', 'converting')) = (why IS NOT NULL)", name="pending_has_why"),
        CheckConstraint(
            f"{_NOTHING_CLAIMED} = CASE due WHEN 'converting' THEN 5 ELSE 0 END", name="converting_has_lease"
        ),
        CheckConstraint(
            "num_nonnulls(code, verdict_options, verdict_engine, verdict_biosigio) = CASE due WHEN 'failed' THEN 4 ELSE 0 END",
            name="failed_has_code",
        ),
        CheckConstraint(
            "due = 'failed' OR (detail IS NULL AND needed_bytes IS NULL)", name="only_verdicts_have_detail"
        ),
        CheckConstraint("reason IN ('infra_failure', 'memory_budget', 'not_attempted')", name="reason"),
        CheckConstraint(
            "why IN ('new', 'source', 'options', 'engine', 'biosigio', 'lost', 'requested', 'retry')", name="why"
        ),
        CheckConstraint("attempts BETWEEN 0 AND 5 AND deaths >= 0", name="attempts"),
        CheckConstraint("attempts = 0 OR counted_run IS NOT NULL", name="counted_in_a_run"),
        CheckConstraint("attempts < 5 OR due = 'failed'", name="five_attempts_are_a_verdict"),
        CheckConstraint("attempts = 0 OR reason <> 'not_attempted'", name="not_attempted_has_no_attempts"),
        CheckConstraint("code <> 'retry_exhausted' OR attempts = 5", name="exhausted_after_five"),
        CheckConstraint(
            "due <> 'none' OR (attempts = 0 AND last_error IS NULL AND next_attempt_at IS NULL)",
            name="nothing_due_is_clean",
        ),
        CheckConstraint(
            "length(detail) <= 4000 AND length(last_error) <= 4000 AND octet_length(inputs) <= 4194304", name="thin"
        ),
    )
    pk: Mapped[Key]
    dataset_pk: Mapped[DatasetKey]
    path: Mapped[Path]
    zarr: Mapped[Path]
    format: Mapped[str]
    modality: Mapped[str | None]
    size_bytes: Mapped[int]
    discovered: Mapped[bool]
    source: Mapped[str]
    inputs: Mapped[bytes]
    served_source: Mapped[str | None]
    due: Mapped[str]
    why: Mapped[str | None]
    reason: Mapped[str | None]
    code: Mapped[str | None]
    detail: Mapped[str | None]
    needed_bytes: Mapped[int | None]
    verdict_options: Mapped[str | None]
    verdict_engine: Mapped[str | None]
    verdict_biosigio: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    counted_run: Mapped[int | None]
    deaths: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    last_error: Mapped[str | None]
    last_attempt_at: Mapped[datetime | None]
    next_attempt_at: Mapped[datetime | None]
    attempt_id: Mapped[UUID | None]
    run_number: Mapped[int | None]
    worker: Mapped[str | None]
    claimed_at: Mapped[datetime | None]
    lease_expires_at: Mapped[datetime | None]


class Store(Base):
    """A store that is served: the row exists if and only if its objects stand at the target."""

    __tablename__ = "stores"
    __table_args__ = (
        UniqueConstraint("dataset_pk", "zarr"),
        UniqueConstraint("recording_pk", "source"),
        ForeignKeyConstraint(
            ["recording_pk", "source"],
            ["recordings.pk", "recordings.served_source"],
            name="fk_stores_served",
            deferrable=True,
            initially="DEFERRED",
        ),
        CheckConstraint("events IS NOT NULL OR events_row_count = 0", name="no_events_no_rows"),
        CheckConstraint("events_row_count >= 0 AND size_bytes >= 0 AND duration_s >= 0", name="sizes"),
        CheckConstraint("octet_length(entry) > 2 AND octet_length(digests) > 0", name="not_empty"),
    )
    recording_pk: Mapped[int] = mapped_column(ForeignKey("recordings.pk", ondelete="CASCADE"), primary_key=True)
    dataset_pk: Mapped[DatasetKey]
    zarr: Mapped[Path]
    entry: Mapped[bytes]
    source: Mapped[str]
    options: Mapped[str]
    engine: Mapped[str]
    biosigio: Mapped[str]
    digests: Mapped[bytes]
    digest: Mapped[str] = mapped_column(Text, Computed("encode(sha256(digests), 'hex')", persisted=True))
    etags: Mapped[bytes | None]
    events: Mapped[bytes | None]
    events_row_count: Mapped[int]
    source_key: Mapped[str | None]
    size_bytes: Mapped[int]
    duration_s: Mapped[float]
    attempt_id: Mapped[UUID]
    updated_utc: Mapped[datetime]


class Attempt(Base):
    """One conversion of one recording: promised and measured memory, stages, and how it ended."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index("uq_attempts_one_counted", "recording_pk", "run_id", unique=True, postgresql_where=text("counted")),
        Index(None, "recording_pk", "ordinal"),
        Index(
            "ix_attempts_worker",
            "worker",
            postgresql_where=text("outcome IN ('converting', 'released', 'expired')"),
        ),
        Index(
            "ix_attempts_measured",
            "format",
            "route",
            "ended_at",
            postgresql_where=text("measured_bytes IS NOT NULL AND floor_bytes IS NOT NULL"),
        ),
        Index(None, "run_id"),
        # the newest of everything: what was done in the last hour, samples for plots
        Index(None, "ended_at", "id"),
        CheckConstraint(
            "outcome IN ('converting', 'done', 'failed', 'pending', 'released', 'expired', 'adopted')", name="outcome"
        ),
        CheckConstraint("(outcome = 'converting') = (ended_at IS NULL)", name="converting_has_no_end"),
        CheckConstraint("(outcome = 'failed') = (code IS NOT NULL)", name="failed_has_code"),
        CheckConstraint("(outcome = 'pending') = (reason IS NOT NULL)", name="pending_has_reason"),
        CheckConstraint("NOT counted OR outcome IN ('pending', 'expired')", name="counted"),
        CheckConstraint(
            "outcome = 'adopted' OR "
            "(projected_bytes > 0 AND permitted_bytes > 0 AND scratch_bytes >= 0 AND floor_bytes > 0)",
            name="memory_is_promised",
        ),
        CheckConstraint(
            "length(error) <= 4000 AND length(traceback) <= 16000 AND cardinality(notes) <= 20"
            " AND octet_length(quantisation) <= 524288",
            name="thin",
        ),
    )
    id: Mapped[UUID] = mapped_column(primary_key=True)
    ordinal: Mapped[int] = mapped_column(Identity(always=True))
    recording_pk: Mapped[int] = mapped_column(ForeignKey("recordings.pk", ondelete="CASCADE"))
    run_id: Mapped[RunKey]
    worker: Mapped[str]
    format: Mapped[str]
    route: Mapped[str]
    floor_bytes: Mapped[int | None]
    projected_bytes: Mapped[int]
    permitted_bytes: Mapped[int]
    scratch_bytes: Mapped[int]
    measured_bytes: Mapped[int | None]
    outcome: Mapped[str] = mapped_column(server_default=text("'converting'"))
    counted: Mapped[Flag]
    code: Mapped[str | None]
    reason: Mapped[str | None]
    error: Mapped[str | None]
    traceback: Mapped[str | None]
    started_at: Mapped[Moment]
    ended_at: Mapped[datetime | None]
    stage_seconds: Mapped[Json]
    stage_bytes: Mapped[Json]
    notes: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    quantisation: Mapped[bytes | None]
    why: Mapped[str | None]
