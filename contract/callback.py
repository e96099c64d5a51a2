"""The zarr-ready callback: what a run tells whoever asked to be told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from contract.closed import (
    Absent,
    Closed,
    Commit,
    Count,
    DatasetId,
    Dropped,
    Listed,
    NonEmpty,
    Presence,
    PublicText,
    RelativePath,
    StorePath,
)
from contract.index import FailureEntry

__all__ = ["Calibration", "ZarrReady"]


class Calibration(Closed):
    """Measured against projected memory of one format and route in one run."""

    format: NonEmpty = Field(description="The recording format.")
    route: NonEmpty = Field(description="How it went through biosigIO.")
    measured_count: Count = Field(description="Recordings whose peak was measured.")
    median_ratio: Annotated[float, Field(ge=0)] = Field(description="Median of measured over projected bytes.")
    worst_ratio: Annotated[float, Field(ge=0)] = Field(description="Largest measured over projected bytes.")


class ZarrReady(Closed):
    """Body of one callback. `converting` announces a run; exactly one `ready` or `failed` ends it."""

    dataset_id: DatasetId = Field(description="Two lower-case letters and six digits.")
    status: Literal["converting", "ready", "failed"] = Field(description="Start of a run, or how it ended.")
    store_count: Absent[Count] = Field(default=None, description="Stores in the published index.")
    index_etag: Dropped[NonEmpty] = Field(default=None, description="ETag of the published index, without quotes.")
    commit: Absent[Commit] = Field(default=None, description="State of the source that the run worked on.")
    converted: Absent[Listed[StorePath]] = Field(default=None, description="Stores that the run wrote.")
    removed: Absent[Listed[StorePath]] = Field(default=None, description="Stores that the run removed.")
    errors: Absent[Count] = Field(default=None, description="Recordings that did not succeed in this run.")
    failed: Absent[Listed[RelativePath]] = Field(default=None, description="Their paths.")
    failure_count: Absent[Count] = Field(
        default=None, description="Failures in the published index; of this run only when the run failed."
    )
    data_failures: Absent[Listed[FailureEntry]] = Field(default=None, description="Verdicts that this run reached.")
    deterministic: Absent[bool] = Field(
        default=None, description="Whether something failed and nothing of it because of a machine."
    )
    error: Annotated[PublicText, Presence.ABSENT] = Field(
        default=None, description="Why the run as a whole failed, redacted; only with `failed`."
    )
    pool_breaks: Absent[Count] = Field(default=None, description="Workers that died and were replaced.")
    measured_count: Absent[Count] = Field(default=None, description="Recordings whose peak memory was measured.")
    calibration: Absent[Listed[Calibration]] = Field(
        default=None, description="Measured against projected memory per format, worst first."
    )
    retryable_failures: Absent[Count] = Field(default=None, description="Failures of machines in this run.")
    pending_count: Absent[Count] = Field(default=None, description="Pending recordings in the published index.")
    discovered_count: Absent[Count] = Field(default=None, description="Raw recordings in the source.")
    not_attempted_count: Absent[Count] = Field(default=None, description="Pending recordings not reached yet.")
    non_raw_dropped: Absent[Count] = Field(default=None, description="Stores dropped because they are not raw.")
    provenance_fetch_failed: Absent[bool] = Field(
        default=None, description="Whether the dataset's facts could not be read, so that nulls mean nothing."
    )
    manifest_upload_failed: Absent[bool] = Field(
        default=None, description="Whether the index was published without its manifest."
    )
    events_row_count: Dropped[Count] = Field(
        default=None, description="Rows of the published events.parquet; left out when there is none."
    )
    events_upload_failed: Absent[bool] = Field(
        default=None, description="Whether building or uploading events.parquet failed."
    )
    events_stores_without_rows: Absent[Count] = Field(
        default=None, description="Converted stores with events of which no row could be used."
    )

    @model_validator(mode="after")
    def _consistent(self) -> ZarrReady:
        said = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if self.status == "converting" and said != {"dataset_id", "status"}:
            raise ValueError(f"converting says nothing about {sorted(said - {'dataset_id', 'status'})}")
        if self.status != "failed" and self.error is not None:
            raise ValueError("error is for a run that failed")
        if self.status == "ready":
            missing = {"store_count", "commit", "converted", "removed", "errors", "pending_count"} - said
            if missing:
                raise ValueError(f"ready must say {sorted(missing)}")
        return self
