"""Verdicts of the comparison between what a dataset serves and its source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import text

from contract.verification import VERIFY_REVISION
from db.coverage import SERVED
from db.datasets import from_row
from db.examples import kept
from db.store_verdicts import STANDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = [
    "HAS_ZARR",
    "HAS_ZARR_VERIFIED",
    "STANDING",
    "FidelityVerdict",
    "Tally",
    "latest",
    "note_sweep",
    "record",
    "tally",
    "to_verify",
]

Status = Literal["verified", "failed", "unverifiable"]

_UNJUDGED = f"""
    EXISTS (
        SELECT FROM stores s JOIN recordings r ON r.pk = s.recording_pk
        LEFT JOIN store_verdicts o ON o.recording_pk = s.recording_pk AND {STANDS}
        WHERE s.dataset_pk = d.pk AND {SERVED} AND o.recording_pk IS NULL
    )
"""
"""SQL over ``datasets d``: a published store has no verdict as it is now."""

STANDING = f"""
    LATERAL (
        SELECT n.status, n.verified_at
        FROM (SELECT * FROM verdicts WHERE dataset_pk = d.pk ORDER BY verified_at DESC, pk DESC LIMIT 1) n
        WHERE n.index_etag IS NOT DISTINCT FROM d.index_etag AND (n.status = 'failed' OR NOT {_UNJUDGED})
    )
"""
"""SQL to join to ``datasets d``: the dataset's last verdict, while it is about the index that is published and, unless it has failed,
about every published store as it is now; else no row."""

HAS_ZARR = "(d.status = 'ready' AND COALESCE(d.store_count, 0) > 0)"
"""SQL over ``datasets d``: the dataset is ready and has a store (the filter ``has_zarr``)."""
HAS_ZARR_VERIFIED = f"({HAS_ZARR} AND EXISTS (SELECT FROM {STANDING} v WHERE v.status = 'verified'))"
"""SQL over ``datasets d``: and its verdict stands and is ``verified`` (the filter ``has_zarr_verified``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityVerdict:
    """What one sweep found. ``status``: verified, failed, or unverifiable when nothing could be checked.

    ``stands``: it is about what is published now.
    """

    source_commit: str
    status: str
    verified_at: datetime
    checked: int
    mismatches: int
    examples: tuple[Any, ...]
    stores_verified: int
    stores_failed: int
    stores_unverifiable: int
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The verdicts that stand on a dataset's published stores. ``unjudged`` stores have none as they are now."""

    verified: int
    failed: int
    unverifiable: int
    unjudged: int
    checked: int
    mismatches: int
    examples: tuple[Any, ...]


def tally(c: Connection, *, dataset: Dataset) -> Tally:
    """Count the standing verdicts; ``examples`` are those of the first failed stores by path."""
    counts = c.execute(
        text(f"""
            SELECT count(*) FILTER (WHERE o.status = 'verified') AS verified,
                   count(*) FILTER (WHERE o.status = 'failed') AS failed,
                   count(*) FILTER (WHERE o.status = 'unverifiable') AS unverifiable,
                   count(*) FILTER (WHERE o.status IS NULL) AS unjudged,
                   COALESCE(sum(o.checked), 0)::bigint AS checked, COALESCE(sum(o.mismatches), 0)::bigint AS mismatches
            FROM stores s JOIN recordings r ON r.pk = s.recording_pk
            LEFT JOIN store_verdicts o ON o.recording_pk = s.recording_pk AND {STANDS}
            WHERE s.dataset_pk = :dataset AND {SERVED}
        """),
        {"dataset": dataset.pk},
    ).one()
    examples = c.scalars(
        text(f"""
            SELECT o.examples FROM store_verdicts o JOIN stores s ON s.recording_pk = o.recording_pk AND {STANDS}
            JOIN recordings r ON r.pk = o.recording_pk
            WHERE o.dataset_pk = :dataset AND o.status = 'failed' AND {SERVED} ORDER BY r.path LIMIT 20
        """),
        {"dataset": dataset.pk},
    )
    return Tally(**counts._mapping, examples=tuple(one for many in examples for one in many))


def record(
    c: Connection,
    *,
    dataset: Dataset,
    source_commit: str,
    checked: int,
    mismatches: int,
    examples: Sequence[Any] = (),
    stores: tuple[int, int, int] = (0, 0, 0),
    index_etag: str | None = None,
) -> Status | None:
    """Keep the result of a sweep; the verdict that follows from it. At most 20 examples, 4 KiB, are kept.

    Parameters
    ----------
    checked
        How many things held or did not; a dataset of which nothing was checked is unverifiable.
    stores
        Stores verified, failed and unverifiable.
    index_etag
        Of the index that the verdict is about: when another one is published by now, nothing is kept and None is returned.
        None stands for whatever is published.
    """
    status: Status = "failed" if mismatches else "verified" if checked else "unverifiable"
    done = c.execute(
        text("""
            INSERT INTO verdicts (dataset_pk, source_commit, status, checked, mismatches, examples, index_etag,
                                  stores_verified, stores_failed, stores_unverifiable)
            SELECT d.pk, :commit, :status, :checked, :mismatches, CAST(:examples AS jsonb), d.index_etag,
                   :verified, :failed, :unverifiable
            FROM datasets d WHERE d.pk = :dataset AND (CAST(:etag AS text) IS NULL OR d.index_etag = :etag)
        """),
        {
            "dataset": dataset.pk,
            "commit": source_commit,
            "status": status,
            "checked": checked,
            "mismatches": mismatches,
            "examples": json.dumps(kept(examples)),
            "etag": index_etag,
            "verified": stores[0],
            "failed": stores[1],
            "unverifiable": stores[2],
        },
    )
    return status if done.rowcount == 1 else None


def latest(c: Connection, *, dataset: Dataset) -> FidelityVerdict | None:
    """The newest verdict on the dataset, or None before the first."""
    row = c.execute(
        text(f"""
            SELECT v.*, EXISTS (SELECT FROM {STANDING} n) AS stands
            FROM verdicts v JOIN datasets d ON d.pk = v.dataset_pk
            WHERE v.dataset_pk = :dataset ORDER BY v.verified_at DESC, v.pk DESC LIMIT 1
        """),
        {"dataset": dataset.pk},
    ).one_or_none()
    if row is None:
        return None
    return FidelityVerdict(
        source_commit=row.source_commit,
        status=row.status,
        verified_at=row.verified_at,
        checked=row.checked,
        mismatches=row.mismatches,
        examples=tuple(row.examples),
        stores_verified=row.stores_verified,
        stores_failed=row.stores_failed,
        stores_unverifiable=row.stores_unverifiable,
        stands=row.stands,
    )


def to_verify(c: Connection, *, target: str | None = None, standing: bool = False) -> list[Dataset]:
    """Active datasets with stores whose verdict does not stand, is ``failed``, or was made by an earlier revision of the checks.

    Those that no sweep came to are first, then by how long ago one did, then by id. ``standing``: the other ones instead, whose
    verdict is backed by a look at what stands at the target.
    """
    rows = c.execute(
        text(f"""
            SELECT d.* FROM datasets d LEFT JOIN sweeps w ON w.dataset_pk = d.pk
            WHERE d.active AND {HAS_ZARR} AND (CAST(:target AS text) IS NULL OR d.target = :target)
              AND :standing <> (NOT EXISTS (SELECT FROM {STANDING} v WHERE v.status <> 'failed') OR EXISTS (
                  SELECT FROM store_verdicts o WHERE o.dataset_pk = d.pk AND o.revision < :revision))
            ORDER BY w.attempted_at NULLS FIRST, d.dataset_id, d.target
        """),
        {"target": target, "revision": VERIFY_REVISION, "standing": standing},
    )
    return [from_row(row) for row in rows]


def note_sweep(c: Connection, *, dataset: Dataset, unjudged: int, trouble: str | None) -> None:
    """Note that a sweep came to the dataset, and how many stores got no verdict, for what."""
    c.execute(
        text("""
            INSERT INTO sweeps (dataset_pk, unjudged, trouble) VALUES (:dataset, :unjudged, left(:trouble, 4000))
            ON CONFLICT (dataset_pk) DO UPDATE
            SET attempted_at = zarrmill_now(), unjudged = excluded.unjudged, trouble = excluded.trouble
        """),
        {"dataset": dataset.pk, "unjudged": unjudged, "trouble": trouble},
    )
