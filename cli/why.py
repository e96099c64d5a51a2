"""``zarrmill why``: one recording, everything that is known of it."""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cli.runtime import has_state, prepare, reading, target_url
from cli.status import check_id, unknown
from cli.wording import bounded, duration, in_order, json_line, jsonable, plural
from contract.codes import FAILURE_SENTENCES, MAX_COUNTED_ATTEMPTS, PENDING_SENTENCES, WHY_DUE_SENTENCES
from contract.errors import Refused
from contract.times import utc_stamp
from infra.sizes import format_bytes
from tasks.convert.loss import unpack_losses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

    from db.recordings import AttemptRecord, RecordingHistory, RecordingState
    from db.store_verdicts import FidelityOfStore

__all__ = ["disclosures", "history_lines", "look", "show_why"]

_NEAREST_SHOWN = 3
_GROUPS_SHOWN = 8


def show_why(dataset_id: str, path: str, *, target: str, as_json: bool, verbose: bool) -> None:
    """Print a recording's state, the reason for it, every attempt, and what its store discloses.

    Raises
    ------
    Refused
        The dataset or the recording is not known, or the id is none.
    """
    check_id(dataset_id)
    settings = prepare(verbose=verbose, as_json=as_json)
    url = target_url(target, settings)
    if not has_state(settings):
        raise unknown(dataset_id, url)
    from db.store_verdicts import verdict_of

    with reading(settings) as connection:
        history, entry = look(connection, target=url, dataset_id=dataset_id, path=path)
        verdict = verdict_of(connection, recording_id=history.state.id)
    if as_json:
        answer = {
            "dataset_id": dataset_id,
            "target": url,
            **_as_object(history),
            "entry": entry,
            "verdict": jsonable(verdict),
        }
        typer.echo(json_line(answer | {"published_as": history.state.published_as}))
        return
    for line in history_lines(history, entry, tracebacks=verbose, verdict=verdict):
        typer.echo(line)


def _as_object(history: RecordingHistory) -> dict[str, Any]:
    """The history as JSON has it, the losses of each attempt unpacked."""
    found: dict[str, Any] = jsonable(history)
    for one, attempt in zip(found["attempts"], history.attempts, strict=True):
        packed = attempt.quantisation
        one["quantisation"] = None if packed is None else jsonable(unpack_losses(packed))
    return found


def look(
    c: Connection, *, target: str, dataset_id: str, path: str
) -> tuple[RecordingHistory, Mapping[str, Any] | None]:
    """The history of a recording, named by its path or its store's, and the index entry of its store, if it has one.

    Raises
    ------
    Refused
        The dataset or the recording is not known.
    """
    from db.datasets import find
    from db.recordings import snapshot, why
    from db.stores import entries

    dataset = find(c, dataset_id=dataset_id, target=target)
    if dataset is None:
        raise unknown(dataset_id, target)
    tried = (why(c, dataset=dataset, path=each) for each in _spellings(path, dataset.source))
    history = next((found for found in tried if found is not None), None)
    if history is None:
        known = [state.path for state in snapshot(c, dataset=dataset)]
        near = get_close_matches(os.path.normpath(path), known, n=_NEAREST_SHOWN)
        way_out = f"the nearest are {', '.join(near)}" if near else "paths are as in its index.json"
        raise Refused(f"{dataset_id} has no recording {path!r}; {way_out}, from the dataset's root")
    wanted = history.state.zarr
    if history.state.served is None:
        return history, None
    stored = next((entry for zarr, entry in entries(c, dataset=dataset, published=False) if zarr == wanted), None)
    return history, None if stored is None else json.loads(stored)


def _spellings(path: str, source: str) -> Iterator[str]:
    """What a person may mean: a path from the dataset's root, or the path of a file in the source."""
    yield os.path.normpath(path)
    typed = Path(os.path.abspath(path))  # noqa: PTH100 - resolved, a file of git-annex would be its object
    for place in (typed, typed.parent.resolve() / typed.name):
        if place.is_relative_to(source):
            yield place.relative_to(source).as_posix()


def history_lines(
    history: RecordingHistory,
    entry: Mapping[str, Any] | None,
    *,
    tracebacks: bool = False,
    verdict: FidelityOfStore | None = None,
) -> Iterator[str]:
    """What is known of one recording, for people."""
    state = history.state
    yield state.path
    yield f"  {_standing(state)}"
    yield from (f"  {line}" for line in _reasons(state))
    if state.served is not None:
        served = state.served
        yield f"  store      {state.zarr}, engine {served.engine}, biosigIO {served.biosigio}"
    if verdict is not None:
        yield from _verdict_lines(verdict)
    if entry is not None:
        yield from (f"  disclosed  {line}" for line in disclosures(entry))
    if not history.attempts:
        yield "  no attempt was made yet"
    for number, attempt in enumerate(history.attempts, start=1):
        yield ""
        yield from _attempt_lines(number, attempt, tracebacks=tracebacks)


def _verdict_lines(found: FidelityOfStore) -> Iterator[str]:
    since = "" if found.stands else ", of the store before this one"
    yield f"  verified   {found.status} on {utc_stamp(found.verified_at)}{since}{f': {found.why}' if found.why else ''}"
    yield from (f"             {example['check']}: {example['detail']}" for example in found.examples)


def _standing(state: RecordingState) -> str:
    match state.published_as:
        case "stores":
            return "served" + (", and converting again" if state.due == "converting" else "")
        case "failures":
            return f"failed: {state.code}"
        case "pending":
            return f"converting now: {state.reason}" if state.due == "converting" else f"pending: {state.reason}"
        case _:
            return "no longer in the source"


def _reasons(state: RecordingState) -> Iterator[str]:
    if state.verdict is not None:
        yield f"reason     {FAILURE_SENTENCES[state.verdict.code]}"
        if state.verdict.detail:
            yield f"detail     {state.verdict.detail}"
        if state.verdict.needed_bytes is not None:
            yield f"needs      {format_bytes(state.verdict.needed_bytes)} of memory"
        yield f"found by   engine {state.verdict.engine}, biosigIO {state.verdict.biosigio}"
    elif state.reason is not None:
        yield f"reason     {PENDING_SENTENCES[state.reason]}"
    if state.why is not None:
        yield f"due        {state.why}: {WHY_DUE_SENTENCES[state.why]}"
    if state.attempts:
        yield f"attempts   {state.attempts} counted of {MAX_COUNTED_ATTEMPTS}"
    if state.next_attempt_at is not None:
        yield f"next       not before {utc_stamp(state.next_attempt_at)}; --mode retry-pending does not wait"
    if state.last_error:
        yield f"last error {state.last_error}"


def disclosures(entry: Mapping[str, Any]) -> Iterator[str]:
    """What a store's index entry says about how true it is to its recording."""
    if entry.get("channels_tsv_read_error"):
        yield "a channels.tsv applies but could not be read; units are those of the recording file"
    report = entry.get("units_report")
    if report is not None:
        yield (
            f"units by {report['sidecar']}: {report['converted']} channels converted, {report['relabelled']} relabelled, "
            f"{report['kept_importer_unit']} kept the file's own"
        )
    correction = entry.get("sss")
    if correction is not None:
        yield f"not the raw signal: corrected by {correction['method']} with {correction['calibration']} and {correction['cross_talk']}"
    members = entry.get("split_members")
    if members:
        yield f"joined from {len(members)} files: {', '.join(members)}"


def _ending(attempt: AttemptRecord) -> str:
    if attempt.outcome == "released":
        return "released, not counted"  # nobody is to blame for it, whatever the attempt met while it was ended
    verdict = attempt.code or attempt.reason
    said = attempt.outcome if verdict is None else f"{attempt.outcome}: {verdict}"
    # Only these two can cost one of the five attempts; whether they did is worth saying.
    if attempt.outcome in {"pending", "expired"}:
        said += ", counted" if attempt.counted else ", not counted"
    return said


def _loss_lines(packed: bytes) -> list[str]:
    """Of each group and unit, the channel that int16 moved furthest."""
    lines = []
    for group in unpack_losses(packed):
        for unit in dict.fromkeys(group.units):
            rows = [row for row, own in enumerate(group.units) if own == unit]
            worst = max(rows, key=lambda row: group.channels[row].max_error)
            furthest, rms = group.channels[worst].max_error, max(group.channels[row].rms_error for row in rows)
            lines.append(
                f"{group.group}: {plural(len(rows), 'channel')} off by at most {furthest:.3g} {unit} "
                f"({group.labels[worst]}), {rms:.3g} {unit} rms"
            )
    return lines


def _attempt_lines(number: int, attempt: AttemptRecord, *, tracebacks: bool) -> Iterator[str]:
    yield f"attempt {number}  run {attempt.run_number}, {utc_stamp(attempt.started_at)}, {_ending(attempt)}"
    measured = "not measured" if attempt.measured_bytes is None else f"{format_bytes(attempt.measured_bytes)} measured"
    yield (
        f"  memory     {format_bytes(attempt.projected_bytes)} projected, "
        f"{format_bytes(attempt.permitted_bytes)} permitted, {measured}"
    )
    if attempt.stage_seconds:
        yield "  seconds    " + ", ".join(f"{stage} {duration(s)}" for stage, s in in_order(attempt.stage_seconds))
    if attempt.stage_bytes:
        yield "  bytes      " + ", ".join(f"{stage} {format_bytes(b)}" for stage, b in in_order(attempt.stage_bytes))
    yield f"  worker     {attempt.worker}, {attempt.route}, scratch {format_bytes(attempt.scratch_bytes)}"
    yield from (f"  note       {note}" for note in attempt.notes)
    if attempt.quantisation is not None:
        yield from (f"  int16      {line}" for line in bounded(_loss_lines(attempt.quantisation), _GROUPS_SHOWN))
    yield f"  versions   zarrmill {attempt.zarrmill}, engine {attempt.engine}, biosigIO {attempt.biosigio}"
    if attempt.error:
        yield f"  error      {attempt.error}"
    if attempt.traceback and tracebacks:
        yield from (f"    {line}" for line in attempt.traceback.splitlines())
