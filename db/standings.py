"""Every dataset as the reconcile flow looks at it: the dataset, its policy, and whether anybody is at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from db import datasets, requests
from db.policies import Policy, find, policy_of

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.requests import Request

__all__ = ["DatasetStanding", "Outlook", "clock", "outlook", "standings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStanding:
    """One dataset at one moment.

    Parameters
    ----------
    paused
        It, or everything, is paused.
    at_work
        A request for its conversion waits or runs, or a run holds it.
    index_etag
        Of its index as it was last written at the target; None when none was.
    rebuilding
        Columns of currency that the last request for it rebuilt on.
    """

    dataset: Dataset
    policy: Policy
    paused: bool
    at_work: bool
    index_etag: str | None
    rebuilding: tuple[str, ...]


_STANDINGS = text("""
    SELECT d.pk,
           EXISTS (SELECT FROM pauses x WHERE x.dataset_pk IS NULL OR x.dataset_pk = d.pk) AS paused,
           EXISTS (SELECT FROM requests q WHERE q.dataset_pk = d.pk AND q.work = 'convert' AND q.state IN ('waiting', 'running'))
           OR EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = d.pk AND l.expires_at > zarrmill_now()) AS at_work,
           (SELECT k.etag FROM documents k WHERE k.target = d.target AND k.key = d.dataset_id || '/zarr/index.json') AS document_etag,
           (SELECT q.rebuild_on FROM requests q WHERE q.dataset_pk = d.pk AND q.work = 'convert' ORDER BY q.asked_at DESC, q.pk DESC LIMIT 1)
               AS rebuilding
    FROM datasets d JOIN policies p ON p.dataset_pk = d.pk ORDER BY d.dataset_id, d.target
""")


def standings(c: Connection) -> list[DatasetStanding]:
    """Every registered dataset, inactive ones too, by id and target; a fixed number of queries."""
    known = {dataset.pk: dataset for dataset in datasets.list_datasets(c)}
    held = {row.dataset_pk: policy_of(row) for row in c.execute(text("SELECT * FROM policies"))}
    return [
        DatasetStanding(
            dataset=known[row.pk],
            policy=held[row.pk],
            paused=row.paused,
            at_work=row.at_work,
            index_etag=row.document_etag,
            rebuilding=tuple(row.rebuilding or ()),
        )
        for row in c.execute(_STANDINGS)
        if row.pk in known and row.pk in held  # one that was registered between the queries is seen next time
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a dataset waits for: its policy, whether it or everything is paused, and the request that waits or runs."""

    policy: Policy
    paused: bool
    request: Request | None
    everything_paused: bool = False


def outlook(c: Connection, *, dataset: Dataset) -> Outlook:
    """What one dataset waits for."""
    held = text("SELECT EXISTS (SELECT FROM pauses WHERE dataset_pk IS NULL OR dataset_pk = :dataset)")
    everything = text("SELECT EXISTS (SELECT FROM pauses WHERE dataset_pk IS NULL)")
    newest = requests.latest(c, dataset=dataset)
    return Outlook(
        policy=find(c, dataset=dataset),
        paused=bool(c.scalar(held, {"dataset": dataset.pk})),
        everything_paused=bool(c.scalar(everything)),
        request=newest if newest is not None and newest.state in {"waiting", "running"} else None,
    )


def clock(c: Connection) -> datetime:
    """The one clock of leases and policy."""
    now: datetime = c.execute(text("SELECT zarrmill_now()")).scalar_one()
    return now
