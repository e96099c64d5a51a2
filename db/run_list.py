"""Runs as people look for them: one by its id with who asked for it, or a page of them, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection

__all__ = ["RunHead", "RunPage", "find_head", "find_numbered", "head_before", "head_of", "runs_listed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """One run of one dataset: what it was, who asked for it, how it ended.

    Parameters
    ----------
    asked
        What the run was asked, as its command or request said it; empty for runs of before this was kept.
    asked_by
        Who: of the request that the run carried out, else the user whose command it was; None where that was not kept.
    counts
        Totals as of its end; empty for one that published nothing.
    is_newest
        No later run of its dataset has begun.
    is_public
        Its dataset is for everybody.
    """

    id: UUID
    dataset_pk: int
    dataset_id: str
    dataset_name: str | None
    target: str
    source: str
    number: int
    mode: str
    state: str
    stage: str | None
    zarrmill: str
    options: str
    engine: str
    biosigio: str
    owner_host: str
    owner_pid: int
    started_at: datetime
    ended_at: datetime | None
    now: datetime
    counts: Mapping[str, Any]
    error: str | None
    source_commit: str | None
    asked: Mapping[str, Any]
    flow_run_id: UUID | None
    asked_by: str | None
    request_why: str | None
    request_detail: str | None
    is_newest: bool
    is_public: bool

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far."""
        return ((self.ended_at or self.now) - self.started_at).total_seconds()


_RUNS = "runs u JOIN datasets d ON d.pk = u.dataset_pk"
_HEAD = f"""
    SELECT u.id, u.dataset_pk, d.dataset_id, d.name AS dataset_name, d.target, d.source, u.number, u.mode, u.state, u.stage, u.zarrmill,
           u.options, u.engine, u.biosigio, u.owner_host, u.owner_pid, u.started_at, u.ended_at, zarrmill_now() AS now, u.counts, u.error,
           u.source_commit, u.asked, u.flow_run_id, COALESCE(q.asked_by, u.asked ->> 'by') AS asked_by, q.why AS request_why,
           q.detail AS request_detail, u.number = d.last_run_number AS is_newest,
           d.visibility = 'public' AND d.active AS is_public
    FROM {_RUNS}
    LEFT JOIN LATERAL (
        SELECT asked_by, why, detail FROM requests WHERE run_id = u.id ORDER BY pk DESC LIMIT 1
    ) q ON true
"""


def _head(row: Any) -> RunHead:
    return RunHead(**row._mapping)


def find_head(c: Connection, *, run_id: UUID) -> RunHead | None:
    """The run of this id; None for one that is not known."""
    row = c.execute(text(_HEAD + "WHERE u.id = :run"), {"run": run_id}).one_or_none()
    return None if row is None else _head(row)


def head_of(c: Connection, *, dataset_pk: int, number: int | None = None) -> RunHead | None:
    """The run of this number of a dataset, by default its newest; None where there is none."""
    row = c.execute(
        text(
            _HEAD + "WHERE u.dataset_pk = :dataset AND (CAST(:number AS bigint) IS NULL OR u.number = :number)"
            " ORDER BY u.number DESC LIMIT 1"
        ),
        {"dataset": dataset_pk, "number": number},
    ).one_or_none()
    return None if row is None else _head(row)


def find_numbered(c: Connection, *, target: str, dataset_id: str, number: int) -> RunHead | None:
    """The run of this number of a dataset at a target; None where there is none."""
    row = c.execute(
        text(_HEAD + "WHERE d.target = :target AND d.dataset_id = :dataset AND u.number = :number"),
        {"target": target, "dataset": dataset_id, "number": number},
    ).one_or_none()
    return None if row is None else _head(row)


def head_before(c: Connection, head: RunHead) -> RunHead | None:
    """The last run of the same dataset before this one that published; None when there was none."""
    row = c.execute(
        text(
            _HEAD + "WHERE u.dataset_pk = :dataset AND u.number < :number AND u.counts ? 'discovered'"
            " ORDER BY u.number DESC LIMIT 1"
        ),
        {"dataset": head.dataset_pk, "number": head.number},
    ).one_or_none()
    return None if row is None else _head(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A part of a list of runs, and how long the whole list is."""

    runs: tuple[RunHead, ...]
    total: int


_FITS = """
    WHERE d.target = :target AND (CAST(:dataset AS text) IS NULL OR d.dataset_id = :dataset)
      AND (CAST(:state AS text) IS NULL OR u.state = :state) AND (NOT :public OR d.visibility = 'public' AND d.active)
"""
_WHO = " AND position(lower(:who) IN lower(COALESCE(q.asked_by, u.asked ->> 'by', ''))) > 0"


def runs_listed(
    c: Connection,
    *,
    target: str,
    public_only: bool = False,
    dataset_id: str | None = None,
    state: str | None = None,
    who: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> RunPage:
    """Runs at a target, newest first, that fit what is given; ``who`` is a part of the name of who asked, in any case."""
    fits = _FITS + (_WHO if who else "")
    values = {"target": target, "dataset": dataset_id, "state": state, "public": public_only, "who": who}
    # without a name to look for, who asked is looked up for the rows that are shown alone
    counted = f"SELECT count(*) FROM ({_HEAD + fits}) every" if who else f"SELECT count(*) FROM {_RUNS} {fits}"
    total = c.scalar(text(counted), values) or 0
    rows = c.execute(
        text(_HEAD + fits + " ORDER BY u.started_at DESC, u.id LIMIT :limit OFFSET :offset"),
        {**values, "limit": limit, "offset": offset},
    )
    return RunPage(runs=tuple(_head(row) for row in rows), total=total)
