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
from cli.wording import json_line, jsonable
from contract.errors import Refused
from contract.times import utc_stamp
from infra.sizes import format_bytes
from infra.wording import bounded, duration, in_order
from tasks.convert.loss import unpack_losses
from tasks.telling import disclosures, ending, losses, reasons, remade, standing, verified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

    from db.recordings import AttemptRecord, RecordingHistory
    from db.store_verdicts import FidelityOfStore

__all__ = ["history_lines", "look", "show_why"]

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
    yield f"  {standing(state)}"
    yield from (f"  {label:<10} {sentence}" for label, sentence in (*reasons(state), *remade(history)))
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
    yield f"  verified   {verified(found)}"
    yield from (f"             {example['check']}: {example['detail']}" for example in found.examples)


def _attempt_lines(number: int, attempt: AttemptRecord, *, tracebacks: bool) -> Iterator[str]:
    yield f"attempt {number}  run {attempt.run_number}, {utc_stamp(attempt.started_at)}, {ending(attempt)}"
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
        yield from (f"  int16      {line}" for line in bounded(losses(attempt.quantisation), _GROUPS_SHOWN))
    yield f"  versions   zarrmill {attempt.zarrmill}, engine {attempt.engine}, biosigIO {attempt.biosigio}"
    if attempt.error:
        yield f"  error      {attempt.error}"
    if attempt.traceback and tracebacks:
        yield from (f"    {line}" for line in attempt.traceback.splitlines())
