"""Verdicts of the comparison between what a dataset serves and its source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["FidelityVerdict", "latest", "record"]

_MOST_EXAMPLES = 20
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityVerdict:
    """What one comparison found. ``status``: verified, failed, or unverifiable when nothing could be checked."""

    source_commit: str
    status: str
    verified_at: datetime
    checked: int
    mismatches: int
    examples: tuple[Any, ...]


def record(
    c: Connection,
    *,
    dataset: Dataset,
    source_commit: str,
    checked: int,
    mismatches: int,
    examples: Sequence[Any] = (),
) -> Literal["verified", "failed", "unverifiable"]:
    """Keep the result of a comparison; the verdict that follows from it. At most 20 examples, 4 KiB, are kept."""
    status: Literal["verified", "failed", "unverifiable"] = (
        "failed" if mismatches else "verified" if checked else "unverifiable"
    )
    kept = list(examples[:_MOST_EXAMPLES])
    while kept and len(json.dumps(kept)) > _MOST_BYTES:
        kept.pop()
    c.execute(
        text("""
            INSERT INTO verdicts (dataset_pk, source_commit, status, checked, mismatches, examples)
            VALUES (:dataset, :commit, :status, :checked, :mismatches, CAST(:examples AS jsonb))
        """),
        {
            "dataset": dataset.pk,
            "commit": source_commit,
            "status": status,
            "checked": checked,
            "mismatches": mismatches,
            "examples": json.dumps(kept),
        },
    )
    return status


def latest(c: Connection, *, dataset: Dataset) -> FidelityVerdict | None:
    """The newest verdict on the dataset, or None before the first."""
    row = c.execute(
        text("SELECT * FROM verdicts WHERE dataset_pk = :dataset ORDER BY verified_at DESC, pk DESC LIMIT 1"),
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
    )
