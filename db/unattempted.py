"""Edges of a pending recording that nobody attempts: a verdict from its header, and a recording that fits no worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.errors import LostLease
from db.edges import VERDICT_OF_RUN

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

    from contract.codes import FailureCode
    from db.runs import Run

__all__ = ["defer", "refuse"]

_HOLDS_DATASET = """
    held AS MATERIALIZED (
        SELECT l.dataset_pk, u.options, u.engine, u.biosigio FROM dataset_leases l JOIN runs u ON u.id = l.run_id
        WHERE l.run_id = :run AND l.expires_at > zarrmill_now() FOR SHARE OF l
    )
"""


def refuse(
    c: Connection,
    *,
    run: Run,
    recording_id: int,
    code: FailureCode,
    detail: str | None,
    needed_bytes: int | None = None,
) -> None:
    """A verdict without an attempt: pending → failed. For recording_too_large and what the header shows.

    Raises
    ------
    LostLease
        The recording is not pending and has not this verdict, or the run does not hold the dataset.
    """
    moved = c.execute(
        text(f"""
            WITH {_HOLDS_DATASET}
            UPDATE recordings r
            SET due = 'failed', why = NULL, reason = NULL, code = :code, detail = left(:detail, 4000), needed_bytes = :needed,
                {VERDICT_OF_RUN}, next_attempt_at = NULL
            FROM held u
            WHERE r.pk = :recording AND r.dataset_pk = u.dataset_pk
              AND (r.due = 'pending' OR (r.due = 'failed' AND r.code = :code))
        """),
        {"run": run.id, "recording": recording_id, "code": code.value, "detail": detail, "needed": needed_bytes},
    )
    if moved.rowcount != 1:
        raise LostLease("this recording is not pending", detail=f"recording {recording_id}, run {run.number}")


def defer(c: Connection, *, run: Run, recording_ids: Collection[int], error: str) -> int:
    """How many pending recordings now say memory_budget because they fit no worker; never counted.

    ``error`` says what they would need. One that carries counted attempts keeps its reason and its last real error.
    """
    moved = c.execute(
        text(f"""
            WITH {_HOLDS_DATASET}
            UPDATE recordings r SET reason = 'memory_budget', last_error = left(:error, 4000)
            FROM held
            WHERE r.pk = ANY(CAST(:recordings AS bigint[])) AND r.dataset_pk = held.dataset_pk AND r.due = 'pending'
              AND r.attempts = 0 AND (r.reason, r.last_error) IS DISTINCT FROM ('memory_budget', left(:error, 4000))
        """),
        {"run": run.id, "recordings": list(recording_ids), "error": error},
    )
    return moved.rowcount
