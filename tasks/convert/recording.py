"""Converts one fetched recording into a gated store; runs in a child process."""

from __future__ import annotations

import logging
import math
import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contract.codes import FailureCode
from contract.errors import RecordingFailed
from contract.rates import resampling_ratio
from tasks.convert.annotate import annotate, disclose_mismatch
from tasks.convert.engine import write_chunks
from tasks.convert.entry import store_entry
from tasks.convert.gate import check_channels, check_groups
from tasks.convert.loss import GroupLoss, coarse, pack_losses
from tasks.convert.maxshield import corrected
from tasks.convert.order import ConversionOrder, ConvertedStore
from tasks.convert.own_events import with_own_events
from tasks.convert.pieces import EngineInput
from tasks.convert.resampling import served_length
from tasks.convert.respelling import respelled, restore_labels
from tasks.convert.sidecars import ReadSidecars, publishable, read_sidecars
from tasks.convert.store import digest_objects, read_groups
from tasks.events.rows import event_rows
from tasks.formats import load
from tasks.formats.content import corrupt, require_content
from tasks.formats.windows import ReadsWindows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from contract.index import SssEntry
    from contract.store import Provenance
    from tasks.bids.recording import DiscoveredRecording
    from tasks.convert.documents import Documents
    from tasks.convert.match import ChannelsMatch
    from tasks.convert.pieces import WrittenGroup
    from tasks.convert.store import StoreGroup
    from tasks.events.parse import Events
    from tasks.formats.protocol import Header, RecordingFormat

__all__ = ["SOURCE_FOLDER", "STORE_FOLDER", "convert"]

_log = logging.getLogger("zarrmill.convert")

SOURCE_FOLDER = "source"
STORE_FOLDER = "store.zarr"
_WORK_FOLDER = "work"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What was read of a recording before it is converted."""

    recording: DiscoveredRecording
    source: Path
    one: RecordingFormat
    header: Header
    sidecars: ReadSidecars

    @property
    def primary(self) -> Path:
        return self.source / self.recording.path


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
    store, work = scratch / STORE_FOLDER, scratch / _WORK_FOLDER
    for left in (store, work):
        shutil.rmtree(left, ignore_errors=True)
    work.mkdir()
    try:
        with clock.stage("read"):
            known = _read(order.recording, scratch / SOURCE_FOLDER)
        with clock.stage("convert"):
            sss, documents, written = _write(known, store, work)
        with clock.stage("attributes"):
            matched = _annotate(known, documents, order.provenance, sss, store)
        with clock.stage("gate"):
            groups, notes = _gate(known, store, matched)
        with clock.stage("digest"):
            objects = digest_objects(store)
    except BaseException:
        shutil.rmtree(store, ignore_errors=True)  # what a failing conversion leaves behind looks like a store
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    losses = _losses(groups, written)
    rows, row_count = _event_rows(known, groups)
    entry = store_entry(order.recording, store, groups, known.sidecars, updated_utc=order.updated_utc, sss=sss)
    return ConvertedStore(
        entry=entry,
        objects=objects,
        events=rows,
        events_row_count=row_count,
        duration_s=max(group.duration_s or 0.0 for group in entry.groups or ()),
        stage_seconds=dict(clock.seconds),
        notes=_disclose(order.recording.path, [*notes, coarse(losses)]),
        quantisation=pack_losses(losses),
    )


def _read(recording: DiscoveredRecording, source: Path) -> _Known:
    """Format, header and sidecars, after every file was found to hold its content."""
    one = load().get(recording.format)
    if one is None:
        detail = f"no reader for the format {recording.format!r} is installed"
        raise RecordingFailed(FailureCode.UNSUPPORTED_FORMAT, detail=detail)
    for path in (*recording.members, *recording.companions):
        require_content(source / path)
    header = one.header(source / recording.path)
    _check_servable(header, recording.modality)
    sidecars = with_own_events(read_sidecars(recording, source), recording, one, source / recording.path)
    return _Known(recording=recording, source=source, one=one, header=header, sidecars=sidecars)


def _check_servable(header: Header, modality: str | None) -> None:
    if header.n_trials > 1:
        raise RecordingFailed(FailureCode.NOT_CONTINUOUS, detail=f"the file holds {header.n_trials} trials")
    if header.rate_hz is None:
        return
    if not 0 < header.rate_hz < math.inf:
        raise corrupt(f"the file declares a rate of {header.rate_hz:g} Hz")
    if header.n_samples is not None:
        ratio = resampling_ratio(header.rate_hz, modality)
        if served_length(header.n_samples, ratio) < 1:
            detail = f"{header.n_samples} samples at {header.rate_hz:g} Hz leave none to serve"
            raise RecordingFailed(FailureCode.EMPTY_RECORDING, detail=detail)


def _write(known: _Known, store: Path, work: Path) -> tuple[SssEntry | None, Documents, tuple[WrittenGroup, ...]]:
    """Write the chunks; what is to be disclosed when the recording was corrected first, and the store's documents and groups."""
    readable = work / "readable"
    readable.mkdir()
    target, sss = known.one.read_target(known.primary, known.header, readable), None
    if known.header.maxshield:
        target, sss = corrected(known.recording, known.source, work)
    mapped = work / "mapped"
    mapped.mkdir()
    given = EngineInput(
        target=target,
        source_format=known.one.source_format,
        route=known.one.route(known.header),
        header=known.header,
        modality=known.recording.modality,
        channels=None
        if known.sidecars.channels is None
        else respelled(known.sidecars.channels.frame, known.header.respelled),
        events=_events_frame(known.sidecars.events),
        scratch=mapped,
        windows=known.one.windows if isinstance(known.one, ReadsWindows) else None,
    )
    documents, written = write_chunks(given, store)
    restore_labels(documents, known.header.respelled)
    return sss, documents, written


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
    known: _Known, documents: Documents, provenance: Provenance, sss: SssEntry | None, store: Path
) -> ChannelsMatch | None:
    """Complete the documents and write them: from now on the store is one."""
    matched = annotate(
        documents,
        source_path=known.recording.path,
        source_format=known.one.source_format,
        sidecars=known.sidecars,
        provenance=provenance.model_copy(update={"derived": sss is not None}).model_dump(mode="json"),
        sss=None if sss is None else sss.model_dump(mode="json"),
    )
    documents.write(store)
    return matched


def _gate(known: _Known, store: Path, matched: ChannelsMatch | None) -> tuple[tuple[StoreGroup, ...], list[str]]:
    """The store's groups when it may be served, and what is to be said about it."""
    groups = read_groups(store)
    channels = known.sidecars.channels
    mismatch = check_channels(groups, known.header, None if channels is None else channels.n_rows)
    check_groups(groups, known.header)
    notes = [*known.header.notes, *known.sidecars.notes]
    if matched is not None:
        notes.extend(matched.notes(known.recording.sidecars.channels or ""))
    if mismatch is not None:
        disclose_mismatch(store, mismatch)
        notes.append(f"channels.tsv lists {mismatch.channels_tsv} channels, the store has {mismatch.in_store}")
    return groups, notes


def _disclose(path: str, notes: list[str | None]) -> tuple[str, ...]:
    """Log what is to be said about a recording; as it may be published."""
    said = tuple(public for note in notes if note and (public := publishable(note)))
    ours = logging.getLogger("zarrmill")
    if ours.level == logging.NOTSET:
        # biosigIO turns the root logger off when it is imported, and with it every logger that has no level of its own
        ours.setLevel(logging.WARNING)
    for note in said:
        _log.warning("%s: %s", path, note)
    return said


def _losses(groups: tuple[StoreGroup, ...], written: tuple[WrittenGroup, ...]) -> list[GroupLoss]:
    """What quantising cost, with the names and units that the finished store has."""
    return [
        GroupLoss(
            group=group.name,
            labels=group.labels,
            types=tuple(str(channel["channel_type"]) for channel in group.attributes["channels"]),
            units=tuple(str(channel["unit"]) for channel in group.attributes["channels"]),
            channels=own.losses,
        )
        for group, own in zip(groups, written, strict=True)
    ]


def _event_rows(known: _Known, groups: tuple[StoreGroup, ...]) -> tuple[bytes | None, int]:
    events = known.sidecars.events
    if events is None:
        return None, 0
    rates = [(group.name, float(group.attributes["rate"])) for group in groups]
    return event_rows(events, zarr=known.recording.zarr, entities=known.recording.entities, groups=rates)
