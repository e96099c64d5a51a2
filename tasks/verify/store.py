"""One served store, compared with its source from end to end."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.errors import NotNow, PublishError, RecordingFailed, Refused, StorageError
from contract.layout import ROOT_METADATA, store_key
from infra.storage.protocol import StandingObject
from tasks.sources.protocol import SourceChanged, is_absent_id
from tasks.verify.channels import check_channels
from tasks.verify.events import check_events, check_rows, events_of
from tasks.verify.groups import open_groups
from tasks.verify.metadata import check_entry, check_root, check_sidecars
from tasks.verify.objects import body_digest, check_objects
from tasks.verify.own_events import own_events
from tasks.verify.pyramid import check_pyramid
from tasks.verify.rates import check_declared, check_rates
from tasks.verify.recording.opening import open_recording
from tasks.verify.report import NoVerdict, Report, Unverifiable
from tasks.verify.samples import check_samples
from tasks.verify.served import ServedStore
from tasks.verify.tables import read_json, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contract.index import StoreEntry
    from db.dataset_values import Dataset
    from db.store_verdicts import ServedStoreRow
    from infra.storage.protocol import Target
    from tasks.read.place import Place
    from tasks.sources.protocol import Source
    from tasks.verify.events import Event
    from tasks.verify.events_file import EventsFile
    from tasks.verify.groups import Opened
    from tasks.verify.report import Found
    from tasks.verify.sources import SourceChoice

__all__ = ["Judged", "Surroundings", "bytes_as_left", "verify_store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all stores of a dataset are compared with.

    Parameters
    ----------
    contract_base
        As the served index says.
    entries
        Of the served index, by store path.
    events_file
        None where the dataset serves none.
    place
        Where stores are read: the target, or an archive over HTTP.
    seed
        Decides, with the store's path, which windows are compared.
    thorough
        Read every store whole, also one of which only the root has changed since it was verified.
    by_bytes
        Compare the objects' bytes also where the target tells their etags.
    """

    dataset: Dataset
    target: Target
    sources: SourceChoice
    contract_base: str
    entries: Mapping[str, StoreEntry]
    events_file: EventsFile | None
    place: Place
    seed: int
    thorough: bool = False
    by_bytes: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a store. ``whole``: it was read whole; else only its root had changed since it was verified."""

    found: Found
    whole: bool


def verify_store(around: Surroundings, row: ServedStoreRow, scratch: Path) -> Judged:
    """Compare a store; ``scratch`` is an empty folder for its source, to be removed by the caller.

    A store of which only the root changed since its body was verified, from the same source, is compared by its objects, its
    root and its entry in the index; any other one is read whole.

    Raises
    ------
    NoVerdict
        Machine, network or the moment do not let it be judged.
    """
    try:
        return _verify(around, row, scratch)
    except (StorageError, PublishError, NotNow, Refused) as error:
        raise NoVerdict(error.sentence) from error
    except (OSError, MemoryError) as error:
        raise NoVerdict(f"it could not be read: {type(error).__name__}") from error


def bytes_as_left(around: Surroundings, row: ServedStoreRow) -> bool:
    """Whether the bytes of all objects are those that the conversion left; True where those are not known.

    Raises
    ------
    NoVerdict
        They could not be read.
    """
    try:
        return (
            not row.digests
            or around.target.store_digests(store_key(around.dataset.dataset_id, row.zarr)) == row.digests
        )
    except (StorageError, OSError) as error:
        raise NoVerdict("its objects could not be read") from error


def _verify(around: Surroundings, row: ServedStoreRow, scratch: Path) -> Judged:
    report = Report(row.path)
    key = store_key(around.dataset.dataset_id, row.zarr)
    check_objects(around.target.list_store(key), row.digests, row.etags, report)
    if around.by_bytes and row.etags is not None and not report.mismatches:
        read = around.target.store_digests(key) or {}
        check_objects({name: StandingObject(*one) for name, one in read.items()}, row.digests, None, report)
    served = ServedStore(around.place, key)
    try:
        judged = _compare(around, row, served, scratch, report)
    finally:
        served.close()
    if served.trouble is not None:
        raise NoVerdict("it could not be read")
    return judged


def _compare(around: Surroundings, row: ServedStoreRow, served: ServedStore, scratch: Path, report: Report) -> Judged:
    root = served.whole(ROOT_METADATA)
    opened = open_groups(served, report)
    whole = around.thorough or row.proved_body is None or row.proved_body != body_digest(row.digests)
    inputs = {path: content for path, content in row.inputs if not is_absent_id(content)}
    wanted = (
        inputs if whole else {path: content for path, content in inputs.items() if path.endswith((".json", ".tsv"))}
    )
    if opened is not None:
        source = around.sources.of(inputs)
        fetched = _fetch(source, wanted, scratch, report)
        sidecars = _json_sidecars(row, wanted, scratch) if fetched else []
        events, events_known = _events(row, wanted, scratch) if fetched else (None, False)
        check_root(
            opened,
            around.dataset,
            path=row.path,
            zarr=row.zarr,
            contract_base=around.contract_base,
            report=report,
        )
        check_entry(around.entries.get(row.zarr), opened, events, events_known=events_known, report=report)
        as_recorded = True
        if whole:
            at = scratch if fetched else None
            as_recorded = _check_body(row, served, opened, around.seed, source=at, report=report)
        if fetched:
            check_sidecars(opened, sidecars, report)
            check_declared(opened, sidecars, report, as_recorded=as_recorded)
        if events_known:
            check_events(served, opened, events, report)
            check_rows(around.events_file, row.zarr, opened, events, report)
        if report.mismatches and fetched and not source.unchanged(wanted):
            raise NoVerdict("its source changed while it was compared")
    if root != served.whole(ROOT_METADATA):
        raise NoVerdict("it was replaced while it was read")
    return Judged(report.found(), whole)


def _fetch(source: Source, inputs: Mapping[str, str], scratch: Path, report: Report) -> bool:
    """Bring the inputs; False when the archive does not hold one of them, which stands in the report."""
    needed, free = source.copied_bytes(inputs), shutil.disk_usage(scratch).free
    if needed > free:
        raise NoVerdict(f"its source takes {needed:,} bytes of scratch, and {free:,} are free")
    try:
        source.fetch(dict(inputs), scratch)
    except SourceChanged as error:
        raise NoVerdict("its source has changed since; the next conversion follows it") from error
    except RecordingFailed as error:
        report.could_not(f"its source is not there any more: {error.detail or error.sentence}")
        return False
    if not source.unchanged(inputs):
        raise NoVerdict("its source has changed since; the next conversion follows it")
    return True


def _json_sidecars(row: ServedStoreRow, inputs: Mapping[str, str], scratch: Path) -> list[dict[str, Any]]:
    """The modality's JSON sidecars that apply, from the root of the dataset to the recording."""
    if row.modality is None:
        return []
    ending = f"_{row.modality}.json"
    names = [path for path in inputs if f"_{path.rpartition('/')[2]}".endswith(ending)]
    names.sort(key=lambda path: (path.count("/"), path.rpartition("/")[2].count("_"), path))
    return [read_json(scratch / path) for path in names]


def _sidecar(inputs: Mapping[str, str], ending: str) -> str | None:
    """The only input of this ending; a sidecar at the top of the dataset may be called by the ending alone."""
    found = [path for path in inputs if f"_{path.rpartition('/')[2]}".endswith(ending)]
    return found[0] if len(found) == 1 else None


def _events(row: ServedStoreRow, inputs: Mapping[str, str], scratch: Path) -> tuple[Sequence[Event] | None, bool]:
    """The events, and whether they are known: a table that is not plain is no witness, and neither is an absent one."""
    path = _sidecar(inputs, "_events.tsv")
    if path is None:
        if any(name.endswith("events.tsv") for name, _ in row.inputs):
            return None, False
        return own_events(scratch / row.path if row.path in inputs else None, row.format)
    table = read_table(scratch / path)
    events = None if table is None else events_of(table)
    return events, events is not None


def _check_body(
    row: ServedStoreRow,
    served: ServedStore,
    opened: Opened,
    seed: int,
    *,
    source: Path | None,
    report: Report,
) -> bool:
    """Everything below the root: every array decoded, levels, channels, rates, samples.

    Whether rates and lengths of all groups are known to be the recording's.
    """
    extremes = {group.name: check_pyramid(served, group, report) for group in opened.groups}
    if source is None:
        return False
    as_recorded = False
    channels = _sidecar(dict(row.inputs), "_channels.tsv")
    usable = channels is not None and not opened.root.channels_tsv_read_error and (source / channels).exists()
    sidecar = read_table(source / channels) if channels is not None and usable else None
    work = source / ".work"
    work.mkdir()
    try:
        with open_recording(source / row.path, row.format, work) as reading:
            rows = check_channels(opened, reading, sidecar, report)
            as_recorded = check_rates(rows, reading, row.modality, report) and len(rows) == len(opened.groups)
            if opened.root.sss is not None:
                report.could_not("its samples were corrected by Signal-Space Separation, which is not done again")
                return as_recorded
            for number, one in enumerate(rows):
                rng = np.random.default_rng([seed, zlib.crc32(row.zarr.encode()), number])
                check_samples(served, one, reading, extremes=extremes[one.group.name], rng=rng, report=report)
    except Unverifiable as error:
        report.could_not(str(error))
    return as_recorded
