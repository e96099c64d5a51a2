"""``zarrmill export``: what was written, and what a person should know of it."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable
from contract.errors import Refused
from contract.layout import check_relative, is_dataset_id
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.export_request import ExportReport, ExportRequest, NotExported
    from tasks.export.asked import ExportAsked
    from tasks.export.recording import Exported

__all__ = ["Told", "export_windows"]

_NOTHING, _SOME = 1, 3
_SHOWN = 20
_INTERRUPTED, _TERMINATED = 130, 143


@dataclass(frozen=True, slots=True)
class Told:
    """What the command line says beside what a file is to hold."""

    dataset_id: str
    recordings: tuple[str, ...]
    _: KW_ONLY
    every: bool
    place: str
    output: str | None
    source: str | None
    commit: str | None
    annex: str | None
    at: str | None


def export_windows(told: Told, asked: ExportAsked, *, as_json: bool, verbose: bool) -> int:
    """Write the file, or the files and their report, and say so; the exit code.

    Raises
    ------
    ZarrmillError
        The one file that was asked for could not be written, or nothing can be read of the dataset.
    """
    from flows.export_window import export_one, export_several
    from flows.stop import StopSignal, listening

    settings = prepare(verbose=verbose, as_json=as_json, uses_home=False)
    request = _request(told, asked)
    if request.is_file:
        with _unwound():
            one = export_one(settings, request)
        _tell(one, as_json=as_json)
        return 0
    stop = StopSignal()
    with listening(stop):
        report = export_several(settings, request, tell=lambda one: _tell(one, as_json=as_json), stop=stop)
    _sum_up(report, request, as_json=as_json)
    if report.not_reached:
        return _INTERRUPTED if stop.kind == "SIGINT" else _TERMINATED
    if not report.failed:
        return 0
    return _SOME if report.exported else _NOTHING


@contextmanager
def _unwound() -> Iterator[None]:
    """While this lasts SIGTERM ends what is done as Ctrl-C does, so that nothing of a file that is not whole stays."""

    def end(*_: object) -> NoReturn:
        typer.echo("stopped; the file was not whole and is not kept", err=True)
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _request(told: Told, asked: ExportAsked) -> ExportRequest:
    from flows.export_request import ExportRequest

    if not is_dataset_id(told.dataset_id):
        raise Refused(f"DATASET {told.dataset_id!r} is none: two small letters and six digits, such as xx000001")
    if told.every == bool(told.recordings):
        raise Refused(
            "Name the recordings, by their paths in the dataset or their stores', or give --all for every one that is served."
        )
    for recording in told.recordings:
        check_relative(recording)
    named = told.output
    is_file = len(told.recordings) == 1 and not (named is not None and (named.endswith("/") or os.path.isdir(named)))  # noqa: PTH112 - a text, whose closing slash counts
    if named is None:
        stem = told.recordings[0].rpartition("/")[2].partition(".")[0] if is_file else f"{told.dataset_id}-export"
        named = f"{stem}.h5" if is_file else stem
    return ExportRequest(
        dataset_id=told.dataset_id,
        place=told.place,
        recordings=told.recordings,
        asked=asked,
        output=Path(named).expanduser(),
        is_file=is_file,
        source=told.source,
        commit=told.commit,
        annex=told.annex,
        at=told.at,
    )


def _tell(one: Exported | NotExported, *, as_json: bool) -> None:
    from flows.export_request import NotExported

    if as_json:
        event = "not_exported" if isinstance(one, NotExported) else "exported"
        typer.echo(json_line({"event": event, **_as_object(one)}))
        return
    for line in _failure(one) if isinstance(one, NotExported) else _lines(one):
        typer.echo(line)


def _as_object(one: Exported | NotExported) -> dict[str, object]:
    value = jsonable(one)
    assert isinstance(value, dict), "a dataclass becomes an object"
    return {name: str(each) if isinstance(each, Path) else each for name, each in value.items()}


def _lines(one: Exported) -> Iterator[str]:
    *trials, n_time, n_channels = one.shape
    size = f"{plural(trials[0], 'epoch')} of {n_time:,}" if trials else f"{n_time:,}"
    yield f"{one.recording} → {one.file}"
    yield f"  {size} samples, {plural(n_channels, 'channel')}, {one.mode}, schema {one.schema}, {one.size_bytes:,} bytes"
    if one.events_source != "none":
        yield f"  {plural(one.n_trials, 'trial')} at events of {_EVENTS[one.events_source]}; {one.dropped:,} dropped, because their window leaves the part"
    if one.without_onset:
        yield f"  {plural(one.without_onset, 'event')} without an onset left out"
    if one.without_image:
        yield f"  {plural(one.without_image, 'event')} without a stim_file left out"
    if one.events_source != "none":
        yield from bounded([f"  stimulus {number}: {word}" for number, word in sorted(one.stimuli.items())], _SHOWN)
    yield from (f"  {note}" for note in one.notes)


_EVENTS = {"events.parquet": "events.parquet", "store": "the store itself"}


def _failure(one: NotExported) -> Iterator[str]:
    yield f"{one.recording}: not exported: {one.sentence}" + (f" ({one.detail})" if one.detail else "")


def _sum_up(report: ExportReport, request: ExportRequest, *, as_json: bool) -> None:
    if as_json:
        told = {
            "written": len(report.exported),
            "failed": len(report.failed),
            "not_reached": len(report.not_reached),
            "trials": sum(one.n_trials for one in report.exported),
            "trials_dropped": sum(one.dropped for one in report.exported),
        }
        typer.echo(json_line({"event": "summary", "report": str(request.output / "export.json"), **told}))
    else:
        typer.echo(f"{report.sentence}; {request.output / 'export.json'} lists them")
