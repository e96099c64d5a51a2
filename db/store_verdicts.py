"""What a verify sweep has to look at, and the verdicts that it leaves, store by store.

A verdict belongs to a store's ``digest`` (SHA-256 over the names, sizes and hashes of its objects) and its source. A store that
is replaced, or whose root is rewritten, has another digest, so its old verdict no longer stands and nothing has to be cleared.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from contract.verification import VERIFY_REVISION
from db.apply import unpack_inputs
from db.coverage import SERVED
from db.examples import kept
from db.stores import unpack_digests, unpack_etags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from db.dataset_values import Dataset

__all__ = ["FidelityOfStore", "ServedStoreRow", "found", "served_store", "stores_to_check", "verdict_of"]

STANDS = "o.digest = s.digest AND o.source = s.source"
"""SQL over ``store_verdicts o`` and ``stores s``: the verdict is about the store as it is served now."""

_WHICH = f"""
    FROM stores s JOIN recordings r ON r.pk = s.recording_pk LEFT JOIN store_verdicts o ON o.recording_pk = s.recording_pk
    WHERE s.dataset_pk = :dataset AND {SERVED}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStoreRow:
    """A published store, with all that it is compared with.

    Parameters
    ----------
    entry
        Its index entry's exact bytes.
    inputs
        (path, content id) of everything that it was made from.
    digests, etags
        What its conversion left; ``digests`` is empty for a store that was taken over.
    proved_body
        The ``body_digest`` that an earlier sweep verified from the same source, by which a rewritten root is told from a new
        store; None without one, and where a verdict stands: what is compared in spite of it is compared whole.
    """

    recording_id: int
    path: str
    zarr: str
    format: str
    modality: str | None
    source: str
    digest: str
    entry: bytes
    inputs: tuple[tuple[str, str], ...]
    digests: Mapping[str, tuple[int, str]]
    etags: Mapping[str, str] | None
    proved_body: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityOfStore:
    """The verdict on one store. ``stands``: it is about the store as it is served now."""

    status: str
    why: str | None
    digest: str
    checked: int
    mismatches: int
    examples: tuple[Any, ...]
    seed: int
    verified_at: datetime
    stands: bool


def stores_to_check(
    c: Connection, *, dataset: Dataset, path: str | None = None, every: bool = False, again_days: int | None = None
) -> list[tuple[int, str]]:
    """(recording id, path) of published stores whose verdict does not stand, is ``failed`` or of an earlier revision, by path.

    ``path`` leaves only the recording or store of that path; ``every`` takes those with a verdict too. With ``again_days`` also
    those come whose verdict is older than so many days: the oldest, and of the dataset's stores at most one in so many, rounded
    up, so that what was verified on one day is not all read again on another.
    """
    rows = c.execute(
        text(f"""
            SELECT pk, path FROM (
                SELECT q.*, row_number() OVER (PARTITION BY due ORDER BY verified_at, path) AS rank, count(*) OVER () AS stores
                FROM (
                    SELECT r.pk, r.path, r.zarr, o.verified_at,
                           (o.recording_pk IS NULL OR NOT ({STANDS}) OR o.status = 'failed' OR o.revision < :revision) AS due
                    {_WHICH}
                ) q
            ) a
            WHERE (CAST(:path AS text) IS NULL OR path = :path OR zarr = :path)
              AND (:every OR due OR (
                  verified_at < zarrmill_now() - make_interval(days => CAST(:days AS int))
                  AND rank <= ceil(stores / CAST(:days AS numeric))))
            ORDER BY path
        """),
        {"dataset": dataset.pk, "path": path, "every": every, "revision": VERIFY_REVISION, "days": again_days},
    )
    return [(row.pk, row.path) for row in rows]


def served_store(c: Connection, *, dataset: Dataset, recording_id: int) -> ServedStoreRow | None:
    """The published store of a recording as it is now; None when it is published no longer."""
    row = c.execute(
        text(f"""
            SELECT r.pk, r.path, r.zarr, r.format, r.modality, r.inputs, s.source, s.digest, s.entry, s.digests, s.etags,
                   CASE WHEN o.status = 'verified' AND o.source = s.source AND o.revision >= :revision AND o.digest <> s.digest
                       THEN o.body_digest END AS proved_body
            {_WHICH} AND r.pk = :recording
        """),
        {"dataset": dataset.pk, "recording": recording_id, "revision": VERIFY_REVISION},
    ).one_or_none()
    if row is None:
        return None
    return ServedStoreRow(
        recording_id=row.pk,
        path=row.path,
        zarr=row.zarr,
        format=row.format,
        modality=row.modality,
        source=row.source,
        digest=row.digest,
        entry=row.entry,
        inputs=unpack_inputs(row.inputs),
        digests=unpack_digests(row.digests),
        etags=unpack_etags(row.etags),
        proved_body=row.proved_body,
    )


_FOUND = text(f"""
    INSERT INTO store_verdicts
        (recording_pk, dataset_pk, digest, body_digest, source, status, why, checked, mismatches, examples, seed, revision)
    SELECT s.recording_pk, s.dataset_pk, s.digest, :body, s.source, :status, left(:why, 4000), :checked, :mismatches,
           CAST(:examples AS jsonb), :seed, :revision
    FROM stores s JOIN recordings r ON r.pk = s.recording_pk
    WHERE s.recording_pk = :recording AND s.digest = :digest AND s.source = :source AND {SERVED}
      AND NOT EXISTS (SELECT FROM intents i WHERE i.dataset_pk = s.dataset_pk AND i.zarr = s.zarr)
      AND (:status <> 'failed' OR NOT EXISTS (
          SELECT FROM dataset_leases l WHERE l.dataset_pk = s.dataset_pk AND l.expires_at > zarrmill_now()))
    ON CONFLICT (recording_pk) DO UPDATE
    SET digest = excluded.digest, body_digest = excluded.body_digest, source = excluded.source, status = excluded.status,
        why = excluded.why, checked = excluded.checked, mismatches = excluded.mismatches, examples = excluded.examples,
        seed = excluded.seed, revision = excluded.revision, verified_at = zarrmill_now()
""")


def found(
    c: Connection,
    *,
    store: ServedStoreRow,
    body_digest: str,
    status: str,
    why: str | None,
    checked: int,
    mismatches: int,
    examples: Sequence[Any],
    seed: int,
) -> bool:
    """Keep the verdict on a store; whether it was kept.

    It is not when the store was replaced since ``store`` was read, or is being replaced; and no ``failed`` is kept while a run
    holds the dataset, because a run may rewrite objects before it notes them.
    """
    done = c.execute(
        _FOUND,
        {
            "recording": store.recording_id,
            "digest": store.digest,
            "source": store.source,
            "body": body_digest,
            "status": status,
            "why": why,
            "checked": checked,
            "mismatches": mismatches,
            "examples": json.dumps(kept(examples)),
            "seed": seed,
            "revision": VERIFY_REVISION,
        },
    )
    return done.rowcount == 1


def verdict_of(c: Connection, *, recording_id: int) -> FidelityOfStore | None:
    """The newest verdict on a recording's store, or None before the first."""
    row = c.execute(
        text(f"""
            SELECT o.*, COALESCE({STANDS}, false) AS stands
            FROM store_verdicts o LEFT JOIN stores s ON s.recording_pk = o.recording_pk WHERE o.recording_pk = :recording
        """),
        {"recording": recording_id},
    ).one_or_none()
    if row is None:
        return None
    return FidelityOfStore(
        status=row.status,
        why=row.why,
        digest=row.digest,
        checked=row.checked,
        mismatches=row.mismatches,
        examples=tuple(row.examples),
        seed=row.seed,
        verified_at=row.verified_at,
        stands=row.stands,
    )
