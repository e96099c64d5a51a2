"""The edges by which a dataset is served no more, because somebody said so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.layout import events_key, index_key, manifest_key
from db import documents, policies
from db.runs import lost

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Run

__all__ = ["forget_served", "served_stores", "take_out"]

_HOLDS = "EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = :dataset AND l.run_id = :run)"


def served_stores(c: Connection, *, dataset: Dataset) -> list[str]:
    """Paths of the stores that are served, in order."""
    return list(
        c.scalars(text("SELECT zarr FROM stores WHERE dataset_pk = :dataset ORDER BY zarr"), {"dataset": dataset.pk})
    )


def take_out(c: Connection, *, run: Run) -> None:
    """Let the dataset take no part: out of the catalog and of every filter, and nothing of what waits is begun.

    Raises
    ------
    LostLease
        The run does not hold the dataset.
    """
    done = c.execute(
        text(f"UPDATE datasets SET active = false WHERE pk = :dataset AND {_HOLDS}"),
        {"dataset": run.dataset_pk, "run": run.id},
    )
    if done.rowcount != 1:
        raise lost(run)
    c.execute(
        text("""
            UPDATE requests SET state = 'refused', ended_at = zarrmill_now(), error = 'The dataset was withdrawn.'
            WHERE dataset_pk = :dataset AND state = 'waiting'
        """),
        {"dataset": run.dataset_pk},
    )


def forget_served(c: Connection, *, run: Run, dataset: Dataset) -> None:
    """Note that nothing of the dataset stands at its target any more. Recordings, verdicts and attempts stay known.

    Raises
    ------
    LostLease
        The run does not hold the dataset.
    """
    values = {"dataset": run.dataset_pk, "run": run.id}
    done = c.execute(
        text(f"""
            UPDATE datasets
            SET active = false, withdrawn_at = zarrmill_now(), status = NULL, failed_at = NULL, error = NULL, errors = NULL,
                deterministic = NULL, source_commit = NULL, index_etag = NULL, discovered_count = NULL, store_count = NULL,
                failure_count = NULL, pending_count = NULL, duration_s = NULL, converted_at = NULL, anonymous = false
            WHERE pk = :dataset AND {_HOLDS}
        """),
        values,
    )
    if done.rowcount != 1:
        raise lost(run)
    c.execute(text("DELETE FROM stores WHERE dataset_pk = :dataset"), values)
    c.execute(text("DELETE FROM intents WHERE dataset_pk = :dataset"), values)
    c.execute(
        text("""
            UPDATE recordings
            SET served_source = NULL,
                reason = CASE WHEN discovered AND due = 'none' THEN 'not_attempted' ELSE reason END,
                why = CASE WHEN discovered AND due = 'none' THEN 'lost' ELSE why END,
                due = CASE WHEN discovered AND due = 'none' THEN 'pending' ELSE due END
            WHERE dataset_pk = :dataset
        """),
        values,
    )
    for key in (index_key, manifest_key, events_key):
        documents.forget(c, target=dataset.target, key=key(dataset.dataset_id))
    policies.renew(c, dataset_pk=dataset.pk)
    # when it takes part again it is as new, so that the reconcile flow asks for it
    c.execute(
        text("""
            UPDATE policies SET done_version = NULL, options = NULL, engine = NULL, biosigio = NULL WHERE dataset_pk = :dataset
        """),
        values,
    )
