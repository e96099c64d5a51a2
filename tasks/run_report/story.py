"""Everything that is told of one run, asked of Postgres by a fixed number of statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from db import datasets, policies, run_facts, runs
from db.counts import Coverage
from db.coverage import coverage
from db.measurements import kinds_measured, measured_attempts
from db.run_list import head_before

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.measurements import KindMeasured, MeasuredAttempt
    from db.policies import Policy
    from db.run_list import RunHead

__all__ = ["MOST_DRAWN", "Story", "coverage_of", "story_of"]

MOST_DRAWN: Final = 50_000
"""Attempts that plots are drawn from, the newest; a run of more says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run with what it did, what changed, and how its dataset stands.

    Parameters
    ----------
    before
        The last run of the dataset before it that published.
    numbers
        Coverage as of the run's end; for the newest run that published nothing, or is under way, as of now. None otherwise.
    standings, waiting, policy
        Of the dataset now; empty and None where a later run has begun.
    attempts
        What plots are drawn from.
    """

    head: RunHead
    before: RunHead | None
    numbers: Coverage | None
    whys: tuple[run_facts.DueWhy, ...]
    endings: tuple[run_facts.Ending, ...]
    changes: tuple[run_facts.Change, ...]
    stages: tuple[run_facts.Stage, ...]
    slowest: tuple[run_facts.Outlier, ...]
    largest: tuple[run_facts.Outlier, ...]
    kinds: tuple[KindMeasured, ...]
    standings: tuple[run_facts.Standing, ...]
    waiting: tuple[run_facts.Waiting, ...]
    policy: Policy | None
    told: tuple[run_facts.Told, ...]
    attempts: tuple[MeasuredAttempt, ...]

    @property
    def attempt_count(self) -> int:
        """Attempts of the run."""
        return sum(one.attempts for one in self.endings)

    @property
    def wall_s(self) -> float:
        """Wall time of all attempts together, from claim to end."""
        return sum(one.seconds for one in self.endings)

    @property
    def lost_s(self) -> float:
        """Wall time of the attempts that made no store and found no verdict: what deaths and deferrals cost."""
        return sum(one.seconds for one in self.endings if one.outcome in ("pending", "expired", "released"))


def story_of(c: Connection, head: RunHead, *, drawn: int = MOST_DRAWN) -> Story:
    """The story of a run, as far as Postgres knows it now."""
    dataset = datasets.by_pk(c, pk=head.dataset_pk)
    assert dataset is not None, "a run has a dataset"
    run = runs.find_run(c, dataset=dataset, number=head.number)
    now = head.is_newest
    return Story(
        head=head,
        before=head_before(c, head),
        numbers=coverage_of(head) or (coverage(c, dataset=dataset) if now else None),
        whys=run_facts.due_whys(c, run_id=head.id),
        endings=run_facts.endings(c, run_id=head.id),
        changes=run_facts.changes(c, run_id=head.id),
        stages=run_facts.stages(c, run_id=head.id),
        slowest=run_facts.slowest(c, run_id=head.id),
        largest=run_facts.largest(c, run_id=head.id),
        kinds=kinds_measured(c, target=head.target, dataset=dataset, run=run),
        standings=run_facts.standings(c, dataset_pk=head.dataset_pk) if now else (),
        waiting=run_facts.waiting(c, dataset_pk=head.dataset_pk) if now else (),
        policy=policies.find(c, dataset=dataset) if now else None,
        told=run_facts.told(c, run_id=head.id),
        attempts=measured_attempts(c, target=head.target, dataset=dataset, run=run, limit=drawn) if drawn else (),
    )


def coverage_of(head: RunHead) -> Coverage | None:
    """Coverage as of the run's end; None for a run that published nothing or has not ended."""
    names = ("discovered", "stores", "failures", "pending")
    if not all(isinstance(head.counts.get(name), int) for name in names):
        return None
    return Coverage(**{name: head.counts[name] for name in names})
