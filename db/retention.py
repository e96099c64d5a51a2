"""History that is old enough to go, and what the tables take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["TableSize", "Trimmed", "database_sizes", "due_for_trimming", "table_sizes", "trim", "trim_service"]


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Rows that were removed."""

    attempts: int
    callbacks: int
    runs: int


_ATTEMPTS = text("""
    DELETE FROM attempts a USING recordings r
    WHERE r.dataset_pk = :dataset AND a.recording_pk = r.pk
      AND a.ended_at < zarrmill_now() - make_interval(days => :days)
      AND NOT EXISTS (SELECT FROM stores s WHERE s.attempt_id = a.id)
      AND EXISTS (SELECT FROM attempts later WHERE later.recording_pk = a.recording_pk AND later.ordinal > a.ordinal)
""")
_CALLBACKS = text("""
    DELETE FROM callbacks c
    WHERE c.dataset_pk = :dataset AND c.delivered_at < zarrmill_now() - make_interval(days => :days)
""")
_RUNS = text("""
    DELETE FROM runs u USING datasets d
    WHERE u.dataset_pk = :dataset AND d.pk = u.dataset_pk AND u.number < d.last_run_number AND u.state <> 'running'
      AND u.ended_at < zarrmill_now() - make_interval(days => :days)
      AND NOT EXISTS (SELECT FROM attempts a WHERE a.run_id = u.id)
      AND NOT EXISTS (SELECT FROM callbacks c WHERE c.run_id = u.id)
      -- a run stays known until its report is removed
      AND NOT EXISTS (SELECT FROM run_reports q WHERE q.run_id = u.id AND q.size_bytes IS NOT NULL)
""")


_HEADERS = text("DELETE FROM known_headers WHERE noted_at < zarrmill_now() - make_interval(days => :days)")


def trim(c: Connection, *, dataset: Dataset, keep_days: int) -> Trimmed:
    """Remove the dataset's attempts, delivered callbacks and runs that ended more than ``keep_days`` days ago.

    Kept for ever: the last attempt at each recording, the attempt that made a served store, the runs of both, the last
    run, and every callback that was not delivered; a run also while its report stands. Headers noted as long ago go too, of whatever dataset. So ``why`` never becomes empty, and nothing that is owed is forgotten.
    """
    values = {"dataset": dataset.pk, "days": keep_days}
    attempts = c.execute(_ATTEMPTS, values).rowcount
    callbacks = c.execute(_CALLBACKS, values).rowcount
    c.execute(_HEADERS, {"days": keep_days})
    return Trimmed(attempts=attempts, callbacks=callbacks, runs=c.execute(_RUNS, values).rowcount)


_SERVICE = (
    "DELETE FROM requests WHERE ended_at < zarrmill_now() - make_interval(days => :days)",
    "DELETE FROM alarms WHERE told_ended < zarrmill_now() - make_interval(days => :days)",
    "DELETE FROM operator_actions WHERE acted_at < zarrmill_now() - make_interval(days => :days)",
)
_PASSES_A_DAY = 288  # upkeep comes every five minutes


def trim_service(c: Connection, *, keep_days: int) -> int:
    """Remove requests that ended, alarms that were told as over, and operators' actions, all that are so old: how many."""
    return sum(c.execute(text(statement), {"days": keep_days}).rowcount for statement in _SERVICE)


def due_for_trimming(c: Connection) -> list[int]:
    """Keys of the datasets whose history is looked at in this pass: each comes once a day, and none twice in a row."""
    rows = c.scalars(
        text("""
            SELECT pk FROM datasets
            WHERE pk % :passes = CAST(floor(extract(epoch FROM zarrmill_now()) / 300) AS bigint) % :passes ORDER BY pk
        """),
        {"passes": _PASSES_A_DAY},
    )
    return list(rows)


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table with its rows, as the server's statistics last counted them, and its bytes on disk, indexes included."""

    name: str
    rows: int
    size_bytes: int


def table_sizes(c: Connection) -> list[TableSize]:
    """Every table of the state, largest first."""
    rows = c.execute(
        text("""
            SELECT relname, n_live_tup AS rows, pg_total_relation_size(relid) AS size_bytes
            FROM pg_stat_user_tables WHERE schemaname = 'public'
            ORDER BY pg_total_relation_size(relid) DESC, relname
        """)
    )
    return [TableSize(row.relname, row.rows, row.size_bytes) for row in rows]


def database_sizes(c: Connection) -> dict[str, int]:
    """Bytes of the state's database, and of Prefect's where it lies on the same server, by name."""
    rows = c.execute(
        text("""
            SELECT datname, pg_database_size(oid) AS size_bytes FROM pg_database
            WHERE datname IN (current_database(), 'prefect') AND has_database_privilege(oid, 'CONNECT')
            ORDER BY datname
        """)
    )
    return {row.datname: row.size_bytes for row in rows}
