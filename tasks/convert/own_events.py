"""Events that stand in the recording's own file, where no events.tsv applies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contract.store import EVENTS_OF_THE_RECORDING
from tasks.convert.sidecars import publishable
from tasks.events.parse import events_of
from tasks.formats.protocol import HoldsEvents

if TYPE_CHECKING:
    from pathlib import Path

    from tasks.bids.recording import DiscoveredRecording
    from tasks.convert.sidecars import ReadSidecars
    from tasks.formats.protocol import RecordingFormat

__all__ = ["with_own_events"]


def with_own_events(
    sidecars: ReadSidecars, recording: DiscoveredRecording, one: RecordingFormat, primary: Path
) -> ReadSidecars:
    """What the sidecars say, and the file's own events where no events.tsv applies; the two are never merged.

    An events.tsv that applies and cannot be used is not replaced by something else than its author meant.
    """
    if recording.sidecars.events is not None or not isinstance(one, HoldsEvents):
        return sidecars
    table = one.events(primary)
    notes = [f"{recording.path}: {note}" for note in table.notes]
    events = events_of(table) if table.rows else None
    if events is not None:
        notes.append(f"no events.tsv applies: the {events.n_events} trials of the file are taken as its events")
    return replace(
        sidecars,
        events=events,
        events_source=None if events is None else EVENTS_OF_THE_RECORDING,
        notes=(*sidecars.notes, *(said for note in notes if (said := publishable(note)))),
    )
