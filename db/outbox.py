"""The outbox of callbacks: written in the transaction of what they tell, delivered at least once, in order per dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from sqlalchemy import text

from db.runs import lost

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

    from db.runs import Run

__all__ = ["Delivery", "Owed", "close_told", "delivered", "due_deliveries", "enqueue", "failed_delivery", "owed"]

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


_STALE = """
    k.status = 'converting' AND k.delivered_at IS NULL
    AND NOT EXISTS (SELECT FROM callback_deliveries d WHERE d.callback_pk = k.pk AND d.taken_until > (SELECT zarrmill_now()))
    AND EXISTS (SELECT FROM callbacks t WHERE t.run_id = k.run_id AND t.status <> 'converting')
"""
_HEARD = "EXISTS (SELECT FROM callback_deliveries d WHERE d.callback_pk = k.pk AND d.delivered_at IS NOT NULL)"
_DROP_STALE = text(f"DELETE FROM callbacks k WHERE {_STALE} AND NOT {_HEARD}")
_CLOSE_STALE = text(f"UPDATE callbacks k SET delivered_at = zarrmill_now(), body = NULL WHERE {_STALE}")
"""One that some address has heard stays, as history."""


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
        _drop_stale(c)
        return True
    if (
        c.scalar(
            text("SELECT 1 FROM callbacks WHERE run_id = :run AND status = :status"), {"run": run.id, "status": status}
        )
        is None
    ):
        raise lost(run)
    return False


def _drop_stale(c: Connection) -> None:
    c.execute(_DROP_STALE)
    c.execute(_CLOSE_STALE)


def due_deliveries(c: Connection, *, endpoint: str, limit: int = 20) -> list[Delivery]:
    """For an address, the oldest callback of each dataset that it has not accepted and whose time has come.

    They are taken: nobody else is given them for two minutes. Commit before delivering. Then say ``delivered`` or
    ``failed_delivery``, and ask again: the next of a dataset comes only after the one before it.
    """
    _drop_stale(c)
    rows = c.execute(
        text("""
            WITH first AS (
                SELECT DISTINCT ON (k.dataset_pk) k.pk, d.next_try_at, d.taken_until
                FROM callbacks k LEFT JOIN callback_deliveries d ON d.callback_pk = k.pk AND d.endpoint = :endpoint
                WHERE k.delivered_at IS NULL AND d.delivered_at IS NULL ORDER BY k.dataset_pk, k.pk
            ), due AS (
                SELECT k.pk FROM callbacks k JOIN first f USING (pk)
                WHERE k.delivered_at IS NULL AND (f.next_try_at IS NULL OR f.next_try_at <= (SELECT zarrmill_now()))
                  AND (f.taken_until IS NULL OR f.taken_until <= (SELECT zarrmill_now()))
                ORDER BY k.pk LIMIT :limit FOR UPDATE OF k SKIP LOCKED
            ), moved AS (
                -- the row may have been taken since this statement began: the conflict looks at it as it is now
                INSERT INTO callback_deliveries AS d (callback_pk, endpoint, tries, taken_until)
                SELECT pk, :endpoint, 1, zarrmill_now() + make_interval(secs => :taken_s) FROM due
                ON CONFLICT (callback_pk, endpoint) DO UPDATE SET tries = d.tries + 1, taken_until = excluded.taken_until
                WHERE d.delivered_at IS NULL AND d.next_try_at <= zarrmill_now()
                  AND (d.taken_until IS NULL OR d.taken_until <= zarrmill_now())
                RETURNING d.callback_pk, d.tries
            )
            SELECT k.pk, s.dataset_id, k.run_id, k.status, k.body, m.tries
            FROM moved m JOIN callbacks k ON k.pk = m.callback_pk JOIN datasets s ON s.pk = k.dataset_pk ORDER BY k.pk
        """),
        {"endpoint": endpoint, "limit": limit, "taken_s": _TAKEN_S},
    )
    return [Delivery(**row._mapping) for row in rows]


def delivered(c: Connection, *, pk: int, endpoint: str) -> None:
    """Note that an address has accepted a callback. Noted before is fine."""
    c.execute(
        text("""
            UPDATE callback_deliveries SET delivered_at = zarrmill_now(), last_error = NULL, taken_until = NULL
            WHERE callback_pk = :pk AND endpoint = :endpoint AND delivered_at IS NULL
        """),
        {"pk": pk, "endpoint": endpoint},
    )


def failed_delivery(c: Connection, *, pk: int, endpoint: str, error: str) -> None:
    """Note that an address did not accept a callback; it is due again after 1, 2, 4 … minutes, at most 6 hours.

    A quarter more or less by chance, so that what failed together does not come again together.
    """
    c.execute(
        text("""
            UPDATE callback_deliveries
            SET last_error = left(:error, 4000), taken_until = NULL,
                next_try_at = zarrmill_now() + (0.75 + random() * 0.5)
                    * LEAST(interval '6 hours', interval '1 minute' * power(2, LEAST(tries, 12) - 1))
            WHERE callback_pk = :pk AND endpoint = :endpoint AND delivered_at IS NULL
        """),
        {"pk": pk, "endpoint": endpoint, "error": error},
    )


def close_told(c: Connection, *, endpoints: Collection[str]) -> int:
    """Close the callbacks that every one of these addresses has accepted; their bodies are dropped. How many.

    With no address every callback is told: one that is set later is not told old news.
    """
    return c.execute(
        text("""
            UPDATE callbacks k SET delivered_at = zarrmill_now(), body = NULL
            WHERE k.delivered_at IS NULL AND NOT EXISTS (
                SELECT FROM unnest(CAST(:endpoints AS text[])) AS e(endpoint)
                WHERE NOT EXISTS (SELECT FROM callback_deliveries d
                                  WHERE d.callback_pk = k.pk AND d.endpoint = e.endpoint AND d.delivered_at IS NOT NULL))
        """),
        {"endpoints": list(endpoints)},
    ).rowcount


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A callback that an address has not accepted. ``endpoint`` None: it was not tried anywhere yet."""

    status: str
    run_number: int
    created_at: datetime
    endpoint: str | None
    tries: int
    next_try_at: datetime | None
    last_error: str | None


def owed(c: Connection, *, dataset_pk: int, limit: int = 20) -> list[Owed]:
    """What of a dataset is still to be told, the oldest first."""
    rows = c.execute(
        text("""
            SELECT k.status, u.number AS run_number, k.created_at, d.endpoint, COALESCE(d.tries, 0) AS tries, d.next_try_at, d.last_error
            FROM callbacks k JOIN runs u ON u.id = k.run_id
            LEFT JOIN callback_deliveries d ON d.callback_pk = k.pk AND d.delivered_at IS NULL
            WHERE k.dataset_pk = :dataset AND k.delivered_at IS NULL ORDER BY k.pk, d.endpoint LIMIT :limit
        """),
        {"dataset": dataset_pk, "limit": limit},
    )
    return [Owed(**row._mapping) for row in rows]
