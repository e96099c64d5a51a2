"""How attempts ended, for a flow that could not hear it from their worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.codes import FailureCode, PendingReason
from db.edges import OTHERS_ON_ITS_WORKER

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from sqlalchemy import Connection

__all__ = ["AttemptEnd", "ends", "was_alone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended, as its history has it. ``outcome``: done, failed, pending, released or expired."""

    outcome: str
    code: FailureCode | None
    reason: PendingReason | None
    counted: bool
    error: str | None
    measured_bytes: int | None


def ends(c: Connection, *, attempt_ids: Collection[UUID]) -> dict[UUID, AttemptEnd]:
    """How those of these attempts ended that have ended."""
    rows = c.execute(
        text("""
            SELECT id, outcome, code, reason, counted, error, measured_bytes FROM attempts
            WHERE id = ANY(CAST(:ids AS uuid[])) AND outcome <> 'converting'
        """),
        {"ids": list(attempt_ids)},
    )
    return {
        row.id: AttemptEnd(
            outcome=row.outcome,
            code=row.code and FailureCode(row.code),
            reason=row.reason and PendingReason(row.reason),
            counted=row.counted,
            error=row.error,
            measured_bytes=row.measured_bytes,
        )
        for row in rows
    }


def was_alone(c: Connection, *, attempt_id: UUID) -> bool:
    """Whether nothing of any other run was on the worker process of this attempt when that was last heard of."""
    others = text(f"SELECT EXISTS ({OTHERS_ON_ITS_WORKER.format(attempt=':attempt')})")
    return not c.scalar(others, {"attempt": attempt_id})
