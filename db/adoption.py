"""The edges by which a dataset that was served before becomes this database's: stores, verdicts and attempts taken over.

All of them leave ``pending``, not attempted, of recordings that a plan has just added: what is already on its way here is not
overwritten by what somebody else's document says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from sqlalchemy import text

from db.stores import pack_digests

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from contract.codes import FailureCode, PendingReason
    from db.runs import Run

__all__ = ["UNKNOWN_BIOSIGIO", "AdoptedStore", "adopt_failures", "adopt_pending", "adopt_stores"]

UNKNOWN_BIOSIGIO = "unknown"
"""The release of a store whose index does not name one."""

_MAX_ATTEMPTS = 5
_OF_ANOTHER = 0  # runs count from 1; what was counted elsewhere was counted in none of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedStore:
    """A served store as it is taken over.

    Parameters
    ----------
    entry
        The index entry's bytes.
    events
        Its rows of events.parquet, one Arrow IPC stream; None without events.
    note
        What ``why`` says of where it came from.
    """

    path: str
    entry: bytes
    biosigio: str
    events: bytes | None
    events_row_count: int
    source_key: str | None
    size_bytes: int
    duration_s: float
    updated_utc: str
    note: str


_TABLE = """
    CREATE TEMPORARY TABLE adopted (
        path text COLLATE "C" PRIMARY KEY, entry bytea NOT NULL, biosigio text NOT NULL, events bytea,
        events_row_count bigint NOT NULL, source_key text, size_bytes bigint NOT NULL, duration_s float8 NOT NULL,
        updated_utc timestamptz NOT NULL, note text NOT NULL, attempt uuid NOT NULL
    ) ON COMMIT DROP
"""
_COLUMNS = (
    "path, entry, biosigio, events, events_row_count, source_key, size_bytes, duration_s, updated_utc, note, attempt"
)

_FRESH = "r.dataset_pk = :dataset AND r.due = 'pending' AND r.reason = 'not_attempted' AND r.served_source IS NULL"

_ADOPT = text(f"""
    WITH moved AS (
        UPDATE recordings r
        SET due = 'none', why = NULL, reason = NULL, served_source = r.source
        FROM adopted a WHERE {_FRESH} AND r.path = a.path
        RETURNING r.pk, r.dataset_pk, r.zarr, r.source, r.format, r.path
    ), kept AS (
        INSERT INTO stores (recording_pk, dataset_pk, zarr, entry, source, options, engine, biosigio, digests, events,
                            events_row_count, source_key, size_bytes, duration_s, attempt_id, updated_utc)
        SELECT m.pk, m.dataset_pk, m.zarr, a.entry, m.source, u.options, u.engine, a.biosigio, :digests, a.events,
               a.events_row_count, a.source_key, a.size_bytes, a.duration_s, a.attempt, a.updated_utc
        FROM moved m JOIN adopted a ON a.path = m.path JOIN runs u ON u.id = :run
    )
    INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, projected_bytes, permitted_bytes, scratch_bytes,
                          outcome, ended_at, notes)
    SELECT a.attempt, m.pk, :run, 'none', m.format, 'none', 0, 0, 0, 'adopted', zarrmill_now(), ARRAY[a.note]
    FROM moved m JOIN adopted a ON a.path = m.path
""")


def adopt_stores(c: Connection, *, run: Run, stores: Iterable[AdoptedStore]) -> int:
    """Note that these stores are served and nothing is due: pending → none; how many moved.

    Each is taken for current by the run's options and engine, and its objects' digests are not known. The rest of the
    recordings is left as it is.
    """
    c.execute(text(_TABLE))
    driver = c.connection.driver_connection
    assert driver is not None
    with driver.cursor() as cursor, cursor.copy(f"COPY adopted ({_COLUMNS}) FROM STDIN") as copy:
        for one in stores:
            attempt: UUID = uuid4()
            copy.write_row(
                (
                    *(one.path, one.entry, one.biosigio, one.events, one.events_row_count, one.source_key),
                    *(one.size_bytes, one.duration_s, one.updated_utc, one.note, attempt),
                )
            )
    values = {"dataset": run.dataset_pk, "run": run.id, "digests": pack_digests({})}
    moved: int = c.execute(_ADOPT, values).rowcount
    c.execute(text("DROP TABLE adopted"))
    return moved


_FAILED = text(f"""
    UPDATE recordings r
    SET due = 'failed', why = NULL, reason = NULL, code = :code, detail = left(:detail, 4000), verdict_options = u.options,
        verdict_engine = u.engine, verdict_biosigio = u.biosigio, attempts = :attempts, counted_run = :counted
    FROM runs u WHERE u.id = :run AND {_FRESH} AND r.path = :path
""")


def adopt_failures(c: Connection, *, run: Run, failures: Iterable[tuple[str, FailureCode, str | None]]) -> int:
    """Take over verdicts, as (path, code, detail): pending → failed; how many moved."""
    moved = 0
    for path, code, detail in failures:
        exhausted = code.value == "retry_exhausted"
        values = {
            "dataset": run.dataset_pk,
            "run": run.id,
            "path": path,
            "code": code.value,
            "detail": detail,
            "attempts": _MAX_ATTEMPTS if exhausted else 0,
            "counted": _OF_ANOTHER if exhausted else None,
        }
        moved += c.execute(_FAILED, values).rowcount
    return moved


_PENDING = text(f"""
    UPDATE recordings r
    SET attempts = :attempts, reason = :reason, last_error = left(:error, 4000), counted_run = :counted
    WHERE {_FRESH} AND r.path = :path
""")


def adopt_pending(c: Connection, *, run: Run, pending: Iterable[tuple[str, PendingReason, int, str | None]]) -> int:
    """Take over counted attempts, as (path, reason, attempts, last error): pending stays pending; how many moved."""
    moved = 0
    for path, reason, attempts, error in pending:
        if attempts == 0:
            continue
        values = {
            "dataset": run.dataset_pk,
            "path": path,
            "reason": reason.value,
            # the fifth makes a verdict, which is another edge's to give
            "attempts": min(attempts, _MAX_ATTEMPTS - 1),
            "error": error,
            "counted": _OF_ANOTHER,
        }
        if reason.value != "not_attempted":
            moved += c.execute(_PENDING, values).rowcount
    return moved
