"""Runs that were killed and that nobody takes over: their leases end, and the word that they owe is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db import leases
from db.datasets import NOTHING_PUBLISHED
from db.leases import Owner
from db.runs import Run, run_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["DeadLease", "dead_leases", "end_lease", "note_killed", "owing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLease:
    """A lease that ran out ``since_s`` seconds ago, and who held it."""

    dataset_pk: int
    owner: Owner
    since_s: float


def dead_leases(c: Connection) -> list[DeadLease]:
    """Every lease that has run out."""
    rows = c.execute(
        text("""
            SELECT dataset_pk, owner_host, owner_pid, lock_path,
                   CAST(extract(epoch FROM zarrmill_now() - expires_at) AS double precision) AS since_s
            FROM dataset_leases WHERE expires_at <= zarrmill_now() ORDER BY dataset_pk
        """)
    )
    return [
        DeadLease(
            dataset_pk=row.dataset_pk,
            owner=Owner(host=row.owner_host, pid=row.owner_pid, lock_path=row.lock_path),
            since_s=row.since_s,
        )
        for row in rows
    ]


def end_lease(c: Connection, *, dataset_pk: int, of: Owner | None = None) -> bool:
    """End a lease that has run out, or that is ``of`` an owner who is gone: its run is lost, what it converted is pending, its request waits again.

    False when it was renewed or taken over meanwhile.
    """
    c.execute(text("SELECT FROM datasets WHERE pk = :dataset FOR UPDATE"), {"dataset": dataset_pk}).one()
    holder = c.execute(
        text("""
            SELECT * FROM dataset_leases
            WHERE dataset_pk = :dataset AND (expires_at <= zarrmill_now() OR lock_path = CAST(:lock_path AS text)) FOR UPDATE
        """),
        {"dataset": dataset_pk, "lock_path": None if of is None else of.lock_path},
    ).one_or_none()
    if holder is None:
        return False
    leases.take_over(c, holder)
    c.execute(text("UPDATE datasets SET converting = false WHERE pk = :dataset"), {"dataset": dataset_pk})
    return True


def owing(c: Connection) -> list[Run]:
    """Runs that said they convert and never how that ended, of datasets that nobody works on or will: one a dataset."""
    rows = c.execute(
        text("""
            SELECT u.* FROM (
                SELECT DISTINCT ON (dataset_pk) dataset_pk, run_id, status FROM callbacks ORDER BY dataset_pk, pk DESC
            ) last JOIN runs u ON u.id = last.run_id
            WHERE last.status = 'converting' AND u.state <> 'running'
              AND NOT EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = last.dataset_pk)
              AND NOT EXISTS (SELECT FROM requests q WHERE q.dataset_pk = last.dataset_pk AND q.work = 'convert'
                              AND q.state IN ('waiting', 'running'))
            ORDER BY u.dataset_pk
        """)
    )
    return [run_of(row) for row in rows]


def note_killed(c: Connection, *, run: Run, error: str) -> bool:
    """Note that the run ended in nothing, as ``datasets.note_failed`` does; False when the dataset has had another run since, or is at work."""
    done = c.execute(
        text(f"""
            UPDATE datasets d SET {NOTHING_PUBLISHED}
            WHERE pk = :dataset AND last_run_number = :number
              AND NOT EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = d.pk)
        """),
        {"dataset": run.dataset_pk, "number": run.number, "error": error, "errors": 0, "deterministic": False},
    )
    return done.rowcount == 1
