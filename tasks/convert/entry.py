"""Builds the index entry of a finished store from what stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.index import GroupEntry, SssEntry, StoreEntry, UnitsReport
from tasks.convert.store import attributes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tasks.bids.recording import DiscoveredRecording
    from tasks.convert.sidecars import ReadSidecars
    from tasks.convert.store import StoreGroup

__all__ = ["store_entry"]


def store_entry(
    recording: DiscoveredRecording,
    store: Path,
    groups: Sequence[StoreGroup],
    sidecars: ReadSidecars,
    *,
    updated_utc: str,
    sss: SssEntry | None,
) -> StoreEntry:
    """The entry of ``recording`` in the index."""
    events = sidecars.events
    described = sidecars.value_descriptions
    return StoreEntry(
        path=recording.path,
        zarr=recording.zarr,
        derived=sss is not None,
        updated_utc=updated_utc,
        modalities=tuple(sorted({str(group.attributes["modality"]).lower() for group in groups})),
        groups=tuple(_group(group) for group in groups),
        power_line_frequency=sidecars.power_line_frequency_hz,
        event_description_count=len(described) if events is not None and described is not None else None,
        n_events=None if events is None else events.n_events,
        trial_types=None if events is None else dict(events.trial_types()),
        units_report=_units(store, recording.sidecars.channels),
        channels_tsv_read_error=True if sidecars.channels_unreadable else None,
        split_members=recording.split_members or None,
        sss=sss,
    )


def _group(group: StoreGroup) -> GroupEntry:
    rate = float(group.attributes["rate"])
    return GroupEntry(
        name=group.name,
        modality=str(group.attributes["modality"]),
        rate=rate,
        n_channels=group.shape[0],
        n_samples=group.shape[1],
        duration_s=group.shape[1] / rate,
        source_rate_hz=float(group.level0["source_rate_hz"]),
        n_view_levels=len(group.view_shapes),
        view_chunk_columns=int(group.attributes["view_chunk_columns"]),
        chunk_samples=int(group.level0["chunk_samples"]),
        shard_samples=int(group.level0["shard_samples"]),
    )


def _units(store: Path, sidecar: str | None) -> UnitsReport | None:
    """What biosigIO did to the units, less its map of channels; None when no sidecar was applied."""
    account = attributes(store).get("channels_tsv_units")
    if account is None or sidecar is None:
        return None
    return UnitsReport(
        converted=account["converted"],
        relabelled=account["relabelled"],
        kept_importer_unit=account["kept_importer_unit"],
        units_column_present=account["units_column_present"],
        sidecar=sidecar,
        sidecar_supplied=False,
    )
