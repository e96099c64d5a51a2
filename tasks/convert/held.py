"""The in-memory route: biosigIO holds a file whole and writes it, one group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasks.convert.labels import part_labels
from tasks.convert.pieces import Piece
from tasks.convert.seams import GroupSeams, passing_through

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.convert.pieces import EngineInput, Part

__all__ = ["hold"]


def hold(given: EngineInput, part: Part) -> Iterator[Piece]:
    """Write the groups of ``part``, which is read whole."""
    from biosigio import Recording
    from biosigio.bids import apply_channels_tsv

    recording = Recording.from_file(str(part.path), importer=given.source_format, bids_channels="off")
    renamed = _name(recording, given, part)
    if given.channels is not None:
        apply_channels_tsv(recording, given.channels)
    labels = list(recording.channels)
    places = part.rows if part.rows is not None and len(part.rows) == len(labels) else tuple(range(len(labels)))
    if given.modality:
        for channel in recording.channels.values():
            channel["modality"] = given.modality.upper()
    for modality in dict.fromkeys(str(channel["modality"]) for channel in recording.channels.values()):
        own = [label for label in labels if str(recording.channels[label]["modality"]) == modality]
        rows = tuple(places[labels.index(label)] for label in own) if len(own) < len(labels) else places
        group = recording if len(own) == len(labels) else _of(recording, own)
        rates = given.rates(modality, rows, float(recording.channels[own[0]]["sample_frequency"]))
        for label in own:
            group.channels[label]["sample_frequency"] = rates.ratio.denominator
        seams = GroupSeams(rates.ratio)
        store = given.scratch / f"group-{rows[0]}.zarr"
        with passing_through(seams):
            group.to_zarr(str(store), events_df=given.events, **rates.options())
        seams.check(len(own))
        yield Piece(
            store=store,
            part=part,
            rates=rates,
            rows=rows,
            losses=tuple(seams.losses),
            units=recording.metadata.get("channels_tsv_units"),
            renamed=renamed,
        )


def _name(recording: Any, given: EngineInput, part: Part) -> dict[str, str]:
    """Give the channels the names they have in the whole recording."""
    read = list(recording.channels)
    names, renamed = part_labels(given, part, read)
    if renamed:
        recording.channels = dict(zip(names, recording.channels.values(), strict=True))
        recording.signals.columns = names
    return dict(renamed)


def _of(recording: Any, labels: list[str]) -> Any:
    """A recording of some channels."""
    from biosigio import Recording

    group = Recording()
    group.signals = recording.signals[labels]
    group.channels = {label: dict(recording.channels[label]) for label in labels}
    group.metadata = dict(recording.metadata)
    return group
