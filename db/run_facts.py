"""What one run did, counted by Postgres from its attempts: a bounded number of rows, whatever the run held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection, TextClause


__all__ = [
    "Change",
    "DueWhy",
    "Ending",
    "Outlier",
    "Stage",
    "Standing",
    "Told",
    "Waiting",
    "changes",
    "due_whys",
    "endings",
    "largest",
    "slowest",
    "stages",
    "standings",
    "told",
    "waiting",
]

_EXAMPLES: Final = 10
_Fact = TypeVar("_Fact")
_SECONDS = "extract(epoch FROM COALESCE(a.ended_at, zarrmill_now()) - a.started_at)"


def _facts(c: Connection, kind: type[_Fact], statement: TextClause, **values: Any) -> tuple[_Fact, ...]:
    """The rows of a statement whose columns are called as the fields of ``kind``."""
    return tuple(kind(**row._mapping) for row in c.execute(statement, values))


def _with_examples(row: Any) -> dict[str, Any]:
    """The columns of a row, of which ``paths`` and ``texts`` are the examples."""
    told = dict(row._mapping)
    return {"examples": tuple(zip(told.pop("paths") or (), told.pop("texts") or (), strict=True)), **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Attempts of the run that ended alike.

    Parameters
    ----------
    last
        Whether these are the last attempts of their recordings in this run; each recording has one such.
    seconds
        Wall time of all of them together.
    examples
        Paths of the first ten, each with its error; none of what was converted.
    """

    outcome: str
    code: str | None
    reason: str | None
    last: bool
    attempts: int
    counted: int
    seconds: float
    examples: tuple[tuple[str, str | None], ...]


_ENDINGS = text(f"""
    WITH a AS (
        SELECT id, ordinal, outcome, code, reason, counted, {_SECONDS} AS seconds,
               ordinal = max(ordinal) OVER (PARTITION BY recording_pk) AS last
        FROM attempts a WHERE run_id = :run
    ), g AS (
        SELECT outcome, code, reason, last, count(*) AS attempts, count(*) FILTER (WHERE counted) AS counted, sum(seconds) AS seconds,
               (array_agg(id ORDER BY ordinal) FILTER (WHERE outcome <> 'done'))[1:{_EXAMPLES}] AS ids
        FROM a GROUP BY outcome, code, reason, last
    )
    SELECT g.outcome, g.code, g.reason, g.last, g.attempts, g.counted, g.seconds::float8, x.paths, x.texts
    FROM g, LATERAL (
        SELECT array_agg(r.path ORDER BY r.path) AS paths, array_agg(left(e.error, 300) ORDER BY r.path) AS texts
        FROM unnest(g.ids) i (id) JOIN attempts e ON e.id = i.id JOIN recordings r ON r.pk = e.recording_pk
    ) x
    ORDER BY g.attempts DESC, g.outcome, g.code, g.reason, g.last
""")


def endings(c: Connection, *, run_id: UUID) -> tuple[Ending, ...]:
    """How the run's attempts ended, the most frequent first."""
    return tuple(Ending(**_with_examples(row)) for row in c.execute(_ENDINGS, {"run": run_id}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage over all attempts of the run: how many went through it, its seconds, and the bytes where they are known."""

    name: str
    attempts: int
    seconds: float
    worst_s: float
    size_bytes: int | None

    @property
    def mean_s(self) -> float:
        """Seconds of one attempt on average."""
        return self.seconds / self.attempts


_STAGE_NAMES: Final = ("fetch", "child", "read", "convert", "attributes", "gate", "digest", "upload")
_STAGES = text(
    "SELECT count(*) AS attempts, "
    + ", ".join(
        f"""count({value}) AS n_{name}, sum({value}) AS sum_{name}, max({value}) AS max_{name},
            sum((stage_bytes ->> '{name}')::bigint)::bigint AS bytes_{name}"""
        for name in _STAGE_NAMES
        for value in [f"(stage_seconds ->> '{name}')::float8"]
    )
    + " FROM attempts WHERE run_id = :run"
)


def stages(c: Connection, *, run_id: UUID) -> tuple[Stage, ...]:
    """Time and bytes by stage, the longest first. What happens inside ``child`` is a part of it."""
    row = c.execute(_STAGES, {"run": run_id}).one()._mapping
    found = [
        Stage(
            name=name,
            attempts=row[f"n_{name}"],
            seconds=row[f"sum_{name}"],
            worst_s=row[f"max_{name}"],
            size_bytes=row[f"bytes_{name}"],
        )
        for name in _STAGE_NAMES
        if row[f"n_{name}"]
    ]
    return tuple(sorted(found, key=lambda stage: stage.seconds, reverse=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """An attempt that stands out, by its time or by its memory."""

    path: str
    format: str
    outcome: str
    seconds: float
    size_bytes: int
    measured_bytes: int | None
    worker: str


_OUTLIER = f"""
    WITH few AS (
        SELECT a.recording_pk, a.format, a.outcome, {_SECONDS}::float8 AS seconds, a.measured_bytes, a.worker
        FROM attempts a WHERE a.run_id = :run AND {{which}} ORDER BY {{order}} DESC, a.recording_pk LIMIT :limit
    )
    SELECT r.path, few.format, few.outcome, few.seconds, r.size_bytes, few.measured_bytes, few.worker
    FROM few JOIN recordings r ON r.pk = few.recording_pk ORDER BY few.{{order}} DESC, r.path
"""
_SLOWEST = text(_OUTLIER.format(which="a.outcome <> 'adopted'", order="seconds"))
_LARGEST = text(_OUTLIER.format(which="a.measured_bytes IS NOT NULL", order="measured_bytes"))


def slowest(c: Connection, *, run_id: UUID, limit: int = 10) -> tuple[Outlier, ...]:
    """The attempts that took longest, from claim to end."""
    return _facts(c, Outlier, _SLOWEST, run=run_id, limit=limit)


def largest(c: Connection, *, run_id: UUID, limit: int = 10) -> tuple[Outlier, ...]:
    """The attempts that measured most memory."""
    return _facts(c, Outlier, _LARGEST, run=run_id, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Recordings that stand otherwise after the run than after the last attempt before it: how many, and the first ten.

    ``kind`` is ``new`` (converted for the first time), ``remade``, ``recovered`` (converted, and had not been at its last attempt),
    ``broken`` (failed or put off, and had been converted), ``unsuccessful`` (failed or put off at its first attempt),
    or ``as before`` (failed or put off again).
    """

    kind: str
    recordings: int
    examples: tuple[str, ...]


_CHANGES = text(f"""
    WITH own AS (
        SELECT DISTINCT ON (a.recording_pk) a.recording_pk, a.ordinal, a.outcome FROM attempts a WHERE a.run_id = :run
        ORDER BY a.recording_pk, a.ordinal DESC
    ), compared AS (
        SELECT o.recording_pk, CASE
            WHEN o.outcome = 'done' AND b.outcome IS NULL THEN 'new'
            WHEN o.outcome = 'done' AND b.outcome IN ('done', 'adopted') THEN 'remade'
            WHEN o.outcome = 'done' THEN 'recovered'
            WHEN b.outcome IS NULL THEN 'unsuccessful'
            WHEN b.outcome IN ('done', 'adopted') THEN 'broken' ELSE 'as before' END AS kind
        FROM own o LEFT JOIN LATERAL (
            SELECT p.outcome FROM attempts p
            WHERE p.recording_pk = o.recording_pk AND p.ordinal < o.ordinal AND p.run_id <> :run AND p.outcome <> 'converting'
            ORDER BY p.ordinal DESC LIMIT 1
        ) b ON true
        WHERE o.outcome IN ('done', 'failed', 'pending', 'expired')
    )
    SELECT g.kind, g.recordings, (SELECT array_agg(r.path ORDER BY r.path) FROM recordings r WHERE r.pk = ANY(g.keys)) AS paths
    FROM (
        SELECT kind, count(*) AS recordings, (array_agg(recording_pk ORDER BY recording_pk))[1:{_EXAMPLES}] AS keys
        FROM compared GROUP BY kind
    ) g ORDER BY g.recordings DESC, g.kind
""")


def changes(c: Connection, *, run_id: UUID) -> tuple[Change, ...]:
    """What the run's attempts changed, the largest group first."""
    return tuple(
        Change(kind=row.kind, recordings=row.recordings, examples=tuple(row.paths))
        for row in c.execute(_CHANGES, {"run": run_id})
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A recording that waits for a conversion, and until when."""

    path: str
    size_bytes: int
    reason: str
    attempts: int
    next_attempt_at: datetime | None


_WAITING = text("""
    SELECT r.path, r.size_bytes, r.reason, r.attempts, r.next_attempt_at FROM recordings r
    WHERE r.dataset_pk = :dataset AND r.due = 'pending'
    ORDER BY r.size_bytes DESC, r.path LIMIT :limit
""")


def waiting(c: Connection, *, dataset_pk: int, limit: int = 10) -> tuple[Waiting, ...]:
    """The largest recordings of a dataset that wait now."""
    return _facts(c, Waiting, _WAITING, dataset=dataset_pk, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A callback of the run at one address; ``endpoint`` is None while it was sent nowhere."""

    status: str
    endpoint: str | None
    tries: int
    delivered_at: datetime | None
    last_error: str | None


_TOLD = text("""
    SELECT k.status, d.endpoint, COALESCE(d.tries, 0) AS tries, COALESCE(d.delivered_at, k.delivered_at) AS delivered_at, d.last_error
    FROM callbacks k LEFT JOIN callback_deliveries d ON d.callback_pk = k.pk
    WHERE k.run_id = :run ORDER BY k.pk, d.endpoint LIMIT 100
""")


def told(c: Connection, *, run_id: UUID) -> tuple[Told, ...]:
    """What was told of the run, to whom, and whether it was heard."""
    return _facts(c, Told, _TOLD, run=run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Recordings of a dataset that stand alike now, of those that are due or have a verdict.

    ``kind`` is ``failures`` or ``pending``; ``word`` its code or reason. ``is_served``: an older store of them is served meanwhile.
    """

    kind: str
    word: str
    is_served: bool
    recordings: int
    next_at: datetime | None
    examples: tuple[tuple[str, str | None], ...]


_STANDINGS = text(f"""
    SELECT CASE WHEN due = 'failed' THEN 'failures' ELSE 'pending' END AS kind, COALESCE(code, reason) AS word,
           served_source IS NOT NULL AND served_source = source AS is_served, count(*) AS recordings, min(next_attempt_at) AS next_at,
           (array_agg(path ORDER BY path))[1:{_EXAMPLES}] AS paths,
           (array_agg(left(COALESCE(detail, last_error), 300) ORDER BY path))[1:{_EXAMPLES}] AS texts
    FROM recordings WHERE dataset_pk = :dataset AND due IN ('failed', 'pending', 'converting')
    GROUP BY 1, 2, 3 ORDER BY 1, count(*) DESC, 2, 3
""")


def standings(c: Connection, *, dataset_pk: int) -> tuple[Standing, ...]:
    """What is not as it should be in a dataset now, by code and reason, failures first."""
    return tuple(Standing(**_with_examples(row)) for row in c.execute(_STANDINGS, {"dataset": dataset_pk}))


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWhy:
    """Recordings that the run tried for the same reason."""

    why: str | None
    recordings: int


_DUE_WHYS = text("""
    SELECT why, count(DISTINCT recording_pk) AS recordings FROM attempts WHERE run_id = :run AND outcome <> 'adopted'
    GROUP BY why ORDER BY 2 DESC, 1
""")


def due_whys(c: Connection, *, run_id: UUID) -> tuple[DueWhy, ...]:
    """Why the recordings that the run tried were due, the most frequent first."""
    return _facts(c, DueWhy, _DUE_WHYS, run=run_id)
