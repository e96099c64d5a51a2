"""The outbox of callbacks: written in the transaction of what they tell, delivered at least once, in order per dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from sqlalchemy import text

from db.runs import lost

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.runs import Run

__all__ = ["Delivery", "delivered", "due_deliveries", "enqueue", "failed_delivery"]

_TAKEN_S = 120
"""How long a delivery is left to the command that took it; more than a request may last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A callback to be delivered now. ``tries`` counts this one."""

    pk: int
    dataset_id: str
    run_id: UUID
    status: str
    body: bytes
    tries: int


_DROP_STALE = text("""
    DELETE FROM callbacks k
    WHERE k.status = 'converting' AND k.delivered_at IS NULL
      AND (k.taken_until IS NULL OR k.taken_until <= (SELECT zarrmill_now()))
      AND EXISTS (SELECT FROM callbacks t WHERE t.run_id = k.run_id AND t.status <> 'converting')
""")


def enqueue(c: Connection, *, run: Run, status: Literal["converting", "ready", "failed"], body: bytes) -> bool:
    """Put a callback of this run into the outbox; False when an equal status is there already.

    A terminal status drops the run's ``converting`` that was not delivered: it would only be stale. One that is being
    delivered at this moment stays until that is decided, and is told first.

    Raises
    ------
    LostLease
        The run already told another terminal status, or ``converting`` comes after the terminal one.
    """
    added = c.execute(
        text("""
            INSERT INTO callbacks (dataset_pk, run_id, status, body)
            SELECT :dataset, :run, CAST(:status AS text), CAST(:body AS bytea)
            WHERE :status <> 'converting'
               OR NOT EXISTS (SELECT FROM callbacks WHERE run_id = :run AND status <> 'converting')
            ON CONFLICT DO NOTHING
        """),
        {"dataset": run.dataset_pk, "run": run.id, "status": status, "body": body},
    )
    if added.rowcount == 1:
        c.execute(_DROP_STALE)
        return True
    if (
        c.scalar(
            text("SELECT 1 FROM callbacks WHERE run_id = :run AND status = :status"), {"run": run.id, "status": status}
        )
        is None
    ):
        raise lost(run)
    return False


def due_deliveries(c: Connection, *, limit: int = 20) -> list[Delivery]:
    """The oldest waiting callback of each dataset whose time has come, taken: nobody else is given them for two minutes.

    Commit before delivering. Then say ``delivered`` or ``failed_delivery``, and ask again: the next of a dataset comes
    only after the one before it.
    """
    c.execute(_DROP_STALE)
    rows = c.execute(
        text("""
            WITH first AS (
                SELECT DISTINCT ON (dataset_pk) pk FROM callbacks WHERE delivered_at IS NULL ORDER BY dataset_pk, pk
            ), taken AS (
                SELECT k.pk FROM callbacks k JOIN first USING (pk)
                WHERE k.delivered_at IS NULL AND k.next_try_at <= (SELECT zarrmill_now())
                  AND (k.taken_until IS NULL OR k.taken_until <= (SELECT zarrmill_now()))
                ORDER BY k.pk LIMIT :limit FOR UPDATE OF k SKIP LOCKED
            ), moved AS (
                UPDATE callbacks k SET tries = tries + 1, taken_until = zarrmill_now() + make_interval(secs => :taken_s)
                FROM taken WHERE k.pk = taken.pk
                RETURNING k.pk, k.dataset_pk, k.run_id, k.status, k.body, k.tries
            )
            SELECT m.pk, d.dataset_id, m.run_id, m.status, m.body, m.tries
            FROM moved m JOIN datasets d ON d.pk = m.dataset_pk ORDER BY m.pk
        """),
        {"limit": limit, "taken_s": _TAKEN_S},
    )
    return [Delivery(**row._mapping) for row in rows]


def delivered(c: Connection, *, pk: int) -> None:
    """Note that a callback was accepted; its body is dropped. Noted before is fine."""
    c.execute(
        text("""
            UPDATE callbacks SET delivered_at = zarrmill_now(), body = NULL, last_error = NULL, taken_until = NULL
            WHERE pk = :pk AND delivered_at IS NULL
        """),
        {"pk": pk},
    )


def failed_delivery(c: Connection, *, pk: int, error: str) -> None:
    """Note that a callback was not accepted; it is due again after 1, 2, 4 … minutes, at most 6 hours."""
    c.execute(
        text("""
            UPDATE callbacks
            SET last_error = left(:error, 4000), taken_until = NULL,
                next_try_at = zarrmill_now() + LEAST(interval '6 hours', interval '1 minute' * power(2, LEAST(tries, 12) - 1))
            WHERE pk = :pk AND delivered_at IS NULL
        """),
        {"pk": pk, "error": error},
    )
