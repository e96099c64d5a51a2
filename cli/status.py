"""``zarrmill status``: how datasets stand, from the state in Postgres."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from cli.called import program
from cli.drain import drain_line
from cli.outlook import outlook_lines
from cli.runtime import has_state, prepare, reading, target_url
from cli.summary import coverage_line
from cli.wording import json_line, jsonable
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES, FailureCode, PendingReason, WhyDue
from contract.errors import Refused
from contract.layout import CATALOG_KEY, is_dataset_id
from contract.times import utc_stamp
from infra.wording import bounded, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from db.coverage import Coverage
    from db.datasets import Dataset
    from db.drains import Drain
    from db.outbox import Owed
    from db.pauses import Paused
    from db.recordings import RecordingState
    from db.runs import RunRecord
    from db.standings import Outlook
    from db.verdicts import FidelityVerdict

__all__ = ["DatasetStatus", "look", "show_status", "status_lines", "status_object"]

_Word = TypeVar("_Word", FailureCode, PendingReason, WhyDue)
_RUNS_SHOWN = 5
_PATHS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatus:
    """How one dataset stands.

    Parameters
    ----------
    failures, pending
        Recordings by code and by reason, each by path.
    rebuilding
        Recordings that are served and yet due again, by why: what is served stays meanwhile.
    noted
        Paths of served recordings about which there is something to say; ``zarrmill why`` says it.
    owed
        Callbacks that an address has not accepted yet.
    outlook
        What it waits for: its policy, a pause, a request.
    interrupted
        Whether the run that holds the dataset was killed: its process and its workers are gone for certain.
    """

    dataset: Dataset
    coverage: Coverage
    runs: tuple[RunRecord, ...]
    failures: Mapping[FailureCode, tuple[RecordingState, ...]]
    pending: Mapping[PendingReason, tuple[RecordingState, ...]]
    rebuilding: Mapping[WhyDue, tuple[RecordingState, ...]]
    noted: tuple[str, ...] = ()
    interrupted: bool = False
    verdict: FidelityVerdict | None = None
    owed: tuple[Owed, ...] = ()
    outlook: Outlook | None = None


def show_status(dataset_id: str | None, *, target: str, as_json: bool, verbose: bool) -> None:
    """Print how one dataset, or each dataset of the target, stands.

    Raises
    ------
    Refused
        The dataset is not known at this target, or its id is none.
    """
    check_id(dataset_id)
    settings = prepare(verbose=verbose, as_json=as_json)
    url = target_url(target, settings)
    found: list[DatasetStatus] = []
    drained: list[Drain] = []
    everything: Paused | None = None
    reported: list[tuple[str, str]] = []
    if has_state(settings):
        from db import drains, pauses
        from db.received import reported_alone

        with reading(settings) as connection:
            found = look(connection, target=url, dataset_id=dataset_id)
            drained = drains.current(connection)
            everything = next((one for one in pauses.current(connection) if one.dataset_id is None), None)
            reported = [one for one in reported_alone(connection, target=url) if dataset_id in (None, one[0])]
    if dataset_id is not None and not found and not reported:
        raise unknown(dataset_id, url)
    if as_json:
        shown = [status_object(each) for each in found]
        others = [{"dataset_id": one, "status": status} for one, status in reported]
        drains_shown = [jsonable(each) for each in drained]
        told = {"target": url, "datasets": shown, "reported": others, "drains": drains_shown}
        typer.echo(json_line(told | {"everything_paused": everything is not None}))
        return
    if everything is not None and dataset_id is None:
        typer.echo(
            f"everything is paused since {utc_stamp(everything.paused_at)} by {everything.paused_by}; {program()} resume --execute ends that"
        )
    for each_drain in drained:
        typer.echo(drain_line(each_drain))
    if not found and not reported:
        typer.echo(_nothing_known(url))
    for each in found:
        for line in status_lines(each, whole=dataset_id is not None):
            typer.echo(line)
    for one, status in reported:
        typer.echo(f"{one}  {status}, as another converter reported it; not registered here")


def _nothing_known(url: str) -> str:
    if Path(url, CATALOG_KEY).is_file():
        return f"no dataset is known at {url}, which serves some; {program()} adopt DATASET SOURCE takes one over"
    return f"no dataset is known at {url}; {program()} convert SOURCE makes the first"


def check_id(dataset_id: str | None) -> None:
    """Refuse what can be no dataset's id, so that nobody looks for it elsewhere."""
    if dataset_id is not None and not is_dataset_id(dataset_id):
        raise Refused(f"{dataset_id!r} is no dataset's id: two small letters and six digits, such as xx000001")


def unknown(dataset_id: str, url: str) -> Refused:
    """The error for a dataset that state does not know."""
    return Refused(
        f"{dataset_id} is not known at {url}; {program()} status lists what is, and --to names another target"
    )


def look(c: Connection, *, target: str, dataset_id: str | None = None) -> list[DatasetStatus]:
    """How each dataset of the target stands, or the named one alone."""
    from db.coverage import coverage
    from db.datasets import list_datasets
    from db.outbox import owed
    from db.recordings import noted, snapshot
    from db.runs import last_runs
    from db.standings import outlook
    from db.verdicts import latest

    return [
        replace(
            _grouped(
                dataset,
                coverage(c, dataset=dataset),
                tuple(last_runs(c, dataset=dataset, limit=_RUNS_SHOWN)),
                snapshot(c, dataset=dataset),
                noted=noted(c, dataset=dataset),
                interrupted=_is_interrupted(c, dataset),
                owed=owed(c, dataset_pk=dataset.pk),
            ),
            outlook=outlook(c, dataset=dataset),
            verdict=latest(c, dataset=dataset),
        )
        for dataset in list_datasets(c, target=target)
        if dataset_id in {None, dataset.dataset_id}
    ]


def _is_interrupted(c: Connection, dataset: Dataset) -> bool:
    from db.leases import holder
    from flows.ownership import is_gone

    held_by = holder(c, dataset=dataset)
    return held_by is not None and is_gone(held_by)


def _grouped(
    dataset: Dataset,
    counted: Coverage,
    runs: tuple[RunRecord, ...],
    states: Sequence[RecordingState],
    *,
    noted: Sequence[str],
    interrupted: bool,
    owed: Sequence[Owed],
) -> DatasetStatus:
    failures: dict[FailureCode, list[RecordingState]] = defaultdict(list)
    pending: dict[PendingReason, list[RecordingState]] = defaultdict(list)
    rebuilding: dict[WhyDue, list[RecordingState]] = defaultdict(list)
    for state in states:
        if state.published_as == "failures" and state.code is not None:
            failures[state.code].append(state)
        elif state.published_as == "pending" and state.reason is not None:
            pending[state.reason].append(state)
        elif state.published_as == "stores" and state.why is not None:
            rebuilding[state.why].append(state)
    return DatasetStatus(
        dataset=dataset,
        coverage=counted,
        runs=runs,
        failures={code: tuple(failures[code]) for code in sorted(failures)},
        pending={reason: tuple(pending[reason]) for reason in sorted(pending)},
        rebuilding={why: tuple(rebuilding[why]) for why in sorted(rebuilding)},
        noted=tuple(noted),
        interrupted=interrupted,
        owed=tuple(owed),
    )


def status_object(status: DatasetStatus) -> dict[str, object]:
    """One dataset's status as JSON has it; recordings by their paths."""
    return {
        **jsonable(status.dataset),
        "interrupted": status.interrupted,
        "coverage": jsonable(status.coverage),
        "runs": [jsonable(run) for run in status.runs],
        "failures": _paths(status.failures),
        "pending": _paths(status.pending),
        "rebuilding": _paths(status.rebuilding),
        "noted": list(status.noted),
        "callbacks": [jsonable(one) for one in status.owed],
        "outlook": jsonable(status.outlook),
        "verdict": jsonable(status.verdict),
    }


def _paths(groups: Mapping[_Word, Sequence[RecordingState]]) -> dict[str, list[str]]:
    return {word.value: [state.path for state in states] for word, states in groups.items()}


def _standing(status: DatasetStatus) -> str:
    """Its status in words, and what keeps it from being served to everybody."""
    dataset = status.dataset
    taken_over = bool(status.runs) and status.runs[0].run.mode == "adopt"
    standing = dataset.status or ("taken over, still as it was served" if taken_over else "not published yet")
    if dataset.withdrawn_at is not None:
        standing = f"withdrawn on {utc_stamp(dataset.withdrawn_at)}"
    elif not dataset.active:
        standing += ", inactive: it takes no part"
    if dataset.visibility == "private":
        standing += ", private"
    return standing


def status_lines(status: DatasetStatus, *, whole: bool) -> Iterator[str]:
    """One dataset's status for people; ``whole`` with its runs and the paths of what failed or waits."""
    dataset, counts = status.dataset, status.coverage
    now = ", converting now" if dataset.converting else ""
    if status.interrupted:
        now = ", its run was interrupted; the next convert goes on"
    name = f"  {dataset.facts.name}" if dataset.facts.name else ""
    yield f"{dataset.dataset_id}  {_standing(status)}{now}{name}"
    yield f"  {coverage_line(counts.discovered, counts.stores, counts.failures, counts.pending)}"
    if not whole:
        return
    yield f"  source     {dataset.source}"
    if dataset.published is not None:
        yield f"  published  {utc_stamp(dataset.published.converted_at)} from the source in state {dataset.published.source_commit}"
    if status.verdict is not None:
        yield f"  verified   {_verdict(status.verdict)}"
    if dataset.error:
        yield f"  the last run failed: {dataset.error}"
    if status.outlook is not None:
        yield from (f"  {line}" for line in outlook_lines(status.outlook))
    for run in status.runs:
        yield f"  {_run_line(run, interrupted=status.interrupted and run.state == 'running')}"
    yield from (f"  {_owed_line(one)}" for one in status.owed)
    for code, states in status.failures.items():
        yield f"  failed: {code} ({len(states):,}): {FAILURE_SENTENCES[code]}"
        yield from (f"    {line}" for line in bounded([state.path for state in states], _PATHS_SHOWN))
    for reason, states in status.pending.items():
        yield f"  pending: {reason} ({len(states):,}): {PENDING_SENTENCES[reason]}"
        yield from (f"    {line}" for line in bounded([_waiting(state) for state in states], _PATHS_SHOWN))
    for why, states in status.rebuilding.items():
        yield f"  served and due again: {why} ({len(states):,}): {WHY_DUE_SENTENCES[why]}"
        yield from (f"    {line}" for line in bounded([_waiting(state) for state in states], _PATHS_SHOWN))
    if status.noted:
        yield f"  served with notes ({len(status.noted):,}): {program()} why {dataset.dataset_id} PATH shows them"
        yield from (f"    {line}" for line in bounded(status.noted, _PATHS_SHOWN))


def _verdict(found: FidelityVerdict) -> str:
    counts = f"{found.stores_verified:,} verified, {found.stores_failed:,} failed, {found.stores_unverifiable:,} unverifiable"
    since = "" if found.stands else "; something was published since"
    return f"{found.status} on {utc_stamp(found.verified_at)}: {counts}{since}"


def _owed_line(owed: Owed) -> str:
    what = f"callback {owed.status} of run {owed.run_number}"
    if owed.endpoint is None or owed.next_try_at is None:
        return f"{what} waits since {utc_stamp(owed.created_at)}"
    return f"{what} to {owed.endpoint}: tried {owed.tries} times, again at {utc_stamp(owed.next_try_at)}; {owed.last_error or 'under way'}"


def _waiting(state: RecordingState) -> str:
    after = f", not before {utc_stamp(state.next_attempt_at)}" if state.next_attempt_at is not None else ""
    return f"{state.path}{after}"


def _run_line(record: RunRecord, *, interrupted: bool) -> str:
    run = record.run
    state = "interrupted" if interrupted else record.state
    begun = f"run {run.number} ({run.mode}) {state}, began {utc_stamp(run.started_at)}"
    if record.ended_at is not None:
        took = f", took {duration((record.ended_at - run.started_at).total_seconds())}"
    else:
        took = f", {record.stage or 'starting'}, process {record.owner_pid} on {record.owner_host}"
        took += " is gone" if interrupted else ""
    return begun + took + (f": {record.error}" if record.error else "")
