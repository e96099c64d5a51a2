"""The dataset lease: at most one run works on a dataset, and a higher run number voids every lower one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import text

from contract.errors import Busy
from contract.times import utc_stamp
from db import requests
from db.expiry import give_back_all, take_back_all
from db.runs import Run, lost, run_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Mode, Versions

__all__ = ["LEASE_S", "Owner", "acquire", "holder", "is_held", "is_live", "release", "renew", "take_over"]

LEASE_S = 60
"""How long a dataset stays held by a run that is not heard of, when its owner's flock cannot be tried from here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that holds something: its machine, its pid, and the file it keeps locked while it lives."""

    host: str
    pid: int
    lock_path: str


def acquire(
    c: Connection,
    *,
    dataset: Dataset,
    owner: Owner,
    mode: Mode,
    versions: Versions,
    owner_is_gone: Callable[[Owner], bool],
) -> Run:
    """The run that now holds the dataset, with the next number.

    A lease that ran out, or whose owner is gone, is taken over: its run is marked lost and what it was converting is
    pending again (``db.attempts.take_back_all``). ``owner_is_gone`` is asked inside the transaction, so it must be quick.

    Raises
    ------
    Busy
        Another run holds the dataset; the sentence names it.
    """
    # every command on this dataset queues here; then the lease, so that no claim under the old number can slip by
    c.execute(text("SELECT FROM datasets WHERE pk = :dataset FOR UPDATE"), {"dataset": dataset.pk}).one()
    holder = c.execute(
        text("""
            SELECT l.*, u.started_at, l.expires_at <= zarrmill_now() AS ran_out
            FROM dataset_leases l JOIN runs u ON u.id = l.run_id WHERE l.dataset_pk = :dataset FOR UPDATE OF l
        """),
        {"dataset": dataset.pk},
    ).one_or_none()
    if holder is not None:
        held_by = Owner(host=holder.owner_host, pid=holder.owner_pid, lock_path=holder.lock_path)
        if not holder.ran_out and not owner_is_gone(held_by):
            raise _busy(dataset, holder)
        take_over(c, holder)
    return _begin(c, dataset=dataset, owner=owner, mode=mode, versions=versions)


def _busy(dataset: Dataset, holder: Any) -> Busy:
    return Busy(
        f"run {holder.run_number} of {dataset.dataset_id} is under way since {utc_stamp(holder.started_at)} "
        f"(pid {holder.owner_pid} on {holder.owner_host}); wait for it or stop it",
        detail=str(holder.run_id),
    )


def take_over(c: Connection, holder: Any) -> None:
    """End the lease in this row: its run is lost, what it converted is pending again, and its request waits."""
    take_back_all(c, dataset_pk=holder.dataset_pk)
    c.execute(
        text("UPDATE runs SET state = 'lost', ended_at = zarrmill_now() WHERE id = :run AND state = 'running'"),
        {"run": holder.run_id},
    )
    requests.give_back(c, run_id=holder.run_id)
    c.execute(text("DELETE FROM dataset_leases WHERE dataset_pk = :dataset"), {"dataset": holder.dataset_pk})


def _begin(c: Connection, *, dataset: Dataset, owner: Owner, mode: Mode, versions: Versions) -> Run:
    values = {
        "id": uuid4(),
        "dataset": dataset.pk,
        "mode": mode,
        "zarrmill": versions.zarrmill,
        "options": versions.options,
        "engine": versions.engine,
        "biosigio": versions.biosigio,
        "host": owner.host,
        "pid": owner.pid,
        "lock_path": owner.lock_path,
        "lease_s": LEASE_S,
    }
    row = c.execute(
        text("""
            WITH numbered AS (
                UPDATE datasets SET last_run_number = last_run_number + 1, converting = false WHERE pk = :dataset
                RETURNING pk, last_run_number
            )
            INSERT INTO runs (id, dataset_pk, number, mode, zarrmill, options, engine, biosigio, owner_host, owner_pid)
            SELECT CAST(:id AS uuid), pk, last_run_number, :mode, :zarrmill, :options, :engine, :biosigio, :host,
                   CAST(:pid AS bigint)
            FROM numbered RETURNING *
        """),
        values,
    ).one()
    c.execute(
        text("""
            INSERT INTO dataset_leases (dataset_pk, run_id, run_number, owner_host, owner_pid, lock_path, expires_at)
            VALUES (:dataset, :id, :number, :host, :pid, :lock_path, zarrmill_now() + make_interval(secs => :lease_s))
        """),
        {**values, "number": row.number},
    )
    return run_of(row)


def is_held(c: Connection, *, dataset: Dataset) -> bool:
    """Whether a run holds the dataset, or one that was killed has left it held."""
    held = text("SELECT EXISTS (SELECT FROM dataset_leases WHERE dataset_pk = :dataset)")
    return bool(c.scalar(held, {"dataset": dataset.pk}))


def is_live(c: Connection, *, dataset: Dataset) -> bool:
    """Whether a run holds the dataset and was heard of within the time of its lease."""
    live = text(
        "SELECT EXISTS (SELECT FROM dataset_leases WHERE dataset_pk = :dataset AND expires_at > zarrmill_now())"
    )
    return bool(c.scalar(live, {"dataset": dataset.pk}))


def holder(c: Connection, *, dataset: Dataset) -> Owner | None:
    """Who holds the dataset, living or not; None when nobody does."""
    row = c.execute(
        text("SELECT owner_host, owner_pid, lock_path FROM dataset_leases WHERE dataset_pk = :dataset"),
        {"dataset": dataset.pk},
    ).one_or_none()
    return None if row is None else Owner(host=row.owner_host, pid=row.owner_pid, lock_path=row.lock_path)


def renew(c: Connection, *, run: Run) -> None:
    """Hold the dataset for another ``LEASE_S`` seconds.

    A lease that ran out and that nobody took is renewed: the run number has not moved, so nothing else has begun. A
    laptop that slept over its lease goes on where it was.

    Raises
    ------
    LostLease
        Another run holds the dataset, or this one was released.
    """
    done = c.execute(
        text("""
            UPDATE dataset_leases SET expires_at = zarrmill_now() + make_interval(secs => :lease_s)
            WHERE dataset_pk = :dataset AND run_id = :run
        """),
        {"dataset": run.dataset_pk, "run": run.id, "lease_s": LEASE_S},
    )
    if done.rowcount != 1:
        raise lost(run)


def release(c: Connection, *, run: Run) -> None:
    """Let the dataset go. Call it after ``runs.finish``; what the run still converts is released, uncounted.

    Released before is success.

    Raises
    ------
    LostLease
        Another run holds the dataset.
    """
    done = c.execute(
        text("DELETE FROM dataset_leases WHERE dataset_pk = :dataset AND run_id = :run"),
        {"dataset": run.dataset_pk, "run": run.id},
    )
    if done.rowcount == 1:
        give_back_all(c, run=run)
        c.execute(
            text("""
                UPDATE runs SET state = 'failed', ended_at = zarrmill_now(), error = 'The run ended without a word.'
                WHERE id = :run AND state = 'running'
            """),
            {"run": run.id},
        )
        c.execute(text("UPDATE datasets SET converting = false WHERE pk = :dataset"), {"dataset": run.dataset_pk})
    elif c.scalar(text("SELECT state = 'lost' FROM runs WHERE id = :run"), {"run": run.id}):
        raise lost(run)
