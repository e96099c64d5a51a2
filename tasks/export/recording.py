"""One recording, or a part of it, out of its served copy into a VneuroTK file."""

from __future__ import annotations

import hashlib
import math
import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract.errors import Refused
from contract.recipe_making import group_of
from contract.times import utc_stamp
from tasks.export.content import Planned, Wanted, plan
from tasks.export.samples import Signal, read_part, read_trials
from tasks.export.spool import Spool
from tasks.read.index import find_entry
from tasks.read.store import WAITS_S, read_consistently
from tasks.vneurotk.write_recording import check_content, write_recording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.export.asked import ExportAsked
    from tasks.export.stimuli import Stimuli
    from tasks.read.index import ReadIndex
    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["Exported", "export_recording"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written of one recording.

    Parameters
    ----------
    shape
        (trials, time, channels) of epochs, else (time, channels).
    dropped
        Events whose window leaves the part.
    without_onset, without_image
        Events that no sample is known of, and with stimuli those that name no image.
    stimuli
        What each stimulus ID stands for.
    notes
        What a person should know of the file.
    """

    recording: str
    file: Path
    mode: str
    schema: int
    shape: tuple[int, ...]
    n_trials: int
    dropped: int
    without_onset: int
    without_image: int
    stimuli: Mapping[int, str]
    events_source: str
    store_etag: str
    size_bytes: int
    sha256: str
    notes: tuple[str, ...]


def export_recording(
    place: Place,
    index: ReadIndex,
    recording: str,
    asked: ExportAsked,
    target: Path,
    *,
    stimuli: Stimuli | None = None,
    waits_s: Sequence[float] = WAITS_S,
) -> Exported:
    """Write ``target``, all of it from one version of the store; what stood there stays when anything goes wrong.

    Only the chunks that hold samples of the file are read. Memory does not grow with the file; its folder needs room for its
    samples twice over while it is written.

    Raises
    ------
    Refused
        The question is wrong; the sentence begins with the option. Nothing of the signal was read.
    NotServed
        The recording has failed, is pending, or is not known.
    StorageError
        It cannot be read now.
    OSError
        The file cannot be written.
    """
    folder = _folder_of(target)
    entry = find_entry(index, recording)
    group = group_of(entry, asked.group)
    wanted = Wanted(place=place, index=index, entry=entry, group=group, asked=asked)

    said = {"zarrmill_version": version("zarrmill"), "exported_utc": utc_stamp(datetime.now(UTC))}
    with ExitStack() as held:

        def work(reading: StoreReading) -> tuple[Planned, Spool]:
            held.close()  # what an earlier try has read
            planned = plan(wanted, reading, stimuli)
            check_content(planned.content)
            return planned, _filled(planned, reading, wanted, held, folder)

        planned, spool = read_consistently(place, index.head.dataset_id, entry.zarr, work, waits_s=waits_s)
        write_recording(
            target,
            replace(planned.content, info={**planned.content.info, **said}),
            spool.read,
            schema=asked.schema,
            compression=asked.compression,
            writer=f"zarrmill/{version('zarrmill')}",
        )
    return _told(entry.path, target, asked, planned)


def _filled(planned: Planned, reading: StoreReading, wanted: Wanted, held: ExitStack, folder: Path) -> Spool:
    shape = planned.content.shape
    spool = held.enter_context(Spool(folder, n_rows=math.prod(shape[:-1]), n_channels=shape[-1]))
    signal = Signal(reading, wanted.entry.zarr, wanted.group.name, planned.selection)
    if planned.content.mode == "epochs":
        read_trials(signal, planned.trials, spool)
    else:
        read_part(signal, spool)
    return spool


def _folder_of(target: Path) -> Path:
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise Refused(f"--output: there is no folder {folder}; make it, or name another file.")
    if target.is_dir():
        raise Refused(f"--output: {target} is a folder; name a file in it.")
    return folder


def _told(recording: str, target: Path, asked: ExportAsked, planned: Planned) -> Exported:
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size_bytes = file.tell()
    info: Mapping[str, Any] = planned.content.info
    return Exported(
        recording=recording,
        file=target,
        mode=planned.content.mode,
        schema=asked.schema,
        shape=planned.content.shape,
        n_trials=info["n_trials"],
        dropped=info["n_trials_dropped"],
        without_onset=info["n_events_without_onset"],
        without_image=info["n_events_without_image"],
        stimuli=planned.stimuli,
        events_source=info["events_source"],
        store_etag=info["store_etag"],
        size_bytes=size_bytes,
        sha256=digest,
        notes=planned.notes,
    )
