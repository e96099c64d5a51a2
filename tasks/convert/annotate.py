"""What a store says beside biosigIO's own attributes: provenance, sidecar facts, and no local path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract.store import LABELS_DEDUPLICATED
from tasks.convert.documents import ROOT
from tasks.convert.match import ChannelsMatch, match_channels
from tasks.convert.store import edit_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tasks.convert.documents import Documents
    from tasks.convert.gate import CountMismatch
    from tasks.convert.sidecars import Electrodes, ReadSidecars

__all__ = ["annotate", "disclose_mismatch"]

_MOST_NOTES = 20
_TOLD = frozenset({LABELS_DEDUPLICATED, "channels_tsv_units", "edf_tolerant_read_reason", "startdate"})
"""Members of ``recording_metadata`` that are kept though they are no numbers."""


def annotate(
    documents: Documents,
    *,
    source_path: str,
    source_format: str,
    sidecars: ReadSidecars,
    provenance: Mapping[str, Any],
    sss: Mapping[str, Any] | None,
) -> ChannelsMatch | None:
    """Complete the attributes of a store whose chunks the engine has just written.

    Returns
    -------
    ChannelsMatch or None
        How the names of channels.tsv and the labels meet; None when none was applied.
    """
    _events(documents, sidecars)
    matched = _matched(documents, sidecars)
    positions = None if sidecars.electrodes is None else _with_renamed(sidecars.electrodes.positions, documents)

    def root(values: dict[str, Any]) -> None:
        metadata = _impersonal(values.get("recording_metadata", {}))
        metadata["source_file"] = source_path
        metadata["source_format"] = values["source_format"] = source_format
        values["recording_metadata"] = dict(sorted(metadata.items()))
        values["nemar"] = dict(provenance)
        if sss is not None:
            values["sss"] = dict(sss)
        if sidecars.power_line_frequency_hz is not None:
            values["power_line_frequency"] = sidecars.power_line_frequency_hz
        if positions is not None and sidecars.electrodes is not None:
            _place(values, positions, sidecars.electrodes)
        if sidecars.channels_unreadable:
            values["channels_tsv_read_error"] = True
        if matched is not None:
            values["channels_tsv_match"] = matched.as_attribute()
        if sidecars.events_source is not None:
            values["events_source"] = sidecars.events_source
        if sidecars.notes:
            values["sidecar_notes"] = list(sidecars.notes[:_MOST_NOTES])

    documents.edit(ROOT, root)
    return matched


def _impersonal(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the engine read of a file's header, less every text that its owner could have written.

    biosigIO leaves out fields that are about people by their names. That is not enough: EEGLAB's ``condition`` and
    ``session`` are free text, and what it says of a renamed data file is that file's former name.
    """
    return {key: value for key, value in metadata.items() if key in _TOLD or isinstance(value, int | float)}


def disclose_mismatch(store: Path, mismatch: CountMismatch) -> None:
    """Write the root attribute ``channels_tsv_count_mismatch``."""
    edit_attributes(store, lambda values: values.update(channels_tsv_count_mismatch=mismatch.as_attribute()))


def _matched(documents: Documents, sidecars: ReadSidecars) -> ChannelsMatch | None:
    if sidecars.channels is None:
        return None
    groups = documents.attributes()["channel_groups"]
    labels = [str(channel["label"]) for group in groups for channel in documents.attributes(group)["channels"]]
    return match_channels([str(name) for name in sidecars.channels.frame["name"]], labels, _renamed(documents))


def _renamed(documents: Documents) -> Mapping[str, str]:
    """Labels that were changed because the file repeats them, each with the file's own."""
    renamed = documents.attributes().get("recording_metadata", {}).get(LABELS_DEDUPLICATED, {})
    return {str(label): str(original) for label, original in renamed.items()}


def _place(values: dict[str, Any], positions: Mapping[str, tuple[float, float, float]], electrodes: Electrodes) -> None:
    values["electrode_positions"] = {label: list(point) for label, point in positions.items()}
    values["electrode_coordinate_system"] = electrodes.system
    values["electrode_coordinate_units"] = electrodes.units


def _with_renamed(
    positions: Mapping[str, tuple[float, float, float]], documents: Documents
) -> dict[str, tuple[float, float, float]]:
    """Positions, plus those of channels whose repeated label was changed: they keep their file label's place."""
    found = dict(positions)
    for label, original in _renamed(documents).items():
        if original in positions:
            found.setdefault(label, positions[original])
    return found


def _events(documents: Documents, sidecars: ReadSidecars) -> None:
    """Keep the events group only where there are events; biosigIO always writes one."""
    if sidecars.events is None:
        documents.remove("events")
    elif sidecars.value_descriptions is not None:
        described = dict(sidecars.value_descriptions)
        documents.edit("events", lambda values: values.update(value_descriptions=described))
