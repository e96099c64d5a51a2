"""Runs that share workers: what each has waiting there, what each holds, and so how much each may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from db.runs import Run

__all__ = ["CONTENDS_S", "Claim", "Contender", "Holding", "claim_shares", "contenders", "holdings", "withdraw_claims"]

CONTENDS_S = 30
"""How long a claim stands by a run that is not heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one run has waiting for one worker.

    Parameters
    ----------
    waiting_count, waiting_bytes
        Recordings that wait, and the memory of all of them together.
    drained_bytes
        Memory of the large recording that the worker is drained for; 0 when it is not.
    """

    worker: str
    host: str
    priority: int
    waiting_count: int
    waiting_bytes: int
    drained_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A claim as the others see it. ``since``: when the run began to contend for the worker, or to drain it."""

    run_id: UUID
    claim: Claim
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one run has reserved of one host on one worker."""

    run_id: UUID
    host: str
    worker: str
    memory_bytes: int
    slots: int


def claim_shares(c: Connection, *, run: Run, claims: Collection[Claim]) -> None:
    """Say what ``run`` has waiting for each worker that it can use, for ``CONTENDS_S`` seconds; replaces what it said before."""
    c.execute(
        text("DELETE FROM contenders WHERE run_id = :run AND NOT worker = ANY(CAST(:workers AS text[]))"),
        {"run": run.id, "workers": [claim.worker for claim in claims]},
    )
    if not claims:
        return
    c.execute(
        text("""
            INSERT INTO contenders (run_id, worker, host_key, priority, waiting_count, waiting_bytes, drained_bytes, expires_at)
            SELECT :run, n.worker, n.host, n.priority, n.many, n.bytes, n.drained, zarrmill_now() + make_interval(secs => :lease_s)
            FROM unnest(CAST(:workers AS text[]), CAST(:hosts AS text[]), CAST(:priorities AS bigint[]), CAST(:many AS bigint[]),
                        CAST(:bytes AS bigint[]), CAST(:drained AS bigint[])) AS n (worker, host, priority, many, bytes, drained)
            JOIN hosts h ON h.key = n.host
            ON CONFLICT (run_id, worker) DO UPDATE
            SET host_key = excluded.host_key, priority = excluded.priority, waiting_count = excluded.waiting_count,
                waiting_bytes = excluded.waiting_bytes, drained_bytes = excluded.drained_bytes, expires_at = excluded.expires_at,
                since = CASE WHEN (excluded.drained_bytes > 0) = (contenders.drained_bytes > 0) THEN contenders.since
                             ELSE zarrmill_now() END
        """),
        {
            "run": run.id,
            "workers": [claim.worker for claim in claims],
            "hosts": [claim.host for claim in claims],
            "priorities": [claim.priority for claim in claims],
            "many": [claim.waiting_count for claim in claims],
            "bytes": [claim.waiting_bytes for claim in claims],
            "drained": [claim.drained_bytes for claim in claims],
            "lease_s": CONTENDS_S,
        },
    )


def withdraw_claims(c: Connection, *, run: Run) -> None:
    """Say that ``run`` has nothing waiting any more."""
    claim_shares(c, run=run, claims=())


def contenders(c: Connection, *, hosts: Collection[str]) -> tuple[Contender, ...]:
    """Every claim to a worker of these hosts that stands, the oldest first."""
    rows = c.execute(
        text("""
            SELECT run_id, worker, host_key, priority, waiting_count, waiting_bytes, drained_bytes, since
            FROM contenders WHERE host_key = ANY(CAST(:hosts AS text[])) AND expires_at > zarrmill_now()
            ORDER BY since, run_id, worker
        """),
        {"hosts": list(hosts)},
    )
    return tuple(
        Contender(
            run_id=row.run_id,
            since=row.since,
            claim=Claim(
                worker=row.worker,
                host=row.host_key,
                priority=row.priority,
                waiting_count=row.waiting_count,
                waiting_bytes=row.waiting_bytes,
                drained_bytes=row.drained_bytes,
            ),
        )
        for row in rows
    )


def holdings(c: Connection, *, hosts: Collection[str]) -> tuple[Holding, ...]:
    """What each run has reserved of these hosts, by worker."""
    rows = c.execute(
        text("""
            SELECT run_id, host_key, worker, sum(memory_bytes)::bigint AS memory, sum(slots)::bigint AS slots
            FROM reservations
            WHERE host_key = ANY(CAST(:hosts AS text[])) AND run_id IS NOT NULL AND worker IS NOT NULL
            GROUP BY run_id, host_key, worker ORDER BY run_id, host_key, worker
        """),
        {"hosts": list(hosts)},
    )
    return tuple(
        Holding(run_id=row.run_id, host=row.host_key, worker=row.worker, memory_bytes=row.memory, slots=row.slots)
        for row in rows
    )
