"""The tables of the service: what was asked for, how each dataset's policy stands, who did what, what is wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, DatasetKey, Flag, Json, Key, Moment

__all__ = ["Alarm", "Approval", "FlowRun", "OperatorAction", "Pause", "Policy", "Request"]


class Request(Base):
    """Work on a dataset that somebody asked for. Of each kind of work at most one waits and at most one runs per dataset."""

    __tablename__ = "requests"
    __table_args__ = (
        Index("uq_requests_one_waiting", "dataset_pk", "work", unique=True, postgresql_where=text("state = 'waiting'")),
        Index("uq_requests_one_running", "dataset_pk", "work", unique=True, postgresql_where=text("state = 'running'")),
        Index("ix_requests_run", "run_id", postgresql_where=text("run_id IS NOT NULL")),
        Index(None, "dataset_pk", "asked_at"),
        CheckConstraint("work IN ('convert', 'verify')", name="work"),
        CheckConstraint("mode IN ('auto', 'retry-pending', 'full', 'verify')", name="mode"),
        CheckConstraint("(mode = 'verify') = (work = 'verify')", name="mode_of_work"),
        CheckConstraint(
            "why IN ('new', 'version', 'retry_round', 'not_attempted', 'backoff', 'engine', 'requested', 'index')",
            name="why",
        ),
        CheckConstraint("state IN ('waiting', 'running', 'done', 'failed', 'refused')", name="state"),
        CheckConstraint("asked_by <> '' AND length(asked_by) <= 200", name="asked_by"),
        CheckConstraint("state <> 'waiting' OR (run_id IS NULL AND started_at IS NULL)", name="waiting_has_no_run"),
        CheckConstraint("state <> 'running' OR started_at IS NOT NULL", name="running_has_begun"),
        CheckConstraint("(state IN ('waiting', 'running')) = (ended_at IS NULL)", name="ended_has_moment"),
        CheckConstraint("(state IN ('failed', 'refused')) = (error IS NOT NULL)", name="trouble_has_error"),
        CheckConstraint("coalesced >= 0 AND lost_runs BETWEEN 0 AND 5", name="counts"),
        CheckConstraint("rebuild_on <@ ARRAY['options', 'engine', 'biosigio']", name="rebuild_on"),
        CheckConstraint(
            "length(detail) <= 1000 AND length(error) <= 4000 AND length(commit) <= 250 AND length(version) <= 250",
            name="thin",
        ),
    )
    pk: Mapped[Key]
    dataset_pk: Mapped[DatasetKey]
    work: Mapped[str]
    mode: Mapped[str]
    commit: Mapped[str | None]
    rebuild_on: Mapped[list[str]] = mapped_column(server_default=text("'{options,engine}'"))
    why: Mapped[str]
    detail: Mapped[str | None]
    asked_by: Mapped[str]
    version: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default=text("'waiting'"))
    asked_at: Mapped[Moment]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("runs.id", ondelete="SET NULL"))
    coalesced: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    lost_runs: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    error: Mapped[str | None]
    start_after: Mapped[datetime | None]


class FlowRun(Base):
    """A flow run of Prefect's that asked for a request; ``closed_at`` once Prefect knows its end."""

    __tablename__ = "flow_runs"
    __table_args__ = (
        Index(None, "request_pk"),
        Index("ix_flow_runs_unclosed", "noted_at", postgresql_where=text("closed_at IS NULL")),
    )
    flow_run_id: Mapped[UUID] = mapped_column(primary_key=True)
    request_pk: Mapped[int] = mapped_column(ForeignKey("requests.pk", ondelete="CASCADE"))
    noted_at: Mapped[Moment]
    closed_at: Mapped[datetime | None]


class Policy(Base):
    """When a dataset is worked on again by itself, and of what version and converter it last was."""

    __tablename__ = "policies"
    __table_args__ = (
        Index("ix_policies_next_at", "next_at", postgresql_where=text("next_at IS NOT NULL")),
        CheckConstraint(
            "state IN ('clean', 'round', 'soon', 'exhausted', 'backoff', 'given_up', 'terminal')", name="state"
        ),
        CheckConstraint("(state IN ('round', 'soon', 'backoff')) = (next_at IS NOT NULL)", name="waiting_has_moment"),
        CheckConstraint("retry_round BETWEEN 0 AND 5 AND infra_failures BETWEEN 0 AND 5", name="counts"),
        CheckConstraint("state <> 'round' OR retry_round > 0", name="round_has_number"),
        CheckConstraint("state <> 'exhausted' OR retry_round = 5", name="exhausted_after_five"),
        CheckConstraint(
            "state NOT IN ('clean', 'terminal') OR (retry_round = 0 AND infra_failures = 0)", name="settled_is_reset"
        ),
        CheckConstraint("state NOT IN ('round', 'soon', 'exhausted') OR infra_failures = 0", name="ran_is_no_trouble"),
        CheckConstraint("state <> 'backoff' OR infra_failures BETWEEN 1 AND 4", name="backoff_has_failures"),
        CheckConstraint("state <> 'given_up' OR infra_failures = 5", name="given_up_after_five"),
        CheckConstraint("num_nulls(options, engine, biosigio) IN (0, 3)", name="stamps_together"),
        CheckConstraint("num_nulls(unreadable_since, unreadable) IN (0, 2)", name="unreadable_has_moment"),
        CheckConstraint(
            "length(unreadable) <= 4000 AND length(seen_version) <= 250 AND length(done_version) <= 250", name="thin"
        ),
    )
    dataset_pk: Mapped[DatasetKey] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(server_default=text("'clean'"))
    retry_round: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    next_at: Mapped[datetime | None]
    infra_failures: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    seen_version: Mapped[str | None]
    seen_at: Mapped[datetime | None]
    done_version: Mapped[str | None]
    options: Mapped[str | None]
    engine: Mapped[str | None]
    biosigio: Mapped[str | None]
    unreadable_since: Mapped[datetime | None]
    unreadable: Mapped[str | None]
    reconciled_at: Mapped[datetime | None]


class Pause(Base):
    """A dataset, or with no dataset everything, that starts no work by itself until it is resumed."""

    __tablename__ = "pauses"
    __table_args__ = (
        UniqueConstraint("dataset_pk", postgresql_nulls_not_distinct=True),
        CheckConstraint("paused_by <> '' AND length(paused_by) <= 200 AND length(why) <= 1000", name="thin"),
    )
    pk: Mapped[Key]
    dataset_pk: Mapped[int | None] = mapped_column(ForeignKey("datasets.pk", ondelete="CASCADE"))
    paused_at: Mapped[Moment]
    paused_by: Mapped[str]
    why: Mapped[str | None]


class OperatorAction(Base):
    """What somebody did, or asked what it would do."""

    __tablename__ = "operator_actions"
    __table_args__ = (
        Index(None, "acted_at"),
        # the newest on one dataset
        Index(None, "subject", "pk"),
        CheckConstraint("verb <> '' AND acted_by <> ''", name="named"),
        CheckConstraint(
            "length(acted_by) <= 200 AND length(why) <= 1000 AND length(subject) <= 250"
            " AND pg_column_size(parameters) < 16384 AND pg_column_size(counts) < 16384",
            name="thin",
        ),
    )
    pk: Mapped[Key]
    acted_at: Mapped[Moment]
    acted_by: Mapped[str]
    why: Mapped[str | None]
    verb: Mapped[str]
    subject: Mapped[str | None]
    parameters: Mapped[Json]
    executed: Mapped[Flag]
    counts: Mapped[Json]


class Approval(Base):
    """An operator's word that every dataset made with another value of a column may be made anew."""

    __tablename__ = "approvals"
    __table_args__ = (
        UniqueConstraint("rebuild_column", "value"),
        CheckConstraint("rebuild_column IN ('options', 'engine', 'biosigio')", name="rebuild_column"),
        CheckConstraint("value <> '' AND approved_by <> '' AND length(why) <= 1000", name="named"),
    )
    pk: Mapped[Key]
    rebuild_column: Mapped[str]
    value: Mapped[str]
    approved_at: Mapped[Moment]
    approved_by: Mapped[str]
    why: Mapped[str | None]
    preview: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))


class Alarm(Base):
    """Something that somebody should look at, from when it began to when it was over; each end is told once."""

    __tablename__ = "alarms"
    __table_args__ = (
        Index("uq_alarms_one_open", "kind", "subject", unique=True, postgresql_where=text("ended_at IS NULL")),
        Index(
            "ix_alarms_untold",
            "pk",
            postgresql_where=text("told_began IS NULL OR (ended_at IS NOT NULL AND told_ended IS NULL)"),
        ),
        CheckConstraint("kind <> '' AND length(subject) <= 250 AND length(detail) <= 4000", name="thin"),
        CheckConstraint("ended_at IS NULL OR ended_at >= began_at", name="ends_after_it_began"),
        CheckConstraint(
            "told_ended IS NULL OR (ended_at IS NOT NULL AND told_began IS NOT NULL)", name="told_in_order"
        ),
    )
    pk: Mapped[Key]
    kind: Mapped[str]
    subject: Mapped[str] = mapped_column(server_default=text("''"))
    detail: Mapped[str | None]
    began_at: Mapped[Moment]
    ended_at: Mapped[datetime | None]
    told_began: Mapped[datetime | None]
    told_ended: Mapped[datetime | None]
