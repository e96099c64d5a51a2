"""What an operator's action on a dataset would do, in sentences and numbers, bound to how everything stands at that moment.

Whoever carries an action out gives the digest of the proposal that was seen. When what it would concern stands otherwise by then,
nothing is done, and the proposal as it is now is told instead.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, FailureCode, PendingReason
from contract.errors import Refused
from contract.times import utc_stamp
from db import operators
from db.chosen import chosen_recordings
from db.cost import Toll, toll
from db.requeue import Chosen, named
from flows.intentions import VERBS, ChangedMeanwhile, Intention, Proposal
from flows.operations import (
    Operator,
    OtherStanding,
    approve_engine,
    check_standing_change,
    preview_engine,
    requeue_recordings,
    set_pause,
    set_standing,
)
from flows.situation import Situation, situation
from flows.trigger import checked_request, trigger
from flows.withdraw import withdraw
from infra.sizes import decimal_bytes
from infra.storage import open_target
from infra.wording import plural
from tasks.publish.objects import listed_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.requests import RequestMode
    from infra.settings import Settings

__all__ = ["carry_out", "propose"]

_HISTORY_NAMES: Final = {"standing": "dataset set", "engine": "engine approve"}
_COLUMNS: Final = frozenset({"options", "engine"})


def propose(settings: Settings, engine: Engine, dataset: Dataset, meant: Intention, operator: Operator) -> Proposal:
    """What the action would do; that somebody asked is noted in the history.

    Raises
    ------
    Refused
        It cannot be done at all, and the sentence says why.
    """
    found = _proposal(settings, engine, dataset, meant)
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb=_HISTORY_NAMES.get(meant.verb, meant.verb),
            executed=False,
            subject=dataset.dataset_id,
            parameters=meant.parameters(),
            counts={"recordings": found.cost.recordings} if found.cost else {},
        )
    return found


def carry_out(
    settings: Settings, engine: Engine, dataset: Dataset, meant: Intention, operator: Operator, *, seen: str
) -> None:
    """Do what the proposal with the digest ``seen`` said.

    Raises
    ------
    ChangedMeanwhile
        It would be something else by now; nothing was done.
    Refused, Busy
        It cannot be done.
    """
    now = _proposal(settings, engine, dataset, meant)
    if now.digest != seen or not now.changes:
        raise ChangedMeanwhile(now)
    match meant.verb:
        case "trigger" | "verify":
            _ask(engine, dataset, meant, operator)
        case "requeue":
            with suppress(OtherStanding):
                requeue_recordings(engine, _chosen(dataset, meant), operator, execute=True, seen=now.standing)
                return
            raise ChangedMeanwhile(_proposal(settings, engine, dataset, meant))
        case "pause" | "resume":
            set_pause(engine, dataset, operator, paused=meant.verb == "pause", execute=True)
        case "standing":
            set_standing(engine, dataset, operator, visibility=meant.visibility, active=meant.active)
        case "withdraw":
            withdraw(settings, engine, dataset, operator, execute=True)
        case _:
            approve_engine(engine, operator, columns=_COLUMNS, execute=True)


def _proposal(settings: Settings, engine: Engine, dataset: Dataset, meant: Intention) -> Proposal:
    if meant.verb == "engine":
        found = _of_engine(engine)
    elif meant.verb == "withdraw":
        found = _of_withdrawal(settings, engine, dataset)
    else:
        if meant.verb in {"trigger", "verify"}:
            checked_request(dataset, mode=_mode(meant), commit=meant.commit)
        with engine.begin() as c:
            standing = situation(c, dataset=dataset)
            match meant.verb:
                case "trigger":
                    found = _of_trigger(c, dataset, meant, standing)
                case "verify":
                    found = _of_verification(c, dataset, standing)
                case "requeue":
                    found = _of_requeue(c, dataset, meant, standing)
                case "pause" | "resume":
                    found = _of_pause(dataset, standing, pausing=meant.verb == "pause")
                case "standing":
                    found = _of_standing(dataset, meant)
                case other:
                    raise Refused(f"{other[:40]!r} is none of {', '.join(VERBS)}")
    bound = json.dumps([dataset.pk, meant.verb, meant.parameters(), found.standing], sort_keys=True)
    return replace(found, digest=sha256(bound.encode()).hexdigest())


def _mode(meant: Intention) -> RequestMode:
    return "verify" if meant.verb == "verify" else meant.mode


def _ask(engine: Engine, dataset: Dataset, meant: Intention, operator: Operator) -> None:
    asked = trigger(
        engine, dataset, asked_by=operator.name, mode=_mode(meant), commit=meant.commit, detail=operator.why
    )
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb=meant.verb,
            executed=True,
            subject=dataset.dataset_id,
            parameters={**meant.parameters(), "target": dataset.target},
            counts={"request": asked.request.pk, "coalesced": int(asked.coalesced)},
        )


_MODES: Final = {
    "auto": "A run converts what is due. What the source has changed since the last run is found when the run looks at it, so it may be more.",
    "retry-pending": "A run tries again what waits, without waiting for its next attempt.",
    "full": "A run converts every recording anew. What is served stays served until its new store takes its place.",
}


def _of_trigger(c: Connection, dataset: Dataset, meant: Intention, standing: Situation) -> Proposal:
    chosen, state = chosen_recordings(c, dataset=dataset, mode=meant.mode)
    at = f" at commit {meant.commit}" if meant.commit else ""
    cautions = list(standing.cautions())
    if standing.run is not None:
        cautions.append("The run at work changes these numbers while it goes on.")
    return Proposal(
        title=f"Convert {dataset.dataset_id}{at}, mode {meant.mode}",
        sentences=(
            _MODES[meant.mode],
            f"By what is known now it begins with {plural(len(chosen), 'recording')}.",
            *standing.begins(),
        ),
        cautions=tuple(cautions),
        cost=toll(c, recordings=chosen),
        # while a run is at work the numbers move by themselves, and what was seen is that it is followed
        standing=standing.digest("" if standing.run is not None else state),
    )


def _of_verification(c: Connection, dataset: Dataset, standing: Situation) -> Proposal:
    chosen, state = chosen_recordings(c, dataset=dataset, mode="verify")
    found = toll(c, recordings=chosen)
    stores = f"{plural(len(chosen), 'store')} without a verdict, or with a bad one,"
    return Proposal(
        title=f"Compare {dataset.dataset_id} with its source",
        sentences=(
            f"{stores} {'is' if len(chosen) == 1 else 'are'} read back and compared with the source.",
            f"{decimal_bytes(found.size_bytes)} are read there. Stores whose verdict stands are looked at by their objects only.",
            "Nothing that is served changes by it.",
        ),
        cautions=tuple(standing.cautions()),
        standing=standing.digest("" if standing.run is not None else state),
    )


def _chosen(dataset: Dataset, meant: Intention) -> Chosen:
    return Chosen(
        datasets=frozenset({dataset.pk}),
        codes=meant.codes,
        reasons=meant.reasons,
        recordings=None if meant.recording is None else frozenset({meant.recording}),
    )


def _of_requeue(c: Connection, dataset: Dataset, meant: Intention, standing: Situation) -> Proposal:
    if not dataset.active:
        raise Refused(f"{dataset.dataset_id} takes no part, so nothing is converted for it; let it take part first.")
    for word, known in ((meant.codes, FailureCode), (meant.reasons, PendingReason)):
        if unknown := sorted(word - set(known)):
            raise Refused(f"{unknown[0][:40]!r} is none of {', '.join(known)}")
    chosen, state = named(c, chosen=_chosen(dataset, meant))
    words = [f"{code}: {FAILURE_SENTENCES[FailureCode(code)]}" for code in sorted(meant.codes)]
    words += [f"{reason}: {PENDING_SENTENCES[PendingReason(reason)]}" for reason in sorted(meant.reasons)]
    count = plural(len(chosen), "recording")
    return Proposal(
        title=f"Make {count} of {dataset.dataset_id} due again",
        sentences=(
            *(words or (("Everything that failed or waits.",) if meant.recording is None else ())),
            f"The verdicts and counted attempts of {count} are forgotten, so that each may be tried five times again. Their history stays.",
            "What is served stays served.",
            *standing.begins(),
        ),
        cautions=tuple(standing.cautions()),
        cost=toll(c, recordings=chosen),
        changes=bool(chosen),
        standing=state,
    )


def _of_pause(dataset: Dataset, standing: Situation, *, pausing: bool) -> Proposal:
    changes = (standing.paused is None) is pausing
    if pausing:
        title, said = (
            f"Pause {dataset.dataset_id}",
            "Nothing is begun for it by itself until it is resumed. Requests wait.",
        )
        told = () if standing.run is None else (f"Run {standing.run.number} goes on to its end.",)
    else:
        title, said = f"Resume {dataset.dataset_id}", "What waits for it may begin again."
        told = ("Everything is paused too, which this does not end.",) if standing.all_paused is not None else ()
    return Proposal(
        title=title,
        sentences=(said, *told)
        if changes
        else (f"It is {'' if pausing else 'not '}paused{' already' if pausing else ''}.",),
        changes=changes,
        standing=standing.digest(""),
    )


def _of_standing(dataset: Dataset, meant: Intention) -> Proposal:
    check_standing_change(dataset, visibility=meant.visibility)
    told, cautions = [], []
    if meant.visibility not in (None, dataset.visibility):
        told.append(
            "It goes into the catalog and every filter with the next publication of the catalog."
            if meant.visibility == "public"
            else "It leaves the catalog and every filter, and its objects are given to nobody over this server."
        )
    if meant.active is not None and meant.active is not dataset.active:
        told.append(
            "It takes part: the reconciliation looks at it and asks for what it needs."
            if meant.active
            else "It takes no part: it leaves the catalog and every filter, and nothing is converted for it. What stands at the target stays."
        )
        if meant.active and dataset.withdrawn_at is not None:
            cautions.append(f"It was withdrawn on {utc_stamp(dataset.withdrawn_at)}; this ends that.")
    return Proposal(
        title=f"Change how {dataset.dataset_id} stands",
        sentences=tuple(told) or ("It stands so already.",),
        cautions=tuple(cautions),
        changes=bool(told),
        standing=f"{dataset.visibility} {dataset.active} {dataset.withdrawn_at}",
    )


def _of_withdrawal(settings: Settings, engine: Engine, dataset: Dataset) -> Proposal:
    found = listed_objects(open_target(dataset.target, settings), dataset.dataset_id)
    with engine.connect() as c:
        standing = situation(c, dataset=dataset)
    if standing.run is not None:
        raise Refused(f"Run {standing.run.number} of {dataset.dataset_id} is at work; stop it, or wait for its end.")
    size = (
        f"{plural(len(found.stores), 'store')}, {plural(found.objects, 'object')} of {decimal_bytes(found.size_bytes)}"
    )
    return Proposal(
        title=f"Withdraw {dataset.dataset_id}",
        sentences=(
            "It leaves the catalog and every filter first; then its index, its other documents and its stores are removed.",
            f"{size} at {dataset.target} are removed.",
            "Its recordings, verdicts and attempts stay known.",
            *(f"{key} is no part of a dataset and is left." for key in found.strays[:5]),
        ),
        cautions=("What is removed can only be made again by converting the source.",),
        changes=found.objects > 0 or dataset.active,
        standing=standing.digest(f"{found.objects} {found.size_bytes} {len(found.stores)} {dataset.active}"),
    )


def _of_engine(engine: Engine) -> Proposal:
    seen = preview_engine(engine, columns=_COLUMNS)
    left = sorted(set(seen.unapproved) & _COLUMNS)
    return Proposal(
        title="Let everything that another converter made be made anew",
        sentences=tuple(_engine_sentences(seen.cost.datasets, seen.stale)),
        cautions=("This concerns every dataset that another engine or other options made, not this one alone.",),
        cost=Toll(
            recordings=seen.cost.recordings,
            size_bytes=seen.cost.size_bytes,
            seconds=seen.cost.hours * 3600,
            unknown=0,
            largest_bytes=seen.cost.largest_bytes or None,
            slots=None,
        ),
        changes=bool(left),
        standing=json.dumps([asdict(seen.versions), dict(seen.stale), left], sort_keys=True),
    )


def _engine_sentences(datasets: int, stale: Mapping[str, int]) -> Iterator[str]:
    for column, count in sorted(stale.items()):
        yield f"{plural(count, 'dataset')} made with another {column} than the present one."
    if datasets:
        yield f"{plural(datasets, 'dataset')} {'is' if datasets == 1 else 'are'} asked for by the next reconciliation."
        yield "What is served stays served until its new store takes its place."
    else:
        yield "Everything was made with the present engine and options."
