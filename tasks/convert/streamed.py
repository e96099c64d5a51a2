"""The streaming route: biosigIO reads a file window by window and writes it, one group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasks.convert.labels import part_labels
from tasks.convert.pieces import Piece
from tasks.convert.seams import GroupSeams, GroupSource, passing_through
from tasks.convert.windowed import opened
from tasks.formats.memory import READ_CHUNK_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tasks.convert.pieces import EngineInput, Part

__all__ = ["stream"]


def stream(given: EngineInput, part: Part) -> Iterator[Piece]:
    """Write the groups of ``part``, of which a window at a time is in memory, or one channel."""
    from biosigio.exporters.zarr_stream import stream_to_zarr

    modality = given.modality.upper() if given.modality else None
    source = _opened(given, part, modality)
    try:
        if source.n_samples == 0 or not source.channels:
            raise ValueError("No signals loaded")
        renamed = _name(source, given, part)
        units = _apply(source, given, modality)
        places = part.rows if part.rows is not None and len(part.rows) == len(source.channels) else None
        for own in dict.fromkeys(str(channel["modality"]) for channel in source.channels):
            channels = [channel for channel in source.channels if str(channel["modality"]) == own]
            rows = tuple(channel["idx"] if places is None else places[channel["idx"]] for channel in channels)
            rates = given.rates(own, rows, source.sfreq)
            group = GroupSource(source, channels, float(rates.ratio.denominator), _known(source))
            seams = GroupSeams(rates.ratio, group)
            store = given.scratch / f"group-{rows[0]}.zarr"
            with passing_through(seams):
                stream_to_zarr(
                    str(part.path),
                    str(store),
                    events_df=given.events,
                    bids_channels="off",
                    recording_metadata={"source_format": given.source_format},
                    read_chunk_seconds=READ_CHUNK_SECONDS * rates.native_hz / rates.ratio.denominator,
                    scratch_dir=str(given.scratch),
                    **rates.options(),
                )
            seams.check(len(channels))
            yield Piece(
                store=store,
                part=part,
                rates=rates,
                rows=rows,
                losses=tuple(seams.losses),
                units=units,
                renamed=renamed,
            )
    finally:
        source.close()


def _opened(given: EngineInput, part: Part, modality: str | None) -> Any:
    from biosigio.exporters.zarr_stream import _open_stream_source
    from biosigio.importers.meg import _patch_ctf_coil_aliases

    if given.windows is not None:
        return opened(given.windows, part.path, given.channels, modality)
    # Only the in-memory importer teaches MNE the other spellings of CTF's head coils (one dataset has 380 such files).
    _patch_ctf_coil_aliases()
    return _open_stream_source(str(part.path), modality)


def _apply(source: Any, given: EngineInput, modality: str | None) -> Mapping[str, Any] | None:
    """Types and units of the channels.tsv; what it did to the units."""
    from biosigio.bids import apply_channels_tsv_to_stream

    if given.channels is None:
        return None
    account: Mapping[str, Any] | None = apply_channels_tsv_to_stream(
        source.channels, given.channels, force_modality=modality
    )
    return account


def _name(source: Any, given: EngineInput, part: Part) -> dict[str, str]:
    """Give the channels the names they have in the whole recording."""
    names, renamed = part_labels(given, part, [str(channel["label"]) for channel in source.channels])
    for channel, name in zip(source.channels, names, strict=True):
        channel["label"] = name
    return dict(renamed)


def _known(source: Any) -> dict[str, Any]:
    """What the in-memory route keeps of a file and biosigIO's streaming route forgets."""
    known = dict(source.extra_metadata)
    reader = getattr(source, "_reader", None)
    if reader is not None:
        from datetime import timedelta

        known["startdate"] = reader.getStartdatetime() + timedelta(seconds=known.get("edf_first_record_onset", 0.0))
    return known
