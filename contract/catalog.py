"""zarr-catalog.json, format version 1: the datasets that are served at a target."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from contract.closed import Closed, Commit, Count, DatasetId, Listed, Presence, Seconds, Size, UtcStamp

__all__ = ["Catalog", "CatalogRow"]

_HTTPS_OR_LOCAL = r"^(https://|http://127\.0\.0\.1(:[0-9]+)?/)"


class CatalogRow(Closed):
    """One dataset with at least one served recording."""

    dataset_id: DatasetId = Field(description="Two lower-case letters and six digits.")
    name: str | None = Field(default=None, description="The dataset's name.")
    doi: str | None = Field(default=None, description="The dataset's DOI.")
    license: str | None = Field(default=None, description="The dataset's licence.")
    modalities: Listed[str] = Field(description="Modalities of its recordings, lower case, sorted.")
    subject_count: Count | None = Field(default=None, description="Subjects, from participants.tsv or the folders.")
    store_count: Size = Field(description="Recordings that are served.")
    recording_count: Count | None = Field(default=None, description="Recordings with a store or a verdict.")
    recordings_unavailable: Count | None = Field(default=None, description="Recordings with a verdict.")
    total_recording_duration: Seconds | None = Field(
        default=None, description="Seconds of signal: the sum of each store's longest channel group."
    )
    zarr_converted_at: str | None = Field(default=None, description="When its index was last published (UTC).")
    zarr_source_commit: Commit | None = Field(default=None, description="State of the source behind its index.")
    zarr_errors: Count | None = Field(default=None, description="Recordings that did not succeed in its last run.")
    zarr_verify_status: Literal["verified", "failed", "unverifiable"] | None = Field(
        default=None, description="Verdict of the last comparison with the source; null before the first."
    )
    zarr_verified_at: str | None = Field(default=None, description="When that comparison was made (UTC).")
    index_url: str = Field(pattern=_HTTPS_OR_LOCAL, description="Address of the dataset's index.json.")


class Catalog(Closed):
    """zarr-catalog.json at the root of a target."""

    format: Annotated[Literal["nemar-zarr-catalog"], Presence.CONSTANT] = Field(
        default="nemar-zarr-catalog", description="What this document is."
    )
    format_version: Annotated[Literal[1], Presence.CONSTANT] = Field(default=1, description="Its shape.")
    generated_utc: UtcStamp = Field(description="When this document was written.")
    contract_base: str = Field(pattern=_HTTPS_OR_LOCAL, description="Base URL of every dataset; ends with a slash.")
    count: Count = Field(description="Entries in `datasets`.")
    datasets: Listed[CatalogRow] = Field(description="Served datasets, sorted by `dataset_id`.")

    @model_validator(mode="after")
    def _whole(self) -> Catalog:
        if self.count != len(self.datasets):
            raise ValueError(f"count is {self.count}, but there are {len(self.datasets)} datasets")
        if not self.contract_base.endswith("/"):
            raise ValueError(f"contract_base {self.contract_base!r} does not end with a slash")
        for before, after in pairwise(row.dataset_id for row in self.datasets):
            if before >= after:
                raise ValueError(f"datasets are not sorted, or one is there twice: {before} stands before {after}")
        for row in self.datasets:
            if row.index_url != f"{self.contract_base}{row.dataset_id}/zarr/index.json":
                raise ValueError(f"index_url of {row.dataset_id} does not stand below {self.contract_base}")
        return self
