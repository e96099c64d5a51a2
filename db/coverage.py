"""Coverage: every discovered recording is in exactly one of the published lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.errors import ZarrmillError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.datasets import Dataset

__all__ = ["FAILURE", "PENDING", "SERVED", "Coverage", "Unaccounted", "coverage"]

SERVED = "r.discovered AND r.served_source IS NOT NULL AND r.served_source = r.source"
"""SQL over ``recordings r``: the recording is published in ``stores``. The store is still true to its source."""
FAILURE = f"r.discovered AND NOT ({SERVED}) AND r.due = 'failed'"
"""SQL over ``recordings r``: the recording is published in ``failures``."""
PENDING = f"r.discovered AND NOT ({SERVED}) AND r.due IN ('pending', 'converting')"
"""SQL over ``recordings r``: the recording is published in ``pending``."""


class Unaccounted(ZarrmillError):
    """The published lists do not add up to what was discovered. Nothing may be published from such a state."""

    code = "unaccounted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many recordings were discovered, and in which published list they are."""

    discovered: int
    stores: int
    failures: int
    pending: int

    def __post_init__(self) -> None:
        if self.discovered != self.stores + self.failures + self.pending:
            raise Unaccounted(
                f"{self.discovered} recordings were discovered, but {self.stores} stores, {self.failures} failures and "
                f"{self.pending} pending do not add up to them"
            )


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
