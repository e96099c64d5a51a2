"""What holds a dataset or waits for it: the run at work, the request that waits, the pauses."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from contract.times import utc_stamp
from db import leases, pauses, requests, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from db.datasets import Dataset
    from db.pauses import Paused
    from db.requests import Request
    from db.runs import Run

__all__ = ["Situation", "situation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One moment of a dataset.

    Parameters
    ----------
    run
        The run that holds it and was heard of within the time of its lease.
    waiting
        The request for its conversion that waits.
    paused, all_paused
        Its own pause, and that of everything.
    """

    run: Run | None
    waiting: Request | None
    paused: Paused | None
    all_paused: Paused | None

    def begins(self) -> Iterator[str]:
        """When what is asked for now is begun."""
        if self.run is not None:
            yield f"Run {self.run.number} is at work since {utc_stamp(self.run.started_at)}; what you ask for follows it."
        if self.waiting is not None:
            yield (
                f"Request {self.waiting.pk} ({self.waiting.mode}) of {self.waiting.asked_by} waits since "
                f"{utc_stamp(self.waiting.asked_at)}; this becomes a part of it."
            )
        elif self.run is None:
            yield "The service begins when it is its turn."

    def cautions(self) -> Iterator[str]:
        """What keeps it from being begun."""
        for what, one in (("It", self.paused), ("Everything", self.all_paused)):
            if one is not None:
                yield f"{what} is paused since {utc_stamp(one.paused_at)} by {one.paused_by}, so the request waits until that is ended."

    def digest(self, more: str) -> str:
        """Over all of this and ``more``."""
        parts = (
            self.run and self.run.number,
            self.waiting and (self.waiting.pk, self.waiting.mode, self.waiting.commit),
            self.paused and self.paused.paused_at,
            self.all_paused and self.all_paused.paused_at,
            more,
        )
        return sha256(repr(parts).encode()).hexdigest()


def situation(c: Connection, *, dataset: Dataset) -> Situation:
    """What holds a dataset or waits for it now."""
    newest = requests.latest(c, dataset=dataset)
    standing = pauses.current(c)
    key = (dataset.dataset_id, dataset.target)
    run = runs.last_runs(c, dataset=dataset, limit=1) if leases.is_live(c, dataset=dataset) else []
    return Situation(
        run=run[0].run if run else None,
        waiting=newest if newest is not None and newest.state == "waiting" else None,
        paused=next((one for one in standing if (one.dataset_id, one.target) == key), None),
        all_paused=next((one for one in standing if one.dataset_id is None), None),
    )
