"""manifest.json, format version 1: the producer's own account of the objects beside the index."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, model_validator

from contract.closed import Absent, Closed, Count, DatasetId, Listed, Presence, StorePath, UtcStamp

__all__ = ["Manifest", "ManifestFile", "ManifestStore"]


class ManifestFile(Closed):
    """One object of the dataset that is no store and that this publication wrote beside the index."""

    name: Literal["events.parquet"] = Field(description="Its name below the dataset.")
    size_bytes: Count = Field(description="Its size in bytes.")
    row_count: Absent[Count] = Field(default=None, description="Its rows; equals the index's `events_row_count`.")


class ManifestStore(Closed):
    """What a store was made from."""

    zarr: StorePath = Field(description="The store's path, as in the index.")
    source_key: str | None = Field(
        default=None, description="git-annex key of the recording's first file; null when it has none."
    )
    size_bytes: Count | None = Field(default=None, description="Size in bytes that the key states; null without one.")


class Manifest(Closed):
    """manifest.json; it lists exactly the stores of the index."""

    format: Annotated[Literal["nemar-zarr-manifest"], Presence.CONSTANT] = Field(
        default="nemar-zarr-manifest", description="What this document is."
    )
    format_version: Annotated[Literal[1], Presence.CONSTANT] = Field(default=1, description="Its shape.")
    dataset_id: DatasetId = Field(description="Two lower-case letters and six digits.")
    updated_utc: Absent[UtcStamp] = Field(default=None, description="Start of the run that wrote this document.")
    files: Absent[Listed[ManifestFile]] = Field(
        default=None, description="Objects beside the index; left out when the publication wrote none."
    )
    stores: Listed[ManifestStore] = Field(description="One entry per store, sorted by `zarr`.")

    @model_validator(mode="after")
    def _sorted(self) -> Manifest:
        for before, after in pairwise(store.zarr for store in self.stores):
            if before >= after:
                raise ValueError(f"stores are not sorted, or one is there twice: {before!r} stands before {after!r}")
        return self
