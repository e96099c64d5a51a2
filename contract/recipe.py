"""Read recipes: everything that a client needs to read one window of a recording by itself."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from contract.closed import (
    Absent,
    Closed,
    Commit,
    Count,
    DatasetId,
    Listed,
    NonEmpty,
    RelativePath,
    Seconds,
    Size,
    StorePath,
)

__all__ = ["ChannelRow", "Envelope", "HowTo", "Recipe", "ScaleOffset", "Slice"]


class Slice(Closed):
    """Positions on one axis, `end` not included."""

    start: Count = Field(description="First position.")
    end: Size = Field(description="Position after the last.")


class ScaleOffset(Closed):
    """How the samples of the asked channels become physical values."""

    scale: Listed[float] = Field(description="Factor of each asked channel, in order.")
    offset: Listed[float] = Field(description="Offset of each asked channel, in order.")
    formula: Literal["physical = digital * scale + offset"] = Field(
        default="physical = digital * scale + offset", description="The formula."
    )


class ChannelRow(Closed):
    """An asked channel."""

    row: Count = Field(description="Its row in the array.")
    label: str = Field(description="Its name.")
    unit: str = Field(description="Unit of its physical values.")
    usable_for_inference: bool = Field(description="False for triggers, clocks and channels with filled gaps.")


class HowTo(Closed):
    """Programs that read the window, to be pasted and run."""

    python_zarr: str = Field(description="Python over HTTP, with zarr and fsspec.")
    python_s3: str | None = Field(description="Python over S3, with zarr and s3fs; null when there is no bucket.")
    zarrita: str = Field(description="JavaScript, with zarrita.")


class Envelope(Closed):
    """Where data comes from; to be kept with whatever is made of it."""

    dataset_id: DatasetId = Field(description="The dataset.")
    doi: str | None = Field(description="Its DOI.")
    license: str | None = Field(description="Its licence.")
    citation: str | None = Field(description="How to cite it.")
    source_commit: Commit = Field(description="State of the source behind the index.")
    index_etag: NonEmpty = Field(description="Version of the index that this rests on.")
    engine_version: NonEmpty = Field(description="Generation of discovery and dispatch.")
    source_tree: NonEmpty = Field(description="Always `raw`.")
    derived: bool = Field(description="Whether the signal is processed, not only resampled and quantised.")
    sss: Absent[dict[str, Any]] = Field(default=None, description="The correction; present when `derived` is true.")
    lossy: Literal[True] = Field(
        default=True, description="Always true: samples are quantised, and resampled above a cap."
    )
    dtype: str | None = Field(description="Type of the stored samples.")
    effective_rate_hz: float | None = Field(
        description="Served rate of the channel group; null where no group is meant."
    )
    source_rate_hz: float | None = Field(description="Rate of the source; likewise.")
    units_report: dict[str, Any] | None = Field(description="What a channels.tsv did to units; null without one.")
    zarr_verify_status: Literal["verified", "failed", "unverifiable"] | None = Field(
        description="Verdict of the last comparison with the source; null before the first, or where it is not known."
    )
    note: str = Field(description="What to know before using it.")


class Recipe(Closed):
    """How to read one window of one recording."""

    dataset_id: DatasetId = Field(description="The dataset.")
    recording: RelativePath = Field(description="The recording's path in the dataset.")
    contract_base: str = Field(description="Stable base URL of the dataset.")
    data_base: str = Field(description="Base URL of the bytes today.")
    s3_uri: str = Field(description="The same place for clients that speak S3.")
    s3_region: str = Field(description="Region of the bucket.")
    s3_anonymous: bool = Field(description="Whether it can be read without credentials.")
    zarr: StorePath = Field(description="The store's path below the bases.")
    group: NonEmpty = Field(description="The channel group.")
    level: Literal["0"] | Size = Field(description='`"0"` for the signal, else the number of a view level.')
    array_path: NonEmpty = Field(description="The array's path below the bases.")
    store_url: str = Field(description="The store's URL.")
    root_url: str = Field(
        description="Its root `zarr.json`; use what was read only if its ETag is the same before and after."
    )
    version_token: str = Field(description="To be added as `?v=` to URLs of the store behind a cache.")
    dtype: str = Field(description="Type of the stored samples.")
    codecs: Listed[str] = Field(description="Names of the codecs that a reader must know, outermost first.")
    shape: Listed[Count] = Field(description="Shape of the array.")
    chunk_samples: Size = Field(description="Samples, or columns of a view level, in an inner chunk.")
    shard_samples: Size = Field(description="The same in an object.")
    n_channels: Count = Field(description="Channels of the group.")
    rate_hz: float = Field(description="Samples, or columns, in a second.")
    sample_slice: Slice = Field(description="Positions on the last axis.")
    channel_slice: Slice = Field(description="Rows that hold every asked channel, perhaps others between them.")
    channels: Listed[ChannelRow] = Field(description="The asked channels, in the order asked.")
    start_s: Seconds = Field(description="When the first sample of the window is, in seconds.")
    stop_s: Seconds = Field(description="When the first sample after it would be.")
    scale_offset: ScaleOffset = Field(description="How samples become physical values.")
    objects: Listed[str] = Field(description="URLs of the objects that hold the window, at most 100 of them.")
    n_objects: Count = Field(description="How many there are: shards of level 0, chunks of a view level.")
    n_chunks: Count = Field(description="Inner chunks that are decoded.")
    bytes_estimate: Count = Field(
        description="Bytes of those chunks before compression, and of shard indices: an upper bound."
    )
    how_to: HowTo = Field(description="Programs to paste.")
    provenance: Envelope = Field(description="Where the data comes from.")
