"""Coverage: every discovered recording is in exactly one of the published lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from db.counts import Coverage, Unaccounted

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["FAILURE", "PENDING", "SERVED", "Coverage", "Unaccounted", "coverage"]

SERVED = "r.discovered AND r.served_source IS NOT NULL AND r.served_source = r.source"
"""SQL over ``recordings r``: the recording is published in ``stores``. The store is still true to its source."""
FAILURE = f"r.discovered AND NOT ({SERVED}) AND r.due = 'failed'"
"""SQL over ``recordings r``: the recording is published in ``failures``."""
PENDING = f"r.discovered AND NOT ({SERVED}) AND r.due IN ('pending', 'converting')"
"""SQL over ``recordings r``: the recording is published in ``pending``."""


_COVERAGE = text(f"""
    SELECT count(*) FILTER (WHERE r.discovered) AS discovered,
           count(*) FILTER (WHERE {SERVED}) AS stores,
           count(*) FILTER (WHERE {FAILURE}) AS failures,
           count(*) FILTER (WHERE {PENDING}) AS pending
    FROM recordings r WHERE r.dataset_pk = :dataset
""")


def coverage(c: Connection, *, dataset: Dataset) -> Coverage:
    """The coverage of the dataset, counted in one statement.

    Raises
    ------
    Unaccounted
        The lists do not add up.
    """
    row = c.execute(_COVERAGE, {"dataset": dataset.pk}).one()
    return Coverage(discovered=row.discovered, stores=row.stores, failures=row.failures, pending=row.pending)
