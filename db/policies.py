"""When a dataset is worked on again by itself: the edges of its policy, one statement each.

A dataset is ``clean``; waits for its next ``round`` because recordings were tried in vain, or is looked at again ``soon``
because some were never reached; is ``exhausted`` after five rounds; waits in ``backoff`` after a run that published nothing,
and is ``given_up`` after five of those; or is ``terminal``: every recording is served or has a verdict. The last four stay until
the source, the engine or somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Run, Versions

__all__ = ["Policy", "find", "note_reconciled", "note_seen", "note_unreadable", "renew", "settle", "trouble"]

DEFAULT_REBUILT = frozenset({"options", "engine"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a dataset's policy stands.

    Parameters
    ----------
    retry_round
        Rounds that were begun or are waited for since everything was last new, 0 to 5.
    next_at
        When it is due again by itself; set while it waits for a round, soon, or in backoff.
    infra_failures
        Runs in a row that published nothing, 0 to 5.
    seen_version, done_version
        The source's version as it was last seen, and when the last run was asked for; ``tasks.sources.version`` makes them.
    options, engine, biosigio
        What the last run converted with; None before the first. Nothing is stale that was never stamped.
    """

    dataset_pk: int
    state: str
    retry_round: int
    next_at: datetime | None
    infra_failures: int
    seen_version: str | None
    seen_at: datetime | None
    done_version: str | None
    options: str | None
    engine: str | None
    biosigio: str | None
    unreadable_since: datetime | None
    unreadable: str | None
    reconciled_at: datetime | None


def policy_of(row: Any) -> Policy:
    """The policy in a row of ``policies``."""
    return Policy(**{name: getattr(row, name) for name in Policy.__slots__})


def find(c: Connection, *, dataset: Dataset) -> Policy:
    """The dataset's policy."""
    return policy_of(c.execute(text("SELECT * FROM policies WHERE dataset_pk = :pk"), {"pk": dataset.pk}).one())


def renew(c: Connection, *, dataset_pk: int) -> bool:
    """Begin anew: no rounds, no troubles, nothing waited for. Whether that changed anything."""
    done = c.execute(
        text("""
            UPDATE policies SET state = 'clean', retry_round = 0, infra_failures = 0, next_at = NULL
            WHERE dataset_pk = :dataset AND (state <> 'clean' OR retry_round <> 0 OR infra_failures <> 0)
        """),
        {"dataset": dataset_pk},
    )
    return done.rowcount == 1


_SETTLE = text("""
    WITH waiting AS (
        SELECT r.reason = 'not_attempted' AS untouched, r.next_attempt_at,
               CAST(:run AS uuid) IS NOT NULL AND r.reason <> 'not_attempted' AND (
                   r.counted_run = :number OR (r.attempts = 0 AND r.reason = 'memory_budget')
                   OR EXISTS (SELECT FROM attempts a WHERE a.recording_pk = r.pk AND a.run_id = CAST(:run AS uuid)
                              AND a.outcome IN ('pending', 'expired'))) AS tried
        FROM recordings r WHERE r.dataset_pk = :dataset AND r.due IN ('pending', 'converting')
    ), found AS (
        SELECT count(*) FILTER (WHERE tried) > 0 AS tried, count(*) FILTER (WHERE untouched) > 0 AS untouched,
               count(*) > 0 AS left_over, min(next_attempt_at) AS first_at,
               EXISTS (SELECT FROM recordings r WHERE r.dataset_pk = :dataset AND r.due = 'failed') AS failed
        FROM waiting
    ), next AS (
        SELECT p.dataset_pk, zarrmill_now() + interval '1 hour' AS soon, f.first_at,
               CASE WHEN NOT f.left_over THEN 0 WHEN f.tried THEN LEAST(p.retry_round + 1, 5)
                    WHEN f.untouched THEN p.retry_round ELSE GREATEST(p.retry_round, 1) END AS retry_round,
               CASE WHEN NOT f.left_over THEN CASE WHEN f.failed THEN 'terminal' ELSE 'clean' END
                    WHEN f.untouched THEN 'soon'
                    WHEN f.tried AND p.retry_round = 5 THEN 'exhausted'
                    WHEN f.tried THEN 'round'
                    WHEN p.state = 'exhausted' THEN 'exhausted' ELSE 'round' END AS state,
               f.tried
        FROM policies p, found f WHERE p.dataset_pk = :dataset
    )
    UPDATE policies p
    SET state = n.state, retry_round = n.retry_round, infra_failures = 0,
        next_at = CASE
            WHEN n.state = 'soon' THEN n.soon
            WHEN n.state = 'round' AND n.tried THEN zarrmill_now() + (ARRAY[
                interval '1 hour', interval '6 hours', interval '24 hours', interval '7 days', interval '7 days'])[n.retry_round]
            WHEN n.state = 'round' AND p.state = 'round' AND CAST(:run AS uuid) IS NULL THEN p.next_at
            WHEN n.state = 'round' THEN GREATEST(n.soon, n.first_at, CASE WHEN p.state = 'round' THEN p.next_at END) END,
        options = CASE WHEN 'options' = ANY(r.columns) THEN :options WHEN r.columns IS NULL THEN p.options ELSE COALESCE(p.options, :options) END,
        engine = CASE WHEN 'engine' = ANY(r.columns) THEN :engine WHEN r.columns IS NULL THEN p.engine ELSE COALESCE(p.engine, :engine) END,
        biosigio = CASE WHEN 'biosigio' = ANY(r.columns) THEN :biosigio WHEN r.columns IS NULL THEN p.biosigio ELSE COALESCE(p.biosigio, :biosigio) END,
        done_version = COALESCE(CAST(:version AS text), p.done_version)
    FROM next n, (SELECT CAST(:rebuilt AS text[]) AS columns) r WHERE p.dataset_pk = n.dataset_pk
    RETURNING p.*
""")


def settle(
    c: Connection,
    *,
    dataset_pk: int,
    versions: Versions,
    rebuilt: Collection[str] | None = DEFAULT_REBUILT,
    run: Run | None = None,
    version: str | None = None,
) -> Policy:
    """The policy after a run that published, or after a look that found nothing to do (``run`` None).

    Nothing waits: rounds and troubles are over, ``terminal`` when verdicts stand. Recordings that the run tried in vain make
    the next round, after 1 h, 6 h, 24 h, 7 d and 7 d; after the fifth none follows. Recordings that were never reached make it
    due again after 1 h and use no round. What merely waits for its own next attempt moves no round either.

    Parameters
    ----------
    rebuilt
        Columns of currency that the run brought every store to; the others keep the stamp of an earlier run. None for a run that
        converted nothing, which stamps nothing.
    version
        The source's version when the run was asked for.
    """
    row = c.execute(
        _SETTLE,
        {
            "dataset": dataset_pk,
            "run": run.id if run else None,
            "number": run.number if run else None,
            "options": versions.options,
            "engine": versions.engine,
            "biosigio": versions.biosigio,
            "version": version,
            "rebuilt": None if rebuilt is None else sorted(rebuilt),
        },
    ).one()
    return policy_of(row)


def trouble(c: Connection, *, dataset_pk: int, version: str | None = None) -> Policy:
    """The policy after a run that published nothing: again after 30 min, 1 h, 2 h, 4 h; the fifth in a row is given up.

    ``version`` is the source's when the run was asked for; another one begins anew.
    """
    row = c.execute(
        text("""
            UPDATE policies
            SET infra_failures = LEAST(infra_failures + 1, 5),
                state = CASE WHEN infra_failures < 4 THEN 'backoff' ELSE 'given_up' END,
                next_at = CASE WHEN infra_failures < 4 THEN
                    zarrmill_now() + LEAST(interval '6 hours', interval '30 minutes' * power(2, infra_failures)) END,
                done_version = COALESCE(CAST(:version AS text), done_version)
            WHERE dataset_pk = :dataset RETURNING *
        """),
        {"dataset": dataset_pk, "version": version},
    ).one()
    return policy_of(row)


def note_seen(c: Connection, *, dataset_pk: int, version: str) -> None:
    """Note the version that the source has now; it can be read again."""
    c.execute(
        text("""
            UPDATE policies SET seen_version = :version, seen_at = zarrmill_now(), reconciled_at = zarrmill_now(),
                                unreadable_since = NULL, unreadable = NULL
            WHERE dataset_pk = :dataset
        """),
        {"dataset": dataset_pk, "version": version},
    )


def note_unreadable(c: Connection, *, dataset_pk: int, error: str) -> None:
    """Note that the source could not be looked at, and since when."""
    c.execute(
        text("""
            UPDATE policies SET unreadable = left(:error, 4000), unreadable_since = COALESCE(unreadable_since, zarrmill_now()),
                                reconciled_at = zarrmill_now()
            WHERE dataset_pk = :dataset
        """),
        {"dataset": dataset_pk, "error": error},
    )


def note_reconciled(c: Connection, *, dataset_pk: int) -> None:
    """Note that the dataset was looked at."""
    c.execute(
        text("UPDATE policies SET reconciled_at = zarrmill_now() WHERE dataset_pk = :dataset"), {"dataset": dataset_pk}
    )
