"""Windows of several recordings, one file each, and ``export.json``, which says what was written, dropped and failed, and why."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract.errors import NotServed, Refused, ZarrmillError
from contract.redact import error_line
from contract.times import utc_stamp
from flows.export_request import EXPORT_FORMAT, EXPORT_VERSION, ExportReport, NotExported
from tasks.export.recording import export_recording
from tasks.read.index import find_entry, read_index
from tasks.read.place import place_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flows.export_request import ExportRequest
    from flows.stop import StopSignal
    from infra.settings import Settings
    from tasks.export.recording import Exported
    from tasks.export.stimuli import Stimuli
    from tasks.read.index import ReadIndex
    from tasks.read.place import Place
    from tasks.sources.protocol import Source

__all__ = ["REPORT_NAME", "export_one", "export_several", "file_of"]

log = logging.getLogger("zarrmill.flows.export")

REPORT_NAME = "export.json"


def export_one(settings: Settings, request: ExportRequest) -> Exported:
    """Write the file of the one recording that is asked for.

    Raises
    ------
    ZarrmillError, OSError
        As ``export_recording``.
    """
    with _opened(settings, request) as (place, index), _stimuli(settings, request, index) as stimuli:
        (recording,) = request.recordings
        return export_recording(place, index, recording, request.asked, request.output, stimuli=stimuli)


def export_several(
    settings: Settings,
    request: ExportRequest,
    *,
    tell: Callable[[Exported | NotExported], None] = lambda _: None,
    stop: StopSignal | None = None,
) -> ExportReport:
    """Write a file for each recording and the report beside them. What goes wrong with one recording stops no other.

    Raises
    ------
    Refused
        The request as a whole cannot be carried out.
    NotServed, StorageError
        Nothing can be read of the dataset.
    """
    done: list[Exported] = []
    failed: list[NotExported] = []
    with _opened(settings, request) as (place, index), _stimuli(settings, request, index) as stimuli:
        _make_folder(request.output)
        recordings = list(request.recordings or sorted(str(entry["path"]) for entry in index.stores))
        waiting = list(recordings)
        while waiting and (stop is None or stop.state == "go"):
            recording = waiting.pop(0)
            one = _try(place, index, recording, request, stimuli)
            (done if not isinstance(one, NotExported) else failed).append(one)  # type: ignore[arg-type]  # by its kind
            tell(one)
        report = ExportReport(
            dataset_id=request.dataset_id,
            place=place.url,
            source_commit=index.head.source_commit,
            exported=tuple(done),
            failed=tuple(failed),
            not_reached=tuple(waiting),
        )
        _write_report(request, index, report)
    return report


def file_of(request: ExportRequest, zarr: str) -> Path:
    """Where the file of a store stands below the output folder: under the store's own path."""
    return request.output / f"{zarr.removesuffix('.zarr')}.h5"


def _try(
    place: Place, index: ReadIndex, recording: str, request: ExportRequest, stimuli: Stimuli | None
) -> Exported | NotExported:
    try:
        target = file_of(request, find_entry(index, recording).zarr)
        target.parent.mkdir(parents=True, exist_ok=True)
        return export_recording(place, index, recording, request.asked, target, stimuli=stimuli)
    except ZarrmillError as error:
        return NotExported(recording=recording, code=error.code, sentence=error.sentence, detail=error.detail)
    except OSError as error:
        return NotExported(recording=recording, code="file_not_written", sentence=error_line(error))


@contextmanager
def _opened(settings: Settings, request: ExportRequest) -> Iterator[tuple[Place, ReadIndex]]:
    place = place_at(request.place, settings, dataset_id=request.dataset_id)
    try:
        try:
            index = read_index(place, request.dataset_id)
        except NotServed as error:
            raise _why_not_served(settings, place, request.dataset_id, error) from error
        yield place, index
    finally:
        place.close()


def _why_not_served(settings: Settings, place: Place, dataset_id: str, error: NotServed) -> NotServed:
    """The error, with what the state of this installation knows of the dataset at this target."""
    registered = _registered(settings, place.url, dataset_id)
    if registered is None:
        return error
    if registered.withdrawn_at is not None:
        sentence = f"{dataset_id} was withdrawn on {utc_stamp(registered.withdrawn_at)}, so nothing of it is served at {place.url}."
        return NotServed(sentence, state="withdrawn")
    sentence = f"{dataset_id} is registered, and nothing of it is published at {place.url} yet; `zarrmill status {dataset_id}` says how it stands."
    return NotServed(sentence, state="pending")


def _registered(settings: Settings, target: str, dataset_id: str) -> Any:
    """The dataset as the state knows it at a target; None where there is no state, or it is not known."""
    if settings.database_url is None and not Path(settings.home, "postgres").is_dir():
        return None
    from db.datasets import find
    from flows.preview import opened_database

    with opened_database(settings) as (engine, _url), engine.connect() as c:
        return find(c, dataset_id=dataset_id, target=target)


@contextmanager
def _stimuli(settings: Settings, request: ExportRequest, index: ReadIndex) -> Iterator[Stimuli | None]:
    """Where images are read from, when they are asked for."""
    if not request.asked.with_stimuli:
        yield None
        return
    from tasks.export.stimuli import Stimuli

    source, commit = _source(settings, request, index)
    with tempfile.TemporaryDirectory(prefix="zarrmill-stimuli-") as scratch:
        yield Stimuli(source, Path(scratch), commit=commit)


def _source(settings: Settings, request: ExportRequest, index: ReadIndex) -> tuple[Source, str | None]:
    """The dataset's source: a repository at the commit that the index was made from, unless another is asked for."""
    from tasks.sources import open_source
    from tasks.sources.protocol import SourceAddress

    url, annex = request.source, request.annex
    if url is None:
        known = _registered(settings, _place_url(settings, request), request.dataset_id)
        if known is None:
            raise Refused(
                f"--with-stimuli: it is not known here where {request.dataset_id} is made from; name its BIDS dataset with --source."
            )
        url, annex = known.source, annex or known.annex
    address = SourceAddress(url=url, commit=request.commit, annex=annex, at=request.at)
    if request.commit is None and request.at is None:
        at_index = SourceAddress(url=url, commit=index.head.source_commit, annex=annex)
        try:
            return open_source(at_index, settings), at_index.commit
        except Refused as refused:
            # a folder or a bucket has no commits, and a repository may lack this one: then it is read as it lies there
            log.info("%s", refused.sentence)
    return open_source(address, settings), address.commit


def _place_url(settings: Settings, request: ExportRequest) -> str:
    """The place as the state names targets."""
    if request.place.lower().startswith(("http://", "https://")):
        return request.place
    from infra.storage import open_target

    return open_target(request.place, settings).url


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--output: {folder} cannot be a folder ({error.strerror}); name another.") from error


def _write_report(request: ExportRequest, index: ReadIndex, report: ExportReport) -> None:
    """Write ``export.json``; it appears whole, or the old one stays."""
    told = {
        "format": EXPORT_FORMAT,
        "format_version": EXPORT_VERSION,
        "exported_utc": utc_stamp(datetime.now(UTC)),
        "dataset_id": report.dataset_id,
        "from": report.place,
        "source_commit": report.source_commit,
        "index_etag": index.etag,
        "doi": index.head.doi,
        "license": index.head.license,
        "citation": index.head.citation,
        "asked": _asked(request),
        "counts": {
            "written": len(report.exported),
            "failed": len(report.failed),
            "not_reached": len(report.not_reached),
            "trials": sum(one.n_trials for one in report.exported),
            "trials_dropped": sum(one.dropped for one in report.exported),
        },
        "files": [_file(request, one) for one in report.exported],
        "failed": [
            {"recording": one.recording, "code": one.code, "reason": one.sentence, "detail": one.detail}
            for one in report.failed
        ],
        "not_reached": list(report.not_reached),
    }
    beside = request.output / f".{REPORT_NAME}.{os.getpid()}.part"
    beside.write_text(json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(beside, request.output / REPORT_NAME)  # noqa: PTH105 - the pathlib name hides that this is the atomic one


def _asked(request: ExportRequest) -> dict[str, Any]:
    asked = request.asked
    return {
        "group": asked.group,
        "start_s": asked.start_s,
        "stop_s": asked.stop_s,
        "window_s": list(asked.window) if asked.has_trials else None,
        "trial_types": list(asked.trial_types),
        "channels": list(asked.channels),
        "mode": asked.layout,
        "schema": asked.schema,
        "with_stimuli": asked.with_stimuli,
    }


def _file(request: ExportRequest, one: Exported) -> dict[str, Any]:
    return {
        "recording": one.recording,
        "file": one.file.relative_to(request.output).as_posix(),
        "size_bytes": one.size_bytes,
        "sha256": one.sha256,
        "shape": list(one.shape),
        "trials": one.n_trials,
        "trials_dropped": one.dropped,
        "events_without_onset": one.without_onset,
        "events_without_image": one.without_image,
        "stimuli": {str(number): word for number, word in one.stimuli.items()},
        "events_source": one.events_source,
        "store_etag": one.store_etag,
        "notes": list(one.notes),
    }
