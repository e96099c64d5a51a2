"""How far the run of a dataset is at this moment, and what workers have of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["AtWork", "Progress", "at_work", "progress"]

_LATELY = "15 minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One moment of a dataset.

    Parameters
    ----------
    as_of
        The moment, by the database's clock.
    run_number, run_mode, run_state, stage, started_at, ended_at
        Of the newest run; all None before the first.
    is_live
        Whether a run holds the dataset and was heard of within the time of its lease.
    waiting, running
        Requests for a conversion of it.
    at_work
        Recordings that a worker was given, served ones too: some may wait there for a slot.
    due
        Recordings that convert or may be begun now, served ones too.
    made, ended
        Attempts of the run that ended in a store, and that ended at all.
    lately, lately_s
        Of those that ended in a store, the ones of the last quarter of an hour, and how many seconds of it the run has gone on.
    """

    as_of: datetime
    run_number: int | None
    run_mode: str | None
    run_state: str | None
    stage: str | None
    started_at: datetime | None
    ended_at: datetime | None
    is_live: bool
    waiting: bool
    running: bool
    at_work: int
    due: int
    made: int
    ended: int
    lately: int
    lately_s: float

    @property
    def is_moving(self) -> bool:
        """Whether something is under way or waits to be begun, so that it is worth looking again."""
        return self.is_live or self.waiting or self.running or self.at_work > 0

    @property
    def left_s(self) -> tuple[float, float] | None:
        """Seconds until what is due has been tried, at the least and at the most; None while no conversion of the run ended."""
        if not self.is_live or self.started_at is None or not self.due or not self.made:
            return None
        whole = self.made / max((self.as_of - self.started_at).total_seconds(), 1.0)
        paces = [whole] + ([self.lately / max(self.lately_s, 1.0)] if self.lately else [])
        # as many again as ever ended at once may still be slow ones, so the range is wider than the two paces
        return self.due / (1.25 * max(paces)), 1.25 * self.due / min(paces)


_PROGRESS = text(f"""
    WITH u AS (SELECT * FROM runs WHERE dataset_pk = :dataset ORDER BY number DESC LIMIT 1),
    counted AS (
        SELECT count(*) FILTER (WHERE r.due = 'converting') AS at_work,
               count(*) FILTER (WHERE r.due = 'converting'
                   OR (r.due = 'pending' AND COALESCE(r.next_attempt_at <= zarrmill_now(), true))) AS due
        FROM recordings r WHERE r.dataset_pk = :dataset AND r.due IN ('pending', 'converting')
    ), tried AS (
        SELECT count(*) FILTER (WHERE a.outcome = 'done') AS made, count(a.ended_at) AS ended,
               count(*) FILTER (WHERE a.outcome = 'done' AND a.ended_at > zarrmill_now() - interval '{_LATELY}') AS lately
        FROM u JOIN attempts a ON a.run_id = u.id
    ), asked AS (
        SELECT COALESCE(bool_or(state = 'waiting'), false) AS waiting, COALESCE(bool_or(state = 'running'), false) AS running
        FROM requests WHERE dataset_pk = :dataset AND work = 'convert' AND state IN ('waiting', 'running')
    )
    SELECT zarrmill_now() AS as_of, u.number AS run_number, u.mode AS run_mode, u.state AS run_state, u.stage, u.started_at,
           u.ended_at, asked.*, counted.*, tried.*,
           EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = :dataset AND l.expires_at > zarrmill_now()) AS is_live,
           COALESCE(EXTRACT(epoch FROM LEAST(zarrmill_now() - u.started_at, interval '{_LATELY}')), 0)::float8 AS lately_s
    FROM counted CROSS JOIN tried CROSS JOIN asked LEFT JOIN u ON true
""")


def progress(c: Connection, *, dataset_pk: int) -> Progress:
    """How far a dataset is, by one statement."""
    return Progress(**c.execute(_PROGRESS, {"dataset": dataset_pk}).one()._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A recording that a worker was given: which, since when, and what it may use."""

    path: str
    size_bytes: int
    worker: str
    started_at: datetime
    projected_bytes: int
    permitted_bytes: int


def at_work(c: Connection, *, dataset_pk: int, limit: int = 20) -> list[AtWork]:
    """What workers have, the longest first."""
    rows = c.execute(
        text("""
            SELECT r.path, r.size_bytes, a.worker, a.started_at, a.projected_bytes, a.permitted_bytes
            FROM recordings r JOIN attempts a ON a.id = r.attempt_id
            WHERE r.dataset_pk = :dataset AND r.due = 'converting' AND r.due IN ('pending', 'converting')
            ORDER BY a.started_at, r.path LIMIT :limit
        """),
        {"dataset": dataset_pk, "limit": limit},
    )
    return [AtWork(**row._mapping) for row in rows]
