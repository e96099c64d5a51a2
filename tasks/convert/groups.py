"""Writes the channel groups of a recording through biosigIO's writer, one at a time, each into a folder of its own."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from tasks.convert.codes import Codes
from tasks.convert.frame import Frame
from tasks.convert.importing import imported
from tasks.convert.labels import part_labels
from tasks.convert.pieces import Piece
from tasks.convert.resampling import served_length
from tasks.convert.seams import GroupSeams, passing_through

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tasks.convert.documents import Documents
    from tasks.convert.pieces import EngineInput, Part, Rates

__all__ = ["written_groups"]


def written_groups(given: EngineInput, part: Part) -> Iterator[Piece]:
    """Write the groups of ``part``."""
    from biosigio.bids import apply_channels_tsv

    with imported(given, part) as (recording, samples):
        labels, renamed = part_labels(given, part, list(recording.channels))
        recording.channels = dict(zip(labels, recording.channels.values(), strict=True))
        recording.signals = frame = Frame(labels, samples)
        if given.channels is not None:
            apply_channels_tsv(recording, given.channels)
        places = part.rows if part.rows is not None and len(part.rows) == len(labels) else tuple(range(len(labels)))
        if given.modality:
            for channel in recording.channels.values():
                channel["modality"] = given.modality.upper()
        for modality in dict.fromkeys(str(channel["modality"]) for channel in recording.channels.values()):
            own = [label for label in labels if str(recording.channels[label]["modality"]) == modality]
            rows = tuple(place for place, label in zip(places, labels, strict=True) if label in set(own))
            rates = given.rates(modality, rows, float(recording.channels[own[0]]["sample_frequency"]))
            store, documents, seams = _written(given, _of(recording, frame.part(own), rates), rates, rows[0])
            yield Piece(
                store=store,
                documents=documents,
                part=part,
                rates=rates,
                rows=rows,
                losses=tuple(seams.losses),
                units=recording.metadata.get("channels_tsv_units"),
                renamed=dict(renamed),
            )
    shutil.rmtree(given.scratch / "samples", ignore_errors=True)


def _of(recording: Any, frame: Frame, rates: Rates) -> Any:
    """A recording of the channels of ``frame``, at the rate that biosigIO is told."""
    from biosigio import Recording

    group = Recording()
    group.signals = frame
    group.channels = {
        label: {**recording.channels[label], "sample_frequency": rates.ratio.denominator} for label in frame.columns
    }
    group.metadata = dict(recording.metadata)
    return group


def _written(given: EngineInput, group: Any, rates: Rates, number: int) -> tuple[Path, Documents, GroupSeams]:
    n_channels = len(group.channels)
    codes_bytes = n_channels * served_length(len(group.signals), rates.ratio) * 10 // 3
    folder = None if codes_bytes <= given.held_bytes else given.scratch / "codes"
    if folder is not None:
        folder.mkdir()
    seams = GroupSeams(rates.ratio, Codes(n_channels, folder))
    store = given.scratch / f"group-{number}.zarr"
    with passing_through(seams):
        group.to_zarr(str(store), events_df=given.events, **rates.options())
    documents = seams.documents(n_channels)
    if folder is not None:
        shutil.rmtree(folder)
    return store, documents, seams
