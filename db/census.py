"""Every recording of a dataset counted once, by how it stands: what the coverage bar of its page is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlalchemy import text

from db.coverage import FAILURE, PENDING, SERVED
from db.store_verdicts import STANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["Census", "CensusRow", "FailureDetail", "Round", "census", "failure_details", "rounds"]

Published = Literal["stores", "failures", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusRow:
    """Recordings that stand alike.

    Parameters
    ----------
    published
        The index list that names them; None when they vanished from the source.
    judged
        What a comparison found of the store as it is served now: verified, failed, unverifiable; None before the first.
    next_at
        When the first of them is due again by itself.
    """

    published: Published | None
    due: str
    code: str | None
    reason: str | None
    why: str | None
    judged: str | None
    recordings: int
    size_bytes: int
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Census:
    """The groups of one dataset. Its lists add up, because each recording is counted in one group."""

    rows: tuple[CensusRow, ...]

    def count(self, which: Callable[[CensusRow], bool]) -> int:
        """The recordings of the groups that fit."""
        return sum(row.recordings for row in self.rows if which(row))

    def by(self, name: str, which: Callable[[CensusRow], bool]) -> dict[str, int]:
        """The recordings of the groups that fit, by a column that is not None there; the most first."""
        found: dict[str, int] = {}
        for row in filter(which, self.rows):
            if (word := getattr(row, name)) is not None:
                found[word] = found.get(word, 0) + row.recordings
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    @property
    def discovered(self) -> int:
        """Recordings that the source has."""
        return self.count(lambda row: row.published is not None)

    @property
    def stores(self) -> int:
        """Recordings that are served true to their source."""
        return self.count(lambda row: row.published == "stores")

    @property
    def failures(self) -> int:
        """Recordings that have a verdict instead of a store."""
        return self.count(lambda row: row.published == "failures")

    @property
    def pending(self) -> int:
        """Recordings that are still expected to convert, those that convert now among them."""
        return self.count(lambda row: row.published == "pending")

    @property
    def converting(self) -> int:
        """Those of the pending that convert now."""
        return self.count(lambda row: row.published == "pending" and row.due == "converting")

    @property
    def rebuilding(self) -> int:
        """Served recordings that are due again; what is served stays meanwhile."""
        return self.count(lambda row: row.published == "stores" and row.due in {"pending", "converting"})

    @property
    def at_work(self) -> int:
        """Recordings that convert now, served ones too."""
        return self.count(lambda row: row.due == "converting")

    @property
    def gone(self) -> int:
        """Recordings that vanished from the source and whose history is left."""
        return self.count(lambda row: row.published is None)

    @property
    def judged(self) -> Mapping[str, int]:
        """Published stores by what a comparison found of them as they are now."""
        return self.by("judged", lambda row: row.published == "stores")

    @property
    def codes(self) -> Mapping[str, int]:
        """Failures by code."""
        return self.by("code", lambda row: row.published == "failures")

    @property
    def reasons(self) -> Mapping[str, int]:
        """Pending recordings by reason."""
        return self.by("reason", lambda row: row.published == "pending")

    @property
    def whys(self) -> Mapping[str, int]:
        """Served recordings that are due again, by why."""
        return self.by("why", lambda row: row.published == "stores")


PUBLISHED = f"CASE WHEN {SERVED} THEN 'stores' WHEN {FAILURE} THEN 'failures' WHEN {PENDING} THEN 'pending' END"
"""SQL over ``recordings r``: the index list that names the recording."""

_CENSUS = text(f"""
    SELECT {PUBLISHED} AS published, r.due, r.code, r.reason, r.why,
           CASE WHEN {SERVED} AND {STANDS} THEN o.status END AS judged,
           count(*) AS recordings, sum(r.size_bytes)::bigint AS size_bytes, min(r.next_attempt_at) AS next_at
    FROM recordings r
    LEFT JOIN (store_verdicts o JOIN stores s ON s.recording_pk = o.recording_pk AND o.dataset_pk = :dataset AND s.dataset_pk = :dataset)
        ON o.recording_pk = r.pk
    WHERE r.dataset_pk = :dataset GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
""")


def census(c: Connection, *, dataset: Dataset) -> Census:
    """How the recordings of a dataset stand at one moment, by one statement."""
    return Census(tuple(CensusRow(**row._mapping) for row in c.execute(_CENSUS, {"dataset": dataset.pk})))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDetail:
    """Failures of one code that have the same detail: how many, and one of them."""

    code: str
    detail: str | None
    recordings: int
    example: str


_DETAILS = text(f"""
    SELECT code, detail, recordings, example FROM (
        SELECT r.code, left(r.detail, 400) AS detail, count(*) AS recordings, min(r.path) AS example,
               row_number() OVER (PARTITION BY r.code ORDER BY count(*) DESC, min(r.path)) AS nth
        FROM recordings r WHERE r.dataset_pk = :dataset AND {FAILURE} GROUP BY r.code, left(r.detail, 400)
    ) d WHERE nth <= :most ORDER BY code, nth
""")


def failure_details(c: Connection, *, dataset: Dataset, most: int = 5) -> list[FailureDetail]:
    """Of each code the details that most of its failures have, at most so many."""
    return [FailureDetail(**row._mapping) for row in c.execute(_DETAILS, {"dataset": dataset.pk, "most": most})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Pending recordings with the same number of counted attempts, and when the first of them may be tried again."""

    attempts: int
    recordings: int
    next_at: datetime | None


_ROUNDS = text(f"""
    SELECT r.attempts, count(*) AS recordings, min(r.next_attempt_at) AS next_at
    FROM recordings r WHERE r.dataset_pk = :dataset AND r.due IN ('pending', 'converting') AND {PENDING} AND r.attempts > 0
    GROUP BY 1 ORDER BY 1
""")


def rounds(c: Connection, *, dataset: Dataset) -> list[Round]:
    """Pending recordings that were tried in vain, by how often that was counted."""
    return [Round(**row._mapping) for row in c.execute(_ROUNDS, {"dataset": dataset.pk})]
