"""Attempts that end without a word of their own: a lost worker, a run that is taken over, a run that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from db.attempts import NOTHING_MEASURED, Ended, ended
from db.edges import AWAY, BACK_TO_PENDING

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.runs import Run

__all__ = ["expire", "give_back_all", "take_back_all"]

_EXPIRE = text(
    BACK_TO_PENDING.format(held=AWAY.format(which="lease_expires_at <= zarrmill_now() AND run_number = :number"))
)
_TAKE_BACK = text(BACK_TO_PENDING.format(held=AWAY.format(which="true")))
_GIVE_BACK = text(
    BACK_TO_PENDING.format(
        held="""
            SELECT r.pk, r.dataset_pk, r.attempt_id, r.run_number AS number, r.counted_run, r.attempts, 'released' AS outcome,
                   false AS counts, CAST(NULL AS text) AS reason, CAST(NULL AS text) AS error, 'The run ended.' AS note,
                   false AS died
            FROM recordings r
            WHERE r.dataset_pk = :dataset AND r.due = 'converting' AND r.run_number = :number ORDER BY r.pk FOR UPDATE
        """
    )
)


def expire(c: Connection, *, run: Run) -> list[Ended]:
    """Attempts of this run whose lease ran out, given back: converting → pending.

    One that was alone on its worker is suspected: the first such death is only remembered, a later one is counted as
    infra_failure. Neighbours that die together are innocent.
    """
    values = {"dataset": run.dataset_pk, "number": run.number, **NOTHING_MEASURED.values()}
    return [ended(row) for row in c.execute(_EXPIRE, values)]


def take_back_all(c: Connection, *, dataset_pk: int) -> list[Ended]:
    """Everything that is converting in a dataset that is being taken over, by the rule of ``expire``."""
    rows = c.execute(_TAKE_BACK, {"dataset": dataset_pk, **NOTHING_MEASURED.values()})
    return [ended(row) for row in rows]


def give_back_all(c: Connection, *, run: Run) -> list[Ended]:
    """Everything that a run which ends in order still converts, released."""
    values = {"dataset": run.dataset_pk, "number": run.number, **NOTHING_MEASURED.values()}
    return [ended(row) for row in c.execute(_GIVE_BACK, values)]
