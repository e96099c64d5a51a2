"""Runs: one command's work on one dataset, numbered upwards per dataset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import text

from contract.errors import LostLease

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = [
    "EndState",
    "Mode",
    "Run",
    "RunRecord",
    "Versions",
    "find_run",
    "finish",
    "last_runs",
    "lost",
    "note_asked",
    "note_flow_run",
    "note_stage",
    "run_of",
]

Mode = Literal["auto", "full", "retry-pending", "adopt", "republish", "reconcile", "verify", "withdraw"]
EndState = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What a run converts with: the zarrmill release and the columns of a fingerprint that no recording decides."""

    zarrmill: str
    options: str
    engine: str
    biosigio: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that holds, or held, a dataset."""

    id: UUID
    dataset_pk: int
    number: int
    mode: Mode
    started_at: datetime
    versions: Versions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as history tells it. ``state`` is running, completed, failed, cancelled, or lost (taken over)."""

    run: Run
    state: str
    stage: str | None
    owner_host: str
    owner_pid: int
    ended_at: datetime | None
    counts: Mapping[str, Any]
    error: str | None


def run_of(row: Any) -> Run:
    """The run in a row of ``runs``."""
    versions = Versions(zarrmill=row.zarrmill, options=row.options, engine=row.engine, biosigio=row.biosigio)
    return Run(
        id=row.id,
        dataset_pk=row.dataset_pk,
        number=row.number,
        mode=row.mode,
        started_at=row.started_at,
        versions=versions,
    )


def lost(run: Run) -> LostLease:
    """The error for a run that another one has replaced."""
    return LostLease("another run has taken over this dataset", detail=f"run {run.number} of dataset {run.dataset_pk}")


def note_stage(c: Connection, *, run: Run, stage: str) -> None:
    """Note what the run is doing, for ``status``.

    Raises
    ------
    LostLease
        The run has ended or was taken over.
    """
    done = c.execute(
        text("UPDATE runs SET stage = :stage WHERE id = :id AND state = 'running'"), {"id": run.id, "stage": stage}
    )
    if done.rowcount != 1:
        raise lost(run)


def note_asked(c: Connection, *, run: Run, source_commit: str | None, asked: Mapping[str, Any]) -> None:
    """Note at which commit the run reads its source, and what it was asked, a small JSON object."""
    c.execute(
        text("UPDATE runs SET source_commit = left(:commit, 250), asked = CAST(:asked AS jsonb) WHERE id = :id"),
        {"id": run.id, "commit": source_commit, "asked": json.dumps(dict(asked))},
    )


def note_flow_run(c: Connection, *, run: Run, flow_run_id: UUID) -> None:
    """Note which of Prefect's flow runs records the run."""
    c.execute(text("UPDATE runs SET flow_run_id = :flow_run WHERE id = :id"), {"id": run.id, "flow_run": flow_run_id})


def finish(
    c: Connection, *, run: Run, state: EndState, counts: Mapping[str, Any] | None = None, error: str | None = None
) -> None:
    """End the run. Ended in the same state before is success.

    ``counts`` is a small JSON object of totals, at most 64 KiB; lists belong into documents.

    Raises
    ------
    LostLease
        The run was taken over, or ended in another state.
    """
    done = c.execute(
        text("""
            UPDATE runs SET state = :state, ended_at = zarrmill_now(), counts = CAST(:counts AS jsonb), error = left(:error, 4000)
            WHERE id = :id AND state = 'running'
        """),
        {"id": run.id, "state": state, "counts": json.dumps(dict(counts or {})), "error": error},
    )
    if done.rowcount == 1:
        return
    if c.scalar(text("SELECT state FROM runs WHERE id = :id"), {"id": run.id}) != state:
        raise lost(run)


def find_run(c: Connection, *, dataset: Dataset, number: int) -> Run | None:
    """The run of this number; None for one that never was."""
    row = c.execute(
        text("SELECT * FROM runs WHERE dataset_pk = :dataset AND number = :number"),
        {"dataset": dataset.pk, "number": number},
    ).one_or_none()
    return None if row is None else run_of(row)


def last_runs(c: Connection, *, dataset: Dataset, limit: int = 10) -> list[RunRecord]:
    """The newest runs of the dataset, newest first."""
    rows = c.execute(
        text("SELECT * FROM runs WHERE dataset_pk = :dataset ORDER BY number DESC LIMIT :limit"),
        {"dataset": dataset.pk, "limit": limit},
    )
    return [
        RunRecord(
            run=run_of(row),
            state=row.state,
            stage=row.stage,
            owner_host=row.owner_host,
            owner_pid=row.owner_pid,
            ended_at=row.ended_at,
            counts=row.counts,
            error=row.error,
        )
        for row in rows
    ]
