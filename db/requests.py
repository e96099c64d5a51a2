"""The queue of what was asked for. Of each kind of work at most one request waits and at most one runs per dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import text

from db import policies

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Run

__all__ = [
    "DEFAULT_REBUILD_ON",
    "MODES",
    "Asked",
    "Request",
    "RequestMode",
    "RequestState",
    "Why",
    "Work",
    "ask",
    "claim",
    "end",
    "end_of_run",
    "find",
    "give_back",
    "latest",
    "listed",
    "next_due",
    "recover",
    "refuse",
    "settle",
    "start",
    "unserved_are_due",
    "wait_again",
]

RequestMode = Literal["auto", "retry-pending", "full", "verify"]
MODES: tuple[RequestMode, ...] = ("auto", "retry-pending", "full", "verify")
"""Conversions from the weakest to the strongest, each of which does what those before it do; and the work of the sweep."""
Work = Literal["convert", "verify"]
Why = Literal["new", "version", "retry_round", "not_attempted", "backoff", "engine", "requested", "index"]
RequestState = Literal["waiting", "running", "done", "failed", "refused"]
DEFAULT_REBUILD_ON = frozenset({"options", "engine"})

_BEGINS_ANEW = frozenset({"new", "version", "engine", "requested", "index"})
"""Reasons for which earlier rounds and troubles no longer count."""
_RANK = "array_position(ARRAY['auto', 'retry-pending', 'full', 'verify'], {})"
_STRONGER = f"CASE WHEN {_RANK.format('{a}.mode')} >= {_RANK.format('{b}.mode')} THEN {{a}}.mode ELSE {{b}}.mode END"
_UNION = "ARRAY(SELECT DISTINCT unnest({a}.rebuild_on || {b}.rebuild_on) ORDER BY 1)"
_LOST_AFTER = "10 minutes"  # past the lease: whoever takes the dataset over before that gives the request back itself
_VERIFY_LASTS = "6 hours"
_UNSERVED_WAITS = "10 minutes"
_OF_RUN = "run_id = CAST(:run AS uuid)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Work on a dataset that somebody asked for.

    Parameters
    ----------
    commit
        The commit, branch or tag to read a repository at; None for the source as it then stands.
    rebuild_on
        Columns of currency whose change rebuilds a store.
    detail
        A sentence on why, for people.
    version
        The source's version that made somebody ask.
    coalesced
        How many later requests it stands for, beside its own.
    lost_runs
        How many runs took it up and were never heard of again.
    """

    pk: int
    dataset_pk: int
    dataset_id: str
    target: str
    work: Work
    mode: RequestMode
    commit: str | None
    rebuild_on: frozenset[str]
    why: Why
    detail: str | None
    asked_by: str
    version: str | None
    state: RequestState
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    run_id: UUID | None
    coalesced: int
    lost_runs: int
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The request that stands now, and whether this one made it or was ``coalesced`` into one that was waiting.

    ``widened``: the standing one does more, or another commit, than before; ``former_commit`` is what it named then.
    """

    request: Request
    coalesced: bool
    widened: bool
    former_commit: str | None = None


def _request(row: Any) -> Request:
    values = {name: getattr(row, name) for name in Request.__slots__}
    return Request(**(values | {"rebuild_on": frozenset(row.rebuild_on)}))


_SELECT = "SELECT q.*, d.dataset_id, d.target FROM {} q JOIN datasets d ON d.pk = q.dataset_pk"

_ASK = text(f"""
    WITH former AS (
        SELECT mode, commit, rebuild_on FROM requests WHERE dataset_pk = :dataset AND work = :work AND state = 'waiting'
    ), q AS (
        INSERT INTO requests AS standing (dataset_pk, work, mode, commit, rebuild_on, why, detail, asked_by, version)
        VALUES (:dataset, :work, :mode, :commit, CAST(:rebuild_on AS text[]), :why, left(:detail, 1000), left(:asked_by, 200), :version)
        ON CONFLICT (dataset_pk, work) WHERE state = 'waiting' DO UPDATE
        SET mode = {_STRONGER.format(a="standing", b="excluded")},
            commit = COALESCE(excluded.commit, standing.commit),
            rebuild_on = {_UNION.format(a="standing", b="excluded")},
            version = COALESCE(excluded.version, standing.version),
            coalesced = standing.coalesced + 1,
            start_after = CASE WHEN excluded.why <> 'requested' THEN standing.start_after END
        RETURNING *
    )
    {_SELECT.format("q").replace("SELECT q.*", "SELECT q.*, (q.mode, q.commit, q.rebuild_on) IS DISTINCT FROM (f.mode, f.commit, f.rebuild_on) AS widened, f.commit AS former_commit")}
    LEFT JOIN former f ON true
""")


def ask(
    c: Connection,
    *,
    dataset_pk: int,
    mode: RequestMode,
    asked_by: str,
    why: Why = "requested",
    commit: str | None = None,
    rebuild_on: Collection[str] = DEFAULT_REBUILD_ON,
    detail: str | None = None,
    version: str | None = None,
) -> Asked:
    """Ask for work on a dataset. While a request for that kind of work waits, this one is coalesced into it.

    The standing request then has the stronger mode of both, the newer commit where one is named, and rebuilds on what
    either names. Retry rounds and troubles are forgotten, unless they are what asks.
    """
    row = c.execute(
        _ASK,
        {
            "dataset": dataset_pk,
            "work": "verify" if mode == "verify" else "convert",
            "mode": mode,
            "commit": commit,
            "rebuild_on": sorted(rebuild_on),
            "why": why,
            "detail": detail,
            "asked_by": asked_by,
            "version": version,
        },
    ).one()
    if mode != "verify" and why in _BEGINS_ANEW:
        policies.renew(c, dataset_pk=dataset_pk)
    standing = _request(row)
    coalesced = standing.coalesced > 0
    return Asked(
        request=standing,
        coalesced=coalesced,
        widened=coalesced and row.widened,
        former_commit=row.former_commit if coalesced else None,
    )


def find(c: Connection, *, pk: int) -> Request | None:
    """The request of this number; None for one that never was."""
    row = c.execute(text(_SELECT.format("requests") + " WHERE q.pk = :pk"), {"pk": pk}).one_or_none()
    return None if row is None else _request(row)


def latest(c: Connection, *, dataset: Dataset, work: Work = "convert") -> Request | None:
    """The newest request for this kind of work on a dataset."""
    row = c.execute(
        text(
            _SELECT.format("requests") + " WHERE q.dataset_pk = :dataset AND q.work = :work ORDER BY q.pk DESC LIMIT 1"
        ),
        {"dataset": dataset.pk, "work": work},
    ).one_or_none()
    return None if row is None else _request(row)


def listed(
    c: Connection, *, states: Collection[RequestState] = ("waiting", "running"), limit: int = 1000
) -> list[Request]:
    """Requests in these states, the first asked first."""
    rows = c.execute(
        text(
            _SELECT.format("requests")
            + " WHERE q.state = ANY(CAST(:states AS text[])) ORDER BY q.asked_at, q.pk LIMIT :limit"
        ),
        {"states": list(states), "limit": limit},
    )
    return [_request(row) for row in rows]


def next_due(c: Connection, *, work: Work = "convert", limit: int = 20) -> list[Request]:
    """Waiting requests that may be started now: not paused, of active datasets that no run holds.

    One that no machine took waits some minutes, and while every worker is drained.

    What somebody asked for comes before what is new, that before retries, and a new engine last; then the first asked first.
    """
    rows = c.execute(
        text(
            _SELECT.format("requests")
            + """
            WHERE q.state = 'waiting' AND q.work = :work AND d.active
              AND (q.start_after IS NULL OR (q.start_after <= zarrmill_now() AND NOT EXISTS (SELECT FROM drains WHERE worker = '*')))
              AND NOT EXISTS (SELECT FROM pauses p WHERE p.dataset_pk IS NULL OR p.dataset_pk = q.dataset_pk)
              AND NOT EXISTS (SELECT FROM requests o WHERE o.dataset_pk = q.dataset_pk AND o.work = q.work AND o.state = 'running')
              AND (q.work <> 'convert' OR NOT EXISTS (
                  SELECT FROM dataset_leases l WHERE l.dataset_pk = q.dataset_pk AND l.expires_at > zarrmill_now()))
            ORDER BY array_position(ARRAY['requested', 'new', 'version', 'index', 'retry_round', 'not_attempted', 'backoff', 'engine'],
                                    q.why), q.asked_at, q.pk
            LIMIT :limit
            """
        ),
        {"work": work, "limit": limit},
    )
    return [_request(row) for row in rows]


def _moved(c: Connection, update: str, values: dict[str, Any]) -> Request | None:
    row = c.execute(text(f"WITH q AS ({update} RETURNING *) {_SELECT.format('q')}"), values).one_or_none()
    return None if row is None else _request(row)


def start(c: Connection, *, pk: int) -> Request | None:
    """Waiting → running, for work that opens no run of a dataset; None when it waits no longer."""
    return _moved(
        c,
        "UPDATE requests SET state = 'running', started_at = zarrmill_now() WHERE pk = :pk AND state = 'waiting'",
        {"pk": pk},
    )


def claim(c: Connection, *, run: Run, commits: Collection[str] = ()) -> Request | None:
    """Waiting → running: the request that the run, which holds the dataset, does on its way; None when there is none.

    It is done on the way when the run's mode does all that it asks, and it names no commit or one of ``commits``.
    """
    return _moved(
        c,
        f"""
            UPDATE requests SET state = 'running', started_at = zarrmill_now(), run_id = CAST(:run AS uuid)
            WHERE dataset_pk = :dataset AND work = 'convert' AND state = 'waiting'
              AND {_RANK.format("mode")} <= {_RANK.format(":mode")}
              AND (commit IS NULL OR commit = ANY(CAST(:commits AS text[])))
        """,
        {"run": run.id, "dataset": run.dataset_pk, "mode": run.mode, "commits": list(commits)},
    )


def settle(c: Connection, *, dataset_pk: int, mode: RequestMode, commits: Collection[str] = ()) -> Request | None:
    """Waiting → done, by a look that found nothing to do for it. The same rule as ``claim``."""
    return _moved(
        c,
        f"""
            UPDATE requests SET state = 'done', started_at = zarrmill_now(), ended_at = zarrmill_now()
            WHERE dataset_pk = :dataset AND work = 'convert' AND state = 'waiting'
              AND {_RANK.format("mode")} <= {_RANK.format(":mode")}
              AND (commit IS NULL OR commit = ANY(CAST(:commits AS text[])))
        """,
        {"dataset": dataset_pk, "mode": mode, "commits": list(commits)},
    )


def refuse(c: Connection, *, pk: int, error: str) -> Request | None:
    """Waiting or running → refused: it cannot be begun as asked, and ``error`` names the way out."""
    return _moved(
        c,
        """
            UPDATE requests SET state = 'refused', ended_at = zarrmill_now(), error = left(:error, 4000)
            WHERE pk = :pk AND state IN ('waiting', 'running')
        """,
        {"pk": pk, "error": error},
    )


def end(c: Connection, *, pk: int, error: str | None = None) -> Request | None:
    """Running → done, or with ``error`` failed; None when it does not run."""
    return _moved(
        c,
        """
            UPDATE requests SET state = CASE WHEN CAST(:error AS text) IS NULL THEN 'done' ELSE 'failed' END,
                                error = left(:error, 4000), ended_at = zarrmill_now()
            WHERE pk = :pk AND state = 'running'
        """,
        {"pk": pk, "error": error},
    )


def end_of_run(c: Connection, *, run: Run, error: str | None = None) -> Request | None:
    """Running → done, or with ``error`` failed, of the request that this run took up; None when it took none."""
    return _moved(
        c,
        """
            UPDATE requests SET state = CASE WHEN CAST(:error AS text) IS NULL THEN 'done' ELSE 'failed' END,
                                error = left(:error, 4000), ended_at = zarrmill_now()
            WHERE run_id = CAST(:run AS uuid) AND state = 'running'
        """,
        {"run": run.id, "error": error},
    )


_GIVE_BACK = f"""
    WITH back AS (SELECT * FROM requests WHERE {{which}} AND state = 'running' FOR UPDATE),
    widened AS (
        UPDATE requests w
        SET mode = {_STRONGER.format(a="w", b="b")}, rebuild_on = {_UNION.format(a="w", b="b")},
            commit = COALESCE(w.commit, b.commit), coalesced = w.coalesced + 1
        FROM back b WHERE w.dataset_pk = b.dataset_pk AND w.work = b.work AND w.state = 'waiting' RETURNING b.pk
    ), told AS (
        SELECT b.pk, s.spent, s.spent OR EXISTS (SELECT FROM widened w WHERE w.pk = b.pk) AS ended
        FROM back b CROSS JOIN LATERAL (SELECT b.lost_runs + :lost > 4 AND :lost > 0 AS spent) s
    )
    UPDATE requests q
    SET state = CASE WHEN t.ended THEN 'failed' ELSE 'waiting' END, lost_runs = q.lost_runs + :lost,
        start_after = CASE WHEN :unserved THEN zarrmill_now() + interval '{_UNSERVED_WAITS}' END,
        run_id = CASE WHEN t.ended THEN q.run_id END, started_at = CASE WHEN t.ended THEN q.started_at END,
        ended_at = CASE WHEN t.ended THEN zarrmill_now() END,
        error = CASE WHEN t.spent THEN 'Five runs that took it up were never heard of again.'
                     WHEN t.ended THEN 'Its run ' || CASE WHEN :lost > 0 THEN 'was never heard of again' ELSE 'ended before its work' END
                               || '; a later request stands for it.' END
    FROM told t WHERE q.pk = t.pk RETURNING q.dataset_pk, q.version, t.spent
"""


def give_back(c: Connection, *, run_id: UUID) -> int:
    """Running → waiting, of a run that is lost: how many. One that lost five runs has failed and backs the dataset off."""
    return _back(c, _OF_RUN, {"run": run_id})


def wait_again(c: Connection, *, run: Run, unserved: bool) -> bool:
    """Running → waiting, uncounted: its run ended before its work. False when the run had taken none up.

    ``unserved``: no machine took what was due, so it waits some minutes, or until a drain is undone.
    """
    return _back(c, _OF_RUN, {"run": run.id}, lost=0, unserved=unserved) > 0


def unserved_are_due(c: Connection) -> int:
    """Let what no machine took be started at once, now that one may take work again: how many."""
    return c.execute(
        text("UPDATE requests SET start_after = NULL WHERE state = 'waiting' AND start_after IS NOT NULL")
    ).rowcount


def recover(c: Connection) -> int:
    """Running → waiting, of requests whose run is gone and that nobody took over: how many."""
    return _back(
        c,
        f"""CASE WHEN run_id IS NULL THEN started_at < zarrmill_now() - interval '{_VERIFY_LASTS}'
            ELSE NOT EXISTS (SELECT FROM dataset_leases l
                             WHERE l.run_id = requests.run_id AND l.expires_at > zarrmill_now() - interval '{_LOST_AFTER}') END""",
        {},
    )


def _back(c: Connection, which: str, values: dict[str, Any], *, lost: int = 1, unserved: bool = False) -> int:
    rows = c.execute(text(_GIVE_BACK.format(which=which)), values | {"lost": lost, "unserved": unserved}).all()
    for row in rows:
        if row.spent:
            policies.trouble(c, dataset_pk=row.dataset_pk, version=row.version)
    return len(rows)
