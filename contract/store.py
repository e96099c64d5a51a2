"""The attributes of a store: what is added to it, and what is read back from it.

What we add (``Provenance``, ``SssEntry``) is closed. What biosigIO writes is read tolerantly: the fields that something
here relies on are checked, the others are kept.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from contract.closed import Closed, Commit, DatasetId, Hertz, Listed, NonEmpty, Presence
from contract.index import SssEntry
from contract.layout import ENGINE_VERSION

__all__ = [
    "ADDED_ROOT_ATTRIBUTES",
    "EVENTS_OF_THE_RECORDING",
    "LABELS_DEDUPLICATED",
    "NOTE",
    "PUBLISH_ID",
    "STORE_FORMAT",
    "STORE_FORMAT_VERSION",
    "VALUE_DESCRIPTIONS",
    "ChannelAttributes",
    "ChannelsTsvCountMismatch",
    "ChannelsTsvMatch",
    "ChannelsTsvUnits",
    "EventsAttributes",
    "GroupAttributes",
    "Level0Attributes",
    "Provenance",
    "RootAttributes",
    "ViewAttributes",
]

STORE_FORMAT = "biosigio-zarr"
STORE_FORMAT_VERSION = 2
ADDED_ROOT_ATTRIBUTES = (
    "nemar",
    "sss",
    "power_line_frequency",
    "electrode_positions",
    "electrode_coordinate_system",
    "electrode_coordinate_units",
    "channels_tsv_read_error",
    "channels_tsv_match",
    "channels_tsv_count_mismatch",
    "events_source",
    "sidecar_notes",
    "publish_id",
)
"""Root attributes that are ours; every other one is biosigIO's."""
NOTE = (
    "A serving copy. Array 0 of each group is the signal: at most at its modality's rate, anti-aliased, quantised to "
    "int16. Arrays below view are envelopes for display, not for inference. The BIDS source stays authoritative."
)
"""The root attribute `note`, the same for every route by which a recording was converted."""
LABELS_DEDUPLICATED = "channel_labels_deduplicated"
"""Member of `recording_metadata`: labels that were changed because the file repeats them, with the file's own."""
EVENTS_OF_THE_RECORDING = "recording"
"""Value of the root attribute `events_source`."""
PUBLISH_ID = "publish_id"
"""Root attribute of a store in an object store: another one after every publish, so that readers see replacements."""
VALUE_DESCRIPTIONS = "value_descriptions"
"""Attribute of the events group, ours: event code to description."""

_URL = r"^(https://|http://127\.0\.0\.1(:[0-9]+)?/)"
_Position = Annotated[tuple[float, float, float], Strict(False)]


class Provenance(Closed):
    """The root attribute `nemar`: what a store is, for a reader who opens it without its index."""

    dataset_id: DatasetId = Field(description="Two lower-case letters and six digits.")
    doi: str | None = Field(default=None, description="The dataset's DOI.")
    license: str | None = Field(default=None, description="The dataset's licence.")
    citation: str | None = Field(default=None, description="How to cite the dataset.")
    source_commit: Commit = Field(description="State of the source that the store was made from.")
    source_tree: Annotated[Literal["raw"], Presence.CONSTANT] = Field(default="raw", description="Always `raw`.")
    derived: Annotated[bool, Presence.CONSTANT] = Field(
        default=False, description="Whether the signal is processed; then `sss` stands beside this."
    )
    hed_version: str | None = Field(default=None, description="HED schema version of the dataset's annotations.")
    engine_version: Annotated[NonEmpty, Presence.CONSTANT] = Field(
        default=ENGINE_VERSION, description="Generation of discovery and dispatch."
    )
    contract_url: str = Field(pattern=_URL, description="The store's own stable address.")
    provenance_fetch_failed: Annotated[bool, Presence.CONSTANT] = Field(
        default=False, description="Whether the dataset's facts could not be read, so that nulls mean nothing."
    )


class _Read(BaseModel):
    """Attributes written by another program: what we need is checked, everything else is kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)


class ChannelsTsvUnits(_Read):
    """The root attribute `channels_tsv_units`: what a channels.tsv did to units."""

    converted: int = Field(ge=0, description="Channels converted into the declared unit.")
    relabelled: int = Field(ge=0, description="Channels whose unit was only renamed.")
    kept_importer_unit: int = Field(ge=0, description="Channels that kept the file's unit.")
    units_column_present: bool = Field(description="Whether the sidecar has a `units` column.")


class ChannelsTsvMatch(Closed):
    """The root attribute `channels_tsv_match`: how the names of a channels.tsv and the store's labels meet."""

    matched: int = Field(ge=0, description="Channels that a row speaks of.")
    matched_case_only: int = Field(ge=0, description="Of those, channels whose row differs in case; it is applied.")
    unmatched_channels: int = Field(ge=0, description="Channels without a row; they keep the file's type and unit.")
    unmatched_rows: int = Field(ge=0, description="Names of rows that speak of no channel.")
    unmatched_renamed: int = Field(
        ge=0, description="Of those, names that the file repeats, so that its channels have other labels here."
    )
    examples: dict[str, Listed[str]] = Field(description="At most five of each kind.")


class ChannelsTsvCountMismatch(Closed):
    """The root attribute `channels_tsv_count_mismatch`: a channels.tsv that lists more channels than the file has."""

    channels_tsv: int = Field(ge=0, description="Rows of the sidecar.")
    in_file: int = Field(ge=0, description="Channels of the file's own header.")
    in_store: int = Field(ge=0, description="Channels of the store.")


class RootAttributes(_Read):
    """Attributes of a store's root group."""

    format: Literal["biosigio-zarr"] = Field(description="Written by biosigIO.")
    format_version: Literal[2] = Field(description="Shape of the store.")
    biosigio_version: NonEmpty = Field(description="Release that wrote the store.")
    channel_groups: Listed[str] = Field(description="Names of the channel groups.")
    recording_metadata: dict[str, Any] = Field(
        default_factory=dict, description="What the importer knew; `source_file` in it is the recording's BIDS path."
    )
    channels_tsv_units: ChannelsTsvUnits | None = Field(default=None, description="Present when a sidecar applied.")
    nemar: Provenance | None = Field(default=None, description="Provenance, added by us.")
    sss: SssEntry | None = Field(default=None, description="The correction, added by us when one was applied.")
    power_line_frequency: Hertz | None = Field(default=None, description="Mains frequency in Hz, added by us.")
    electrode_positions: dict[str, _Position] | None = Field(default=None, description="Label to x, y, z, added by us.")
    electrode_coordinate_system: str | None = Field(default=None, description="Their coordinate system, or empty.")
    electrode_coordinate_units: str | None = Field(default=None, description="Their unit, or empty.")
    channels_tsv_read_error: bool | None = Field(
        default=None, description="True when a channels.tsv applies and could not be used, added by us."
    )
    channels_tsv_match: ChannelsTsvMatch | None = Field(
        default=None, description="How names of channels.tsv and labels meet, added by us when one was applied."
    )
    channels_tsv_count_mismatch: ChannelsTsvCountMismatch | None = Field(
        default=None, description="Added by us when channels.tsv lists more channels than the file and the store have."
    )
    events_source: Literal["recording"] | None = Field(
        default=None,
        description="`recording` when no events.tsv applies and the events are those of the recording's own file, added by us.",
    )
    sidecar_notes: Listed[str] | None = Field(
        default=None, description="What is wrong with a sidecar, a sentence each, at most 20, added by us."
    )
    publish_id: NonEmpty | None = Field(
        default=None,
        description="Another one after each publish of the store to an object store, added by us; absent in a folder.",
    )


class ChannelAttributes(_Read):
    """One channel of a group."""

    label: str = Field(description="The channel's name.")
    channel_type: str = Field(description="Its type, such as EEG or TRIG.")
    modality: str = Field(description="The group's modality.")
    unit: str = Field(description="Unit of the physical values.")
    row_index: int = Field(ge=0, description="Its row in the level-0 array.")
    scale: float = Field(description="Factor from digital to physical.")
    offset: float = Field(description="Offset from digital to physical.")
    usable_for_inference: bool = Field(description="False for triggers, clocks and channels with filled gaps.")
    nonfinite_samples: int | None = Field(default=None, ge=0, description="Samples that were not finite.")
    bids_unit: str | None = Field(default=None, description="A declared unit that was noted, not adopted.")


class GroupAttributes(_Read):
    """Attributes of a channel group."""

    modality: str = Field(description="Modality of its channels.")
    rate: Hertz = Field(description="Served rate in Hz.")
    original_rate: Hertz = Field(description="Rate of the source in Hz.")
    n_channels: int = Field(ge=0, description="Channels.")
    n_samples: int = Field(ge=0, description="Samples per channel.")
    channels: Listed[ChannelAttributes] = Field(description="The channels, in row order.")
    n_view_levels: int = Field(ge=0, description="View levels that exist.")
    view_levels: Listed[int] = Field(description="Their numbers, from 1 without a gap.")
    view_downsample: int = Field(ge=2, description="Ratio between neighbouring levels.")
    view_chunk_columns: int = Field(ge=1, description="Columns in a chunk of a view level.")
    chunk_seconds: float = Field(gt=0, description="Seconds in an inner chunk of level 0.")
    shard_seconds: float = Field(gt=0, description="Seconds in a shard of level 0.")


class Level0Attributes(_Read):
    """Attributes of a group's signal array."""

    level: Literal[0] = Field(description="Full resolution.")
    rate: Hertz = Field(description="Served rate in Hz.")
    source_rate_hz: Hertz = Field(description="Rate of the source in Hz.")
    downsample_factor: Literal[1] = Field(description="Always 1.")
    kind: Literal["signal"] = Field(description="Always `signal`.")
    chunk_samples: int = Field(ge=1, description="Samples in an inner chunk.")
    shard_samples: int = Field(ge=1, description="Samples in a shard.")
    usable_for_inference: bool = Field(description="Whether the array may be analysed.")
    scale: Listed[float] = Field(description="Factor of each channel, in row order.")
    offset: Listed[float] = Field(description="Offset of each channel, in row order.")


class ViewAttributes(_Read):
    """Attributes of one view level."""

    level: int = Field(ge=1, description="Its number.")
    downsample_factor: int = Field(ge=2, description="Samples of level 0 behind one column.")
    kind: Literal["minmax_envelope"] = Field(description="Least and greatest value of each column.")
    usable_for_inference: Literal[False] = Field(description="Views are for looking only.")


class EventsAttributes(_Read):
    """Attributes of the events group."""

    n_events: int = Field(ge=0, description="Events in the store.")
    label_map: dict[str, str] = Field(description="Event code to label.")
    value_descriptions: dict[str, str] | None = Field(
        default=None, description="Event code to the dataset's description, added by us."
    )
