"""What an operator makes due again: recordings with a verdict, or that wait, of chosen datasets."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from sqlalchemy import text

from db import requests

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Chosen", "Requeued", "named", "requeue", "would_requeue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which recordings of which active datasets; an empty choice of states, codes or reasons leaves all of them in.

    Parameters
    ----------
    datasets
        Their primary keys; None is every dataset of every target.
    states
        Of their policy: ``exhausted``, ``given_up``, ``terminal``, …
    codes, reasons
        Of verdicts, and of what waits. With neither, every recording with a verdict or that waits.
    recordings
        Their primary keys, of those; None leaves all of them in.
    """

    datasets: frozenset[int] | None = None
    states: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    recordings: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """How many recordings of a dataset are due again, or would be, and how its policy stood."""

    dataset_pk: int
    dataset_id: str
    target: str
    state: str
    recordings: int


_CHOSEN = """
    r.discovered AND (CAST(:recordings AS bigint[]) IS NULL OR r.pk = ANY(CAST(:recordings AS bigint[]))) AND (
        (r.due = 'failed' AND (cardinality(CAST(:codes AS text[])) + cardinality(CAST(:reasons AS text[])) = 0 OR r.code = ANY(CAST(:codes AS text[]))))
        OR (r.due = 'pending' AND (cardinality(CAST(:codes AS text[])) + cardinality(CAST(:reasons AS text[])) = 0 OR r.reason = ANY(CAST(:reasons AS text[]))))
    )
"""
_DATASETS = """
    d.active AND (CAST(:datasets AS bigint[]) IS NULL OR d.pk = ANY(CAST(:datasets AS bigint[])))
    AND (cardinality(CAST(:states AS text[])) = 0 OR p.state = ANY(CAST(:states AS text[])))
"""
_WOULD = text(f"""
    SELECT d.pk AS dataset_pk, d.dataset_id, d.target, p.state, count(r.pk) AS recordings
    FROM datasets d JOIN policies p ON p.dataset_pk = d.pk LEFT JOIN recordings r ON r.dataset_pk = d.pk AND {_CHOSEN}
    WHERE {_DATASETS}
    GROUP BY d.pk, p.state HAVING count(r.pk) > 0 OR p.state IN ('backoff', 'given_up') ORDER BY d.dataset_id, d.target
""")
_REQUEUE = text(f"""
    UPDATE recordings r
    SET due = 'pending', why = 'requested', reason = 'not_attempted', code = NULL, detail = NULL, needed_bytes = NULL,
        verdict_options = NULL, verdict_engine = NULL, verdict_biosigio = NULL, attempts = 0, counted_run = NULL, deaths = 0,
        last_error = NULL, next_attempt_at = NULL
    WHERE r.dataset_pk = ANY(CAST(:found AS bigint[])) AND {_CHOSEN}
""")


_NAMED = text(f"""
    SELECT r.pk, concat_ws('|', r.pk, r.due, r.code, r.reason, r.attempts, r.last_attempt_at, r.next_attempt_at) AS state
    FROM recordings r JOIN datasets d ON d.pk = r.dataset_pk JOIN policies p ON p.dataset_pk = d.pk
    WHERE {_DATASETS} AND {_CHOSEN} ORDER BY r.pk FOR UPDATE OF r
""")


def named(c: Connection, *, chosen: Chosen) -> tuple[list[int], str]:
    """The recordings that ``requeue`` would move, and a digest over how they stand; until the transaction ends they stand so."""
    rows = c.execute(_NAMED, _values(chosen)).all()
    return [row.pk for row in rows], sha256("\n".join(row.state for row in rows).encode()).hexdigest()


def would_requeue(c: Connection, *, chosen: Chosen) -> list[Requeued]:
    """The datasets that ``requeue`` would ask for, by id."""
    return [Requeued(**row._mapping) for row in c.execute(_WOULD, _values(chosen))]


def requeue(c: Connection, *, chosen: Chosen, asked_by: str, detail: str | None = None) -> list[Requeued]:
    """Make the chosen recordings due now, their attempts forgotten, and ask for a run of each dataset; what was moved.

    What is served stays served, and what is being converted at this moment is left. A dataset that backs off or was given
    up is asked for though no recording of it is due.
    """
    found = would_requeue(c, chosen=chosen)
    c.execute(_REQUEUE, {**_values(chosen), "found": [one.dataset_pk for one in found]})
    for one in found:
        requests.ask(c, dataset_pk=one.dataset_pk, mode="auto", asked_by=asked_by, detail=detail)
    return found


def _values(chosen: Chosen) -> dict[str, list[int] | list[str] | None]:
    return {
        "datasets": None if chosen.datasets is None else sorted(chosen.datasets),
        "states": sorted(chosen.states),
        "codes": sorted(chosen.codes),
        "reasons": sorted(chosen.reasons),
        "recordings": None if chosen.recordings is None else sorted(chosen.recordings),
    }
