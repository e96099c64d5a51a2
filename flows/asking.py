"""Somebody asks for a conversion of a registered dataset: checked, then a request in Postgres, or a part of one that stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.layout import is_dataset_id
from contract.times import utc_stamp
from db import datasets, leases, operators, pauses, runs
from flows.trigger import trigger

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.requests import Asked
    from flows.operations import Operator
    from flows.request import Mode

__all__ = ["Triggered", "ask_as_operator", "ask_for_conversion", "registered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    """What became of a trigger.

    Parameters
    ----------
    request_pk
        The request that stands for it.
    coalesced
        Whether that request waited before, and now stands for this trigger too.
    at_work
        Whether a run holds the dataset now; the request follows it.
    sentence
        The answer, for people.
    held
        Why nothing takes it up now, and the way out; None where nothing is known that holds it.
    """

    request_pk: int
    dataset_id: str
    target: str
    coalesced: bool
    at_work: bool
    sentence: str
    held: str | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether the request is this trigger's alone and nothing runs before it."""
        return not self.coalesced and not self.at_work


def registered(c: Connection, dataset_id: str, *, target: str | None = None) -> Dataset:
    """The dataset of this id, at the target if one is named.

    Raises
    ------
    Refused
        There is none, or several targets have one.
    """
    if not is_dataset_id(dataset_id):
        raise Refused(f"{dataset_id!r} is no dataset's id: two small letters and six digits, such as xx000001")
    found = [one for one in datasets.list_datasets(c, target=target) if one.dataset_id == dataset_id]
    if not found:
        at = "" if target is None else f" at {target}"
        raise Refused(f"{dataset_id} is not registered{at}; `zarrmill convert` or `zarrmill register` makes it known")
    if len(found) > 1:
        targets = ", ".join(sorted(one.target for one in found))
        raise Refused(f"{dataset_id} is served at several targets; name one of {targets}")
    return found[0]


def ask_for_conversion(
    engine: Engine,
    dataset_id: str,
    *,
    mode: Mode = "auto",
    commit: str | None = None,
    target: str | None = None,
    asked_by: str,
    why: str | None = None,
) -> Triggered:
    """Ask for a conversion. Of one dataset at most one request waits, so that triggers never queue up.

    Raises
    ------
    Refused
        The dataset is not known here, takes no part, or mode or commit cannot be used. Nothing was begun.
    """
    with engine.connect() as c:
        dataset = registered(c, dataset_id, target=target)
        at_work = leases.is_live(c, dataset=dataset)
    asked = trigger(engine, dataset, asked_by=asked_by, mode=mode, commit=commit, detail=why)
    with engine.connect() as c:
        sentence = _sentence(c, dataset, asked, at_work=at_work)
        held = _held(c, dataset)
    return Triggered(
        request_pk=asked.request.pk,
        dataset_id=dataset_id,
        target=dataset.target,
        coalesced=asked.coalesced,
        at_work=at_work,
        sentence=sentence,
        held=held,
    )


def _held(c: Connection, dataset: Dataset) -> str | None:
    for one in pauses.current(c):
        if one.dataset_id is None:
            return "everything is paused, so it waits; `zarrmill resume --execute` ends that"
        if (one.dataset_id, one.target) == (dataset.dataset_id, dataset.target):
            return f"{one.dataset_id} is paused, so it waits; `zarrmill resume {one.dataset_id} --execute` ends that"
    return None


def ask_as_operator(
    engine: Engine, dataset_id: str, operator: Operator, *, mode: Mode, commit: str | None, target: str | None
) -> Triggered:
    """``ask_for_conversion`` by somebody who acts, with a row of history.

    Raises
    ------
    Refused
        As there.
    """
    done = ask_for_conversion(
        engine, dataset_id, mode=mode, commit=commit, target=target, asked_by=operator.name, why=operator.why
    )
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="trigger",
            executed=True,
            subject=dataset_id,
            parameters={"mode": mode, "commit": commit, "target": done.target},
            counts={"request": done.request_pk, "coalesced": int(done.coalesced)},
        )
    return done


def _sentence(c: Connection, dataset: Dataset, asked: Asked, *, at_work: bool) -> str:
    standing = asked.request
    if at_work:
        last = runs.last_runs(c, dataset=dataset, limit=1)
        since = f" since {utc_stamp(last[0].run.started_at)}" if last else ""
        number = f"run {last[0].run.number}" if last else "a run"
        return (
            f"{number} of {dataset.dataset_id} is at work{since}; request {standing.pk} follows it, "
            f"and stands for every trigger until then{_at(asked)}"
        )
    if asked.coalesced:
        return f"request {standing.pk} for {dataset.dataset_id} waits since {utc_stamp(standing.asked_at)} and stands for this trigger too{_at(asked)}"
    return f"request {standing.pk} for {dataset.dataset_id} waits for its turn{_at(asked)}"


def _at(asked: Asked) -> str:
    """Which commit the request reads, so that nobody takes it for another."""
    commit, former = asked.request.commit, asked.former_commit
    if commit is None:
        return ""
    return f"; it reads commit {commit}" + (f", no longer {former}" if former not in (None, commit) else "")
