"""Converts one fetched recording into a gated store; runs in a child process."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from contract.rates import served_rate
from tasks.convert.annotate import annotate, disclose_mismatch
from tasks.convert.engine import EngineInput, write_store
from tasks.convert.entry import store_entry
from tasks.convert.gate import check_channels, check_groups
from tasks.convert.maxshield import corrected
from tasks.convert.order import ConversionOrder, ConvertedStore
from tasks.convert.sidecars import ReadSidecars, read_sidecars
from tasks.convert.store import digest_objects, read_groups
from tasks.events.rows import event_rows
from tasks.formats import load
from tasks.formats.content import require_content

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from contract.index import SssEntry
    from tasks.bids.recording import DiscoveredRecording
    from tasks.convert.store import StoreGroup
    from tasks.events.parse import Events
    from tasks.formats.protocol import Header, RecordingFormat

__all__ = ["SOURCE_FOLDER", "STORE_FOLDER", "convert"]

SOURCE_FOLDER = "source"
STORE_FOLDER = "store.zarr"
_WORK_FOLDER = "work"

# biosigIO resamples by a ratio of whole rates, and a rate that rounds to 0 cannot be one.
_LOWEST_RATE_HZ = 0.51


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start


def convert(order: ConversionOrder, scratch: Path) -> ConvertedStore:
    """Convert the recording below ``scratch/source`` into ``scratch/store.zarr`` and check it.

    Equal source gives equal bytes, but for the root's ``created_utc``. Only ``scratch`` is written.

    Raises
    ------
    RecordingFailed
        A verdict on the recording.
    NotNow
        A condition of this machine.
    biosigio.exceptions.BiosigIOError
        A verdict of the engine; ``tasks.convert.verdict`` knows its codes.
    Exception
        Anything else is a fault of this machine or program, and never the recording's.
    """
    clock = _Clock()
    recording = order.recording
    store, work = scratch / STORE_FOLDER, scratch / _WORK_FOLDER
    for left in (store, work):
        shutil.rmtree(left, ignore_errors=True)
    work.mkdir()
    try:
        with clock.stage("read"):
            one, header = _examined(recording, scratch / SOURCE_FOLDER)
            sidecars = read_sidecars(recording, scratch / SOURCE_FOLDER)
        with clock.stage("convert"):
            target, sss = one.read_target(scratch / SOURCE_FOLDER / recording.path), None
            if header.maxshield:
                target, sss = corrected(recording, scratch / SOURCE_FOLDER, work)
            write_store(_input(one, header, target, recording, sidecars, work), store)
        with clock.stage("attributes"):
            _annotate(order, store, one, header, sidecars, sss)
        with clock.stage("gate"):
            groups, notes = _gate(store, header, sidecars)
        return _result(order, store, groups, sidecars, sss, notes, clock)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _examined(recording: DiscoveredRecording, source: Path) -> tuple[RecordingFormat, Header]:
    """The recording's format and what its own header says, after its files were found to hold their content."""
    one = load().get(recording.format)
    if one is None:
        raise RecordingFailed(FailureCode.UNSUPPORTED_FORMAT, detail=f"no reader for the format {recording.format!r} is installed")
    for path in (*recording.members, *recording.companions):
        require_content(source / path)
    header = one.header(source / recording.path)
    if header.n_trials > 1:
        raise RecordingFailed(FailureCode.NOT_CONTINUOUS, detail=f"the file holds {header.n_trials} trials")
    if header.rate_hz is not None:
        if header.rate_hz < _LOWEST_RATE_HZ:
            raise RecordingFailed(FailureCode.UNSUPPORTED_FORMAT, detail=f"a rate of {header.rate_hz:g} Hz is not supported")
        left = None if header.n_samples is None else header.n_samples * served_rate(header.rate_hz, recording.modality) / header.rate_hz
        if left is not None and round(left) < 1:
            raise RecordingFailed(FailureCode.EMPTY_RECORDING, detail=f"{header.n_samples} samples at {header.rate_hz:g} Hz leave none to serve")
    return one, header


def _input(
    one: RecordingFormat, header: Header, target: Path, recording: DiscoveredRecording, sidecars: ReadSidecars, work: Path
) -> EngineInput:
    mapped = work / "mapped"
    mapped.mkdir()
    return EngineInput(
        target=target,
        source_format=one.source_format,
        route=one.route(header),
        modality=recording.modality,
        channels=None if sidecars.channels is None else sidecars.channels.frame,
        events=_events_frame(sidecars.events),
        scratch=mapped,
    )


def _events_frame(events: Events | None) -> pd.DataFrame:
    """All events in biosigIO's columns; empty without an events.tsv.

    An unknown onset is NaN, so that the group counts as many events as the table. An unknown duration is 0.0, as biosigIO
    documents it; events.parquet keeps it null.
    """
    import pandas as pd

    if events is None:
        return pd.DataFrame({"onset": [], "duration": [], "description": []})
    return pd.DataFrame(
        {
            "onset": pd.Series([float("nan") if onset is None else onset for onset in events.onset_s], dtype="float64"),
            "duration": pd.Series([0.0 if length is None else length for length in events.duration_s], dtype="float64"),
            "description": pd.Series(events.descriptions(), dtype=object),
        }
    )


def _annotate(
    order: ConversionOrder, store: Path, one: RecordingFormat, header: Header, sidecars: ReadSidecars, sss: SssEntry | None
) -> None:
    annotate(
        store,
        source_path=order.recording.path,
        source_format=one.source_format,
        header=header,
        sidecars=sidecars,
        provenance=order.provenance.model_copy(update={"derived": sss is not None}).model_dump(mode="json"),
        sss=None if sss is None else sss.model_dump(mode="json"),
    )


def _gate(store: Path, header: Header, sidecars: ReadSidecars) -> tuple[tuple[StoreGroup, ...], list[str]]:
    groups = read_groups(store)
    mismatch = check_channels(groups, header, None if sidecars.channels is None else sidecars.channels.n_rows)
    check_groups(groups, header)
    notes = list(sidecars.notes)
    if mismatch is not None:
        disclose_mismatch(store, mismatch)
        notes.append(f"channels.tsv lists {mismatch.channels_tsv} channels, the file and the store have {mismatch.in_store}")
    return groups, notes


def _result(
    order: ConversionOrder,
    store: Path,
    groups: tuple[StoreGroup, ...],
    sidecars: ReadSidecars,
    sss: SssEntry | None,
    notes: list[str],
    clock: _Clock,
) -> ConvertedStore:
    recording = order.recording
    rows, count = None, 0
    if sidecars.events is not None:
        rates = [(group.name, float(group.attributes["rate"])) for group in groups]
        rows, count = event_rows(sidecars.events, zarr=recording.zarr, entities=recording.entities, groups=rates)
    with clock.stage("digest"):
        objects = digest_objects(store)
    entry = store_entry(recording, store, groups, sidecars, updated_utc=order.updated_utc, sss=sss)
    return ConvertedStore(
        entry=entry,
        objects=objects,
        events=rows,
        events_row_count=count,
        duration_s=max(group.duration_s or 0.0 for group in entry.groups or ()),
        stage_seconds=dict(clock.seconds),
        notes=tuple(notes),
    )
