"""What a reader relies on in an index and a store, whoever made them: checked where it matters, tolerant of everything else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from contract.closed import Commit, Count, DatasetId, Hertz, Listed, NonEmpty, RelativePath, Size, StorePath

__all__ = [
    "INDEX_FORMAT",
    "INDEX_VERSION",
    "ReadChannel",
    "ReadEntry",
    "ReadGroup",
    "ReadGroupAttributes",
    "ReadHead",
    "ReadRoot",
    "ReadView",
]

INDEX_FORMAT = "nemar-zarr-index"
INDEX_VERSION = 3

_Base = Annotated[str, Field(pattern=r"^https?://[^\s\"'<>\\^`{|}]+/$")]


class _Tolerant(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class ReadHead(_Tolerant):
    """An index without its three lists."""

    format: Literal["nemar-zarr-index"]
    format_version: Literal[3]
    dataset_id: DatasetId
    contract_base: _Base
    data_base: _Base
    data_base_kind: str
    s3_uri: Annotated[str, Field(pattern=r"^s3://[^\s\"'<>\\^`{|}]+/$")]
    s3_region: NonEmpty
    s3_anonymous: bool
    source_commit: Commit
    engine_version: NonEmpty
    updated_utc: NonEmpty
    doi: str | None = None
    license: str | None = None
    citation: str | None = None
    hed_version: str | None = None
    discovered_count: Count
    store_count: Count
    failure_count: Count
    pending_count: Count
    events_parquet: str | None = None
    events_row_count: Count | None = None


class ReadGroup(_Tolerant):
    """A channel group as an index names it."""

    name: Annotated[str, Field(pattern=r"^[^./\\\x00][^/\\\x00]*$")]
    modality: str | None = None
    rate: Hertz | None = None
    n_channels: Count | None = None
    n_samples: Count | None = None
    duration_s: float | None = None
    source_rate_hz: Hertz | None = None
    n_view_levels: Count | None = None
    view_chunk_columns: Size | None = None
    chunk_samples: Size | None = None
    shard_samples: Size | None = None


class ReadEntry(_Tolerant):
    """A served recording as an index names it."""

    path: RelativePath
    zarr: StorePath
    source_tree: str = "raw"
    derived: bool = False
    updated_utc: str | None = None
    modalities: Listed[str] = ()
    groups: Listed[ReadGroup] = ()
    n_events: Count | None = None
    trial_types: dict[str, int] | None = None
    units_report: dict[str, Any] | None = None
    sss: dict[str, Any] | None = None


class ReadRoot(_Tolerant):
    """The attributes of a store's root."""

    format: Literal["biosigio-zarr"]
    format_version: Literal[2]


class ReadChannel(_Tolerant):
    """A channel of a group."""

    label: str
    unit: str = ""
    row_index: Count
    scale: float
    offset: float
    usable_for_inference: bool = True


class ReadGroupAttributes(_Tolerant):
    """The attributes of a channel group. A store made before view levels were declared names none."""

    rate: Hertz
    n_channels: Count
    n_samples: Count
    channels: Listed[ReadChannel]
    view_levels: Listed[int] = ()


class ReadView(_Tolerant):
    """The attributes of a view level."""

    downsample_factor: Annotated[int, Field(ge=2)]
