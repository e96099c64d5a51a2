"""Bring the recordings of a dataset to what a plan says, in a few statements however many there are."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.codes import FailureCode, WhyDue
from contract.errors import LostLease

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from db.dataset_values import Dataset
    from db.runs import Run

__all__ = ["Applied", "PlannedAction", "PlannedRow", "apply_plan", "pack_inputs", "unpack_inputs"]


class PlannedAction(StrEnum):
    """What a plan wants for one discovered recording."""

    CONVERT = "convert"
    CARRY = "carry"
    WAIT = "wait"
    KEEP_FAILED = "keep_failed"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRow:
    """One discovered recording as planned.

    Parameters
    ----------
    source
        Fingerprint of ``inputs``.
    inputs
        (path, content id) of everything that decides the store. None keeps what is stored, for an unchanged ``source``.
    action
        CONVERT needs ``why``, FAIL needs ``code``. CARRY, WAIT and KEEP_FAILED leave what is due as it is, but that CARRY
        clears a rebuild that is no longer wanted.
    """

    path: str
    zarr: str
    format: str
    modality: str | None
    size_bytes: int
    source: str
    inputs: tuple[tuple[str, str], ...] | None
    action: PlannedAction
    why: WhyDue | None = None
    code: FailureCode | None = None
    detail: str | None = None

    def __post_init__(self) -> None:
        if (self.action is PlannedAction.CONVERT) != (self.why is not None):
            raise ValueError(f"{self.path!r}: a conversion, and nothing else, says why it is due")
        if (self.action is PlannedAction.FAIL) != (self.code is not None):
            raise ValueError(f"{self.path!r}: a verdict, and nothing else, has a code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """How many rows a plan wrote."""

    added: int
    changed: int
    vanished: int


def pack_inputs(inputs: tuple[tuple[str, str], ...]) -> bytes:
    """(path, content id) pairs, packed in sorted order."""
    return zlib.compress(json.dumps(sorted(inputs), ensure_ascii=False, separators=(",", ":")).encode(), 6)


def unpack_inputs(packed: bytes) -> tuple[tuple[str, str], ...]:
    """What ``pack_inputs`` was given, sorted."""
    return tuple((path, content_id) for path, content_id in json.loads(zlib.decompress(packed)))


_PLANNED = """
    CREATE TEMPORARY TABLE planned (
        path text COLLATE "C" PRIMARY KEY, zarr text COLLATE "C" NOT NULL, format text NOT NULL, modality text,
        size_bytes bigint NOT NULL, source text NOT NULL, inputs bytea, action text NOT NULL, why text, code text, detail text
    ) ON COMMIT DROP
"""

_HOLDS = text("""
    SELECT count(r.pk) AS converting
    FROM (SELECT dataset_pk FROM dataset_leases WHERE run_id = :run AND expires_at > zarrmill_now() FOR SHARE) l
    LEFT JOIN recordings r ON r.dataset_pk = l.dataset_pk AND r.due = 'converting'
    GROUP BY l.dataset_pk
""")

_ADD = text("""
    INSERT INTO recordings (dataset_pk, path, zarr, format, modality, size_bytes, discovered, source, inputs, due, why, reason,
                            code, detail, verdict_options, verdict_engine, verdict_biosigio)
    SELECT :dataset, p.path, p.zarr, p.format, p.modality, p.size_bytes, true, p.source, p.inputs,
           CASE p.action WHEN 'fail' THEN 'failed' ELSE 'pending' END,
           CASE WHEN p.action <> 'fail' THEN COALESCE(p.why, 'new') END,
           CASE WHEN p.action <> 'fail' THEN 'not_attempted' END,
           p.code, left(p.detail, 4000),
           CASE p.action WHEN 'fail' THEN u.options END, CASE p.action WHEN 'fail' THEN u.engine END,
           CASE p.action WHEN 'fail' THEN u.biosigio END
    FROM planned p JOIN runs u ON u.id = :run
    WHERE NOT EXISTS (SELECT FROM recordings r WHERE r.dataset_pk = :dataset AND r.path = p.path)
""")

# A recording is `fresh` when it comes back, its source changed, or a verdict is lifted: then nothing of its attempts is kept.
# `to` is what is due afterwards. A pending recording that stays pending keeps its reason, its attempts and why it was due.
_WANTED = """
    SELECT r.pk, p.zarr, p.format, p.modality, p.size_bytes, p.source, COALESCE(p.inputs, r.inputs) AS inputs,
           CASE WHEN p.why = 'lost' THEN NULL ELSE r.served_source END AS served_source, d.due,
           CASE WHEN d.due <> 'pending' THEN NULL WHEN f.fresh OR r.due <> 'pending' THEN COALESCE(p.why, 'source') ELSE r.why END
               AS why,
           CASE WHEN d.due <> 'pending' THEN NULL WHEN f.fresh OR r.due <> 'pending' THEN 'not_attempted' ELSE r.reason END
               AS reason,
           CASE WHEN d.due = 'failed' THEN COALESCE(p.code, r.code) END AS code,
           CASE WHEN d.due = 'failed' AND p.code IS NULL THEN r.detail ELSE left(p.detail, 4000) END AS detail,
           CASE WHEN d.due = 'failed' AND p.code IS NULL THEN r.needed_bytes END AS needed_bytes,
           CASE WHEN d.due = 'failed' THEN CASE WHEN p.code IS NULL OR same THEN r.verdict_options ELSE u.options END END
               AS verdict_options,
           CASE WHEN d.due = 'failed' THEN CASE WHEN p.code IS NULL OR same THEN r.verdict_engine ELSE u.engine END END
               AS verdict_engine,
           CASE WHEN d.due = 'failed' THEN CASE WHEN p.code IS NULL OR same THEN r.verdict_biosigio ELSE u.biosigio END END
               AS verdict_biosigio,
           CASE WHEN k.kept THEN r.attempts ELSE 0 END AS attempts,
           CASE WHEN k.kept THEN r.deaths ELSE 0 END AS deaths,
           CASE WHEN k.kept THEN r.last_error END AS last_error,
           CASE WHEN k.kept THEN r.next_attempt_at END AS next_attempt_at
    FROM planned p
    JOIN recordings r ON r.dataset_pk = :dataset AND r.path = p.path
    JOIN runs u ON u.id = :run
    CROSS JOIN LATERAL (SELECT r.source <> p.source OR NOT r.discovered OR r.due = 'failed' AND p.action = 'convert' AS fresh) f
    CROSS JOIN LATERAL (SELECT CASE
        WHEN p.action = 'fail' THEN 'failed'
        WHEN p.action = 'convert' THEN 'pending'
        WHEN p.action = 'carry' THEN 'none'
        WHEN f.fresh THEN 'pending'
        ELSE r.due END AS due) d
    CROSS JOIN LATERAL (SELECT NOT f.fresh AND d.due <> 'none' AND p.code IS NULL AS kept) k
    CROSS JOIN LATERAL (
        SELECT NOT f.fresh AND (r.code, r.detail) IS NOT DISTINCT FROM (p.code, left(p.detail, 4000)) AS same
    ) s
"""
_COLUMNS = (
    "zarr, format, modality, size_bytes, source, inputs, served_source, due, why, reason, code, detail, needed_bytes, "
    "verdict_options, verdict_engine, verdict_biosigio, attempts, deaths, last_error, next_attempt_at"
)


def _prefixed(prefix: str) -> str:
    return ", ".join(f"{prefix}.{name}" for name in _COLUMNS.split(", "))


_CHANGE = text(f"""
    WITH w AS MATERIALIZED ({_WANTED})
    UPDATE recordings r SET ({_COLUMNS}, discovered) = ROW ({_prefixed("w")}, true)
    FROM w
    WHERE r.pk = w.pk AND ({_prefixed("r")}, r.discovered) IS DISTINCT FROM ({_prefixed("w")}, true)
""")

_FORGET_LOST = text("""
    DELETE FROM stores s USING planned p, recordings r
    WHERE p.why = 'lost' AND r.dataset_pk = :dataset AND r.path = p.path AND s.recording_pk = r.pk
""")

_VANISH = text("""
    UPDATE recordings r
    SET discovered = false, due = 'none', why = NULL, reason = NULL, code = NULL, detail = NULL, needed_bytes = NULL,
        verdict_options = NULL, verdict_engine = NULL, verdict_biosigio = NULL, attempts = 0, deaths = 0, last_error = NULL,
        next_attempt_at = NULL
    WHERE r.dataset_pk = :dataset AND r.discovered AND NOT EXISTS (SELECT FROM planned p WHERE p.path = r.path)
""")


def apply_plan(c: Connection, *, dataset: Dataset, run: Run, rows: Iterable[PlannedRow]) -> Applied:
    """Make what is due what the plan says. ``rows`` are all discovered recordings; any other is marked vanished.

    Rows that already are as planned are not written. A changed source, a return and a lifted verdict begin afresh: no
    attempts, not attempted. A store named as lost is forgotten. Call it before the run's first claim.

    Raises
    ------
    LostLease
        The run does not hold the dataset.
    """
    converting = c.scalar(_HOLDS, {"run": run.id})
    if converting is None:
        raise LostLease("this run does not hold the dataset", detail=f"run {run.number} of {dataset.dataset_id}")
    if converting:
        raise ValueError(
            f"{converting} recordings of {dataset.dataset_id} are converting; a plan is applied before any claim"
        )
    _copy(c, rows)
    values = {"dataset": dataset.pk, "run": run.id}
    added = c.execute(_ADD, values).rowcount
    c.execute(_FORGET_LOST, values)
    changed = c.execute(_CHANGE, values).rowcount
    vanished = c.execute(_VANISH, values).rowcount
    c.execute(text("DROP TABLE planned"))
    return Applied(added=added, changed=changed, vanished=vanished)


def _copy(c: Connection, rows: Iterable[PlannedRow]) -> None:
    c.execute(text(_PLANNED))
    driver = c.connection.driver_connection
    assert driver is not None
    with driver.cursor() as cursor, cursor.copy("COPY planned FROM STDIN") as copy:
        for row in rows:
            packed = None if row.inputs is None else pack_inputs(row.inputs)
            copy.write_row(
                (
                    *(row.path, row.zarr, row.format, row.modality, row.size_bytes, row.source, packed),
                    *(str(row.action), row.why and str(row.why), row.code and str(row.code), row.detail),
                )
            )
    c.execute(text("ANALYZE planned"))
