"""A dataset as a value: what it says of itself, and what was last published of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from db.counts import Coverage

__all__ = ["Dataset", "DatasetFacts", "PublishedState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """What a dataset says of itself. ``subject_count`` from participants.tsv or the folders; the lists are sorted."""

    name: str | None = None
    doi: str | None = None
    license: str | None = None
    citation: str | None = None
    hed_version: str | None = None
    has_hed: bool | None = None
    modalities: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    subject_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedState:
    """What the last published index of a dataset says. ``duration_s`` sums each store's longest group."""

    source_commit: str
    index_etag: str
    counts: Coverage
    duration_s: float
    converted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset at one target.

    Parameters
    ----------
    anonymous
        Whether its objects can be read without credentials, as its index says.
    status
        ready, failed, or None before the first terminal state. It stands while a run works; ``converting`` is beside it.
    errors
        Recordings that failed in the last run that ended.
    annex
        Where content lies that git-annex does not hold at the source; None when it is all there.
    upstream
        The catalog API that says its DOI, licence, citation and HED version; None: its own description does.
    withdrawn_at
        Since when it is served no more, because somebody said so.
    """

    pk: int
    dataset_id: str
    target: str
    source: str
    visibility: str
    anonymous: bool
    active: bool
    facts: DatasetFacts
    status: str | None
    converting: bool
    published: PublishedState | None
    errors: int | None
    error: str | None
    annex: str | None = None
    upstream: str | None = None
    withdrawn_at: datetime | None = None
