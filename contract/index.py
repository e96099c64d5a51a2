"""index.json, format version 3: what a dataset serves, and why a recording is missing.

``Index`` is the document as it is published from object storage; ``LocalIndex`` is the same document for a folder that
is served on this machine, and differs only in the addresses it allows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, Strict, field_validator, model_validator

from contract.closed import (
    Absent,
    Closed,
    Commit,
    Count,
    DatasetId,
    Dropped,
    Hertz,
    Listed,
    NonEmpty,
    Presence,
    PublicText,
    RelativePath,
    Seconds,
    Size,
    StorePath,
    UtcStamp,
)
from contract.codes import PendingReason
from contract.layout import ENGINE_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "FailureEntry",
    "GroupEntry",
    "Index",
    "IndexHead",
    "Layout",
    "LocalIndex",
    "LocalIndexHead",
    "PendingEntry",
    "SssEntry",
    "StoreEntry",
    "UnitsReport",
]

_HTTPS = r"^https://"
_HTTPS_OR_LOCAL = r"^(https://|http://127\.0\.0\.1(:[0-9]+)?/)"


class GroupEntry(Closed):
    """One channel group of a store, with the geometry that a read recipe needs."""

    name: NonEmpty = Field(description="Name of the group inside the store, such as `eeg_250hz`.")
    modality: str | None = Field(default=None, description="Modality of its channels, in upper case.")
    rate: Hertz | None = Field(default=None, description="Served sampling rate of level 0, in Hz.")
    n_channels: Count | None = Field(default=None, description="Channels in the group.")
    n_samples: Count | None = Field(default=None, description="Samples of each channel at the served rate.")
    duration_s: Seconds | None = Field(default=None, description="Length in seconds, `n_samples / rate`.")
    source_rate_hz: Dropped[Hertz] = Field(default=None, description="Sampling rate of the source, in Hz.")
    n_view_levels: Absent[Count] = Field(default=None, description="View levels that exist; they count from 1.")
    view_chunk_columns: Absent[Size] = Field(default=None, description="Columns in a chunk of a view level.")
    chunk_samples: Absent[Size] = Field(default=None, description="Samples in an inner chunk of level 0.")
    shard_samples: Absent[Size] = Field(default=None, description="Samples in a shard of level 0.")


class SssEntry(Closed):
    """How an actively shielded MEG recording was corrected before it was served."""

    applied: Literal[True] = Field(description="The correction was applied; a recording without it is not served.")
    method: NonEmpty = Field(description="Name of the correction.")
    calibration: NonEmpty = Field(description="Name of the fine-calibration file that was used.")
    cross_talk: NonEmpty = Field(description="Name of the cross-talk file that was used.")
    mne_version: NonEmpty = Field(description="Release of MNE-Python that computed it.")


class UnitsReport(Closed):
    """What a channels.tsv did to the units of a recording. It does not say that it did so without trouble."""

    converted: Count = Field(description="Channels whose samples were converted into the declared unit.")
    relabelled: Count = Field(description="Channels that got the declared unit's name without a change of samples.")
    kept_importer_unit: Count = Field(description="Channels that kept the unit of the recording file.")
    units_column_present: bool = Field(description="Whether the sidecar has a `units` column.")
    sidecar: RelativePath = Field(description="Path of the channels.tsv that applies, in the dataset.")
    sidecar_supplied: bool = Field(
        description="Whether an operator named the sidecar; false when inheritance found it."
    )


class StoreEntry(Closed):
    """One recording that is served."""

    SCHEMA_RULES: ClassVar[Mapping[str, Any]] = {
        "if": {"properties": {"derived": {"const": True}}},
        "then": {"required": ["sss"]},
        "else": {"not": {"required": ["sss"]}},
    }

    path: RelativePath = Field(description="The recording's path in the dataset.")
    zarr: StorePath = Field(description="The store's path relative to `contract_base`; a store's identity.")
    source_tree: Annotated[Literal["raw"], Presence.CONSTANT] = Field(default="raw", description="Always `raw`.")
    derived: bool = Field(description="Whether the served signal is processed, not only resampled and quantised.")
    updated_utc: Absent[UtcStamp] = Field(default=None, description="Start of the run that wrote the store.")
    modalities: Absent[Listed[str]] = Field(default=None, description="Modalities in the store, lower case, sorted.")
    groups: Absent[Listed[GroupEntry]] = Field(default=None, description="Channel groups of the store.")
    power_line_frequency: Dropped[Hertz] = Field(
        default=None, description="Mains frequency in Hz, when the dataset's metadata declares a number."
    )
    event_description_count: Absent[Count] = Field(
        default=None, description="Event codes for which the dataset gives a description."
    )
    n_events: Absent[Count] = Field(default=None, description="Rows of the recording's events.tsv, when it has one.")
    trial_types: Absent[dict[str, Count]] = Field(default=None, description="How often each trial type occurs.")
    units_report: Absent[UnitsReport] = Field(default=None, description="Present when a channels.tsv applied.")
    channels_tsv_read_error: Absent[bool] = Field(
        default=None, description="True when a channels.tsv applies but could not be read; otherwise left out."
    )
    split_members: Absent[Listed[RelativePath]] = Field(
        default=None, description="All files of a recording that is split over several, the first included."
    )
    sss: Absent[SssEntry] = Field(default=None, description="The correction; present exactly when `derived` is true.")

    @field_validator("trial_types")
    @classmethod
    def _sorted_keys(cls, counts: dict[str, int] | None) -> dict[str, int] | None:
        return None if counts is None else dict(sorted(counts.items()))

    @model_validator(mode="after")
    def _disclosed(self) -> StoreEntry:
        if self.derived != (self.sss is not None):
            raise ValueError(f"{self.path!r}: sss is present exactly when derived is true")
        return self


class FailureEntry(Closed):
    """One recording that will not be served until its data or the converter changes."""

    path: RelativePath = Field(description="The recording's path in the dataset.")
    zarr: Absent[StorePath] = Field(default=None, description="Where its store would be.")
    code: NonEmpty = Field(description="Stable code; the known ones are in `codes.md`.")
    reason: NonEmpty = Field(description="A sentence for the person who looks for the recording.")
    detail: PublicText = Field(default=None, description="The cause for an operator, redacted; null when unknown.")
    attempts: Count = Field(default=0, description="Counted attempts; 0 for a verdict that needed none.")


class PendingEntry(Closed):
    """One recording that has no store yet and is still expected to convert."""

    path: RelativePath = Field(description="The recording's path in the dataset.")
    zarr: StorePath = Field(description="Where its store will be.")
    reason: Annotated[PendingReason, Strict(False)] = Field(description="Why it has none; the set is closed.")
    attempts: Count = Field(description="Counted attempts so far; the fifth makes it a failure.")
    last_error: Annotated[PublicText, Presence.DROPPED] = Field(
        default=None, description="Error of the last attempt, redacted."
    )
    last_attempt_utc: Dropped[UtcStamp] = Field(default=None, description="When the last attempt ended.")


class Layout(Closed):
    """Templates of the paths below a dataset, constant for a format version."""

    level0: Annotated[Literal["<zarr>/<group>/0"], Presence.CONSTANT] = Field(
        default="<zarr>/<group>/0", description="Path of the signal array."
    )
    view: Annotated[Literal["<zarr>/<group>/view/<L>"], Presence.CONSTANT] = Field(
        default="<zarr>/<group>/view/<L>", description="Path of a view level."
    )
    view_levels: Annotated[Literal["1..n_view_levels from the group attrs"], Presence.CONSTANT] = Field(
        default="1..n_view_levels from the group attrs", description="Which view levels exist."
    )
    scale_offset: Annotated[
        Literal["level-0 array attrs scale[] and offset[]; physical = digital * scale + offset"], Presence.CONSTANT
    ] = Field(
        default="level-0 array attrs scale[] and offset[]; physical = digital * scale + offset",
        description="How samples become physical values.",
    )
    events: Absent[Literal["<data_base>events.parquet"]] = Field(
        default="<data_base>events.parquet", description="Where the events file is when there is one."
    )


class _IndexFacts(Closed):
    """The fields before the three lists. Subclasses say which addresses they allow."""

    SCHEMA_RULES: ClassVar[Mapping[str, Any]] = {
        "dependentRequired": {"events_parquet": ["events_row_count"], "events_row_count": ["events_parquet"]},
    }

    format: Annotated[Literal["nemar-zarr-index"], Presence.CONSTANT] = Field(
        default="nemar-zarr-index", description="What this document is."
    )
    format_version: Annotated[Literal[3], Presence.CONSTANT] = Field(
        default=3, description="Its shape; read it before anything else."
    )
    dataset_id: DatasetId = Field(description="Two lower-case letters and six digits.")
    contract_base: str = Field(
        pattern=_HTTPS_OR_LOCAL, description="Stable base URL of the dataset; the only one a client may keep."
    )
    data_base: str = Field(pattern=_HTTPS_OR_LOCAL, description="Base URL of the bytes today.")
    data_base_kind: Literal["s3-public", "local-http"] = Field(description="What `data_base` points at.")
    s3_uri: str = Field(pattern=r"^s3://", description="The same place for clients that speak S3.")
    s3_region: NonEmpty = Field(description="Region of the bucket.")
    s3_anonymous: bool = Field(description="Whether `s3_uri` can be read without credentials.")
    source_commit: Commit = Field(description="State of the source that this copy was made from.")
    engine_version: Annotated[NonEmpty, Presence.CONSTANT] = Field(
        default=ENGINE_VERSION, description="Generation of discovery and dispatch."
    )
    biosigio_version: NonEmpty | None = Field(
        default=None, description="Release of biosigIO that wrote the stores; null when they differ or it is unknown."
    )
    updated_utc: UtcStamp = Field(description="Start of the run that wrote this document.")
    doi: str | None = Field(default=None, description="The dataset's DOI.")
    license: str | None = Field(default=None, description="The dataset's licence.")
    citation: str | None = Field(default=None, description="How to cite the dataset.")
    hed_version: str | None = Field(default=None, description="HED schema version of the dataset's annotations.")
    layout: Annotated[Layout, Presence.CONSTANT] = Field(default=Layout(), description="Path templates.")
    discovered_count: Count = Field(description="Raw recordings in the source; the denominator of coverage.")
    store_count: Count = Field(description="Recordings that are served.")
    n_recordings: Count = Field(description="The same number under its older name.")
    errors: Count = Field(description="Recordings that did not succeed in the run that wrote this; no standing total.")
    failure_count: Count = Field(description="Entries in `failures`.")
    pending_count: Count = Field(description="Entries in `pending`.")

    @model_validator(mode="after")
    def _balanced(self) -> _IndexFacts:
        total = self.store_count + self.failure_count + self.pending_count
        if self.discovered_count != total:
            raise ValueError(f"discovered_count is {self.discovered_count}, but the three lists hold {total}")
        if self.n_recordings != self.store_count:
            raise ValueError(f"n_recordings is {self.n_recordings}, but store_count is {self.store_count}")
        for name in ("contract_base", "data_base", "s3_uri"):
            if not getattr(self, name).endswith(f"/{self.dataset_id}/zarr/"):
                raise ValueError(f"{name} does not end with /{self.dataset_id}/zarr/")
        return self


class LocalIndexHead(_IndexFacts):
    """The index of a folder that is served on this machine, without its three lists."""

    events_parquet: Absent[Annotated[str, Field(pattern=_HTTPS_OR_LOCAL)]] = Field(
        default=None, description="URL of the dataset's events.parquet; left out when there is none."
    )
    events_row_count: Absent[Count] = Field(
        default=None, description="Its rows, one per event and channel group; present with `events_parquet`."
    )

    @model_validator(mode="after")
    def _events_together(self) -> LocalIndexHead:
        _check_events(self.events_parquet, self.events_row_count, self.data_base)
        return self


class IndexHead(LocalIndexHead):
    """The published index without its three lists."""

    contract_base: str = Field(pattern=_HTTPS, description=_IndexFacts.model_fields["contract_base"].description)
    data_base: str = Field(pattern=_HTTPS, description=_IndexFacts.model_fields["data_base"].description)
    data_base_kind: Literal["s3-public"] = Field(description=_IndexFacts.model_fields["data_base_kind"].description)
    events_parquet: Absent[Annotated[str, Field(pattern=_HTTPS)]] = Field(
        default=None, description=LocalIndexHead.model_fields["events_parquet"].description
    )


class LocalIndex(_IndexFacts):
    """index.json of a folder that is served on this machine."""

    stores: Listed[StoreEntry] = Field(description="Served recordings, sorted by `zarr`.")
    failures: Listed[FailureEntry] = Field(description="Recordings with a verdict, sorted by `path`.")
    pending: Listed[PendingEntry] = Field(description="Recordings still expected, sorted by `path`.")
    events_parquet: Absent[Annotated[str, Field(pattern=_HTTPS_OR_LOCAL)]] = Field(
        default=None, description=LocalIndexHead.model_fields["events_parquet"].description
    )
    events_row_count: Absent[Count] = Field(
        default=None, description=LocalIndexHead.model_fields["events_row_count"].description
    )

    @model_validator(mode="after")
    def _whole(self) -> LocalIndex:
        _check_events(self.events_parquet, self.events_row_count, self.data_base)
        for name in ("store", "failure", "pending"):
            entries = getattr(self, {"store": "stores", "failure": "failures"}.get(name, name))
            if getattr(self, f"{name}_count") != len(entries):
                raise ValueError(f"{name}_count is {getattr(self, f'{name}_count')}, but there are {len(entries)}")
        _check_ascending("stores", (entry.zarr for entry in self.stores))
        _check_ascending("failures", (entry.path for entry in self.failures))
        _check_ascending("pending", (entry.path for entry in self.pending))
        paths = [entry.path for entries in (self.stores, self.failures, self.pending) for entry in entries]
        if len(set(paths)) != len(paths):
            twice = next(path for path in sorted(paths) if paths.count(path) > 1)
            raise ValueError(f"{twice!r} is listed twice")
        return self


class Index(LocalIndex):
    """index.json as it is published."""

    contract_base: str = Field(pattern=_HTTPS, description=_IndexFacts.model_fields["contract_base"].description)
    data_base: str = Field(pattern=_HTTPS, description=_IndexFacts.model_fields["data_base"].description)
    data_base_kind: Literal["s3-public"] = Field(description=_IndexFacts.model_fields["data_base_kind"].description)
    events_parquet: Absent[Annotated[str, Field(pattern=_HTTPS)]] = Field(
        default=None, description=LocalIndexHead.model_fields["events_parquet"].description
    )


def _check_events(url: str | None, row_count: int | None, data_base: str) -> None:
    if (url is None) != (row_count is None):
        raise ValueError("events_parquet and events_row_count appear together or not at all")
    if url is not None and url != f"{data_base}events.parquet":
        raise ValueError(f"events_parquet is {url!r}, not {data_base}events.parquet")


def _check_ascending(name: str, keys: Iterable[str]) -> None:
    for before, after in pairwise(keys):
        if before >= after:
            raise ValueError(f"{name} are not sorted, or one is there twice: {before!r} stands before {after!r}")
