"""Datasets, recordings, attempts and reports put straight into a database: any state that its CHECKs allow, or very many."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, text

__all__ = ["Kept", "Reported", "fill", "put"]

TARGET = "/served"


@dataclass(frozen=True)
class Reported:
    """What another converter said of a dataset."""

    status: str
    stores: int | None = None
    errors: int = 0
    pending: int | None = None


@dataclass(frozen=True)
class Kept:
    """One dataset. ``counts`` are stores, failures, pending of its index; ``recordings`` a state or a code each."""

    number: int
    is_ours: bool = True
    name: str | None = None
    modalities: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    visibility: str = "public"
    active: bool = True
    status: str | None = None
    converting: bool = False
    counts: tuple[int, int, int] | None = None
    verdicts: tuple[str, ...] = ()
    reported: Reported | None = None
    recordings: tuple[str, ...] = field(default=())

    @property
    def dataset_id(self) -> str:
        return f"xx{self.number:06d}"


_DATASET = text("""
    INSERT INTO datasets (dataset_id, target, source, name, modalities, tasks, visibility, active, status, converting, source_commit,
                          index_etag, store_count, failure_count, pending_count, discovered_count, duration_s, converted_at, failed_at,
                          errors)
    VALUES (:id, :target, '/source', :name, :modalities, :tasks, :visibility, :active, :status, :converting,
            CASE WHEN :published THEN repeat('a', 40) END, CASE WHEN :published THEN 'etag' END, :stores, :failures, :pending,
            :discovered, CASE WHEN :published THEN 60.0 END,
            CASE WHEN :published THEN timestamptz '2026-01-01Z' + make_interval(hours => :number) END,
            CASE WHEN :status = 'failed' THEN zarrmill_now() END, :failures)
    RETURNING pk
""")
_REPORTED = text("""
    INSERT INTO received (target, dataset_id, zarr_status, zarr_converted_at, zarr_store_count, zarr_errors, zarr_failed_at,
                          zarr_data_failures)
    VALUES (:target, :id, :status, CASE WHEN :status = 'ready' THEN zarrmill_now() END, CAST(:stores AS bigint),
            CASE WHEN :status <> 'pending' THEN CAST(:errors AS bigint) END,
            CASE WHEN :status = 'failed' THEN zarrmill_now() END,
            CASE WHEN :status <> 'pending' AND CAST(:pending AS bigint) IS NOT NULL
                 THEN jsonb_build_object('count', 0, 'pending', CAST(:pending AS bigint)) END)
""")
_VERDICT = text("""
    INSERT INTO verdicts (dataset_pk, source_commit, status, checked, mismatches, verified_at, index_etag, stores_verified)
    VALUES (:pk, repeat('a', 40), :status, 1, CASE WHEN :status = 'failed' THEN 1 ELSE 0 END,
            timestamptz '2026-01-01Z' + make_interval(hours => :nth), :etag, :judged)
""")
_RECORDING = text("""
    WITH one AS (
        INSERT INTO recordings (dataset_pk, path, zarr, format, modality, size_bytes, discovered, source, inputs, served_source, due,
                                why, reason, code, verdict_options, verdict_engine, verdict_biosigio)
        VALUES (:pk, :path || '.edf', :path || '.zarr', 'edf', 'eeg', 1000, true, 's', decode('789c8b8e0500011500b9', 'hex'), CASE WHEN :served THEN 's' END, :due,
                CASE WHEN :due = 'pending' THEN 'new' END, CASE WHEN :due = 'pending' THEN 'not_attempted' END, :code,
                CASE WHEN :due = 'failed' THEN 'o' END, CASE WHEN :due = 'failed' THEN 'e' END,
                CASE WHEN :due = 'failed' THEN 'b' END)
        RETURNING pk, dataset_pk, zarr
    )
    INSERT INTO stores (recording_pk, dataset_pk, zarr, entry, source, options, engine, biosigio, digests, events_row_count, size_bytes,
                        duration_s, attempt_id, updated_utc)
    SELECT pk, dataset_pk, zarr, convert_to('{"zarr": "x"}', 'UTF8'), 's', 'o', 'e', 'b', 'd', 0, 1, 1.0, gen_random_uuid(), zarrmill_now() FROM one WHERE :served
""")


def put(c: Connection, kept: Kept, *, target: str = TARGET) -> int | None:
    """Store one dataset with everything of it; its key, or None when only others reported of it.

    A verdict may be ``stale`` (of another index) or ``partial`` (not of every store): ``verified stale``. A recording is ``served``, ``pending``, a failure code, or ``served+CODE``: served, and failed since.
    """
    if kept.reported is not None:
        values = {"target": target, "id": kept.dataset_id, **vars(kept.reported)}
        c.execute(_REPORTED, values)
    if not kept.is_ours:
        return None
    stores, failures, pending = kept.counts or (None, None, None)
    pk: int = c.execute(
        _DATASET,
        {
            "id": kept.dataset_id,
            "target": target,
            "number": kept.number,
            "name": kept.name,
            "modalities": list(kept.modalities),
            "tasks": list(kept.tasks),
            "visibility": kept.visibility,
            "active": kept.active,
            "status": kept.status,
            "converting": kept.converting,
            "published": kept.counts is not None,
            "stores": stores,
            "failures": failures,
            "pending": pending,
            "discovered": sum(kept.counts) if kept.counts else None,
        },
    ).scalar_one()
    for nth, status in enumerate(kept.verdicts):
        word, _, flaw = status.partition(" ")
        judged = (stores or 0) - (flaw == "partial")
        etag = "old" if flaw == "stale" else "etag" if kept.counts else None
        c.execute(_VERDICT, {"pk": pk, "status": word, "nth": nth, "etag": etag, "judged": judged})
    for nth, what in enumerate(kept.recordings):
        is_served, code = what.startswith("served"), what.removeprefix("served").removeprefix("+") or None
        due = "pending" if what == "pending" else "failed" if code else "none"
        values = {
            "pk": pk,
            "path": f"sub-{nth:02d}/eeg/sub-{nth:02d}_eeg",
            "served": is_served,
            "due": due,
            "code": None if what == "pending" else code,
        }
        c.execute(_RECORDING, values)
    return pk


_FILL = (
    """
    INSERT INTO datasets (dataset_id, target, source, name, modalities, tasks, status, source_commit, index_etag, store_count,
                          failure_count, pending_count, discovered_count, duration_s, converted_at, errors)
    SELECT :prefix || lpad(n::text, 6, '0'), :target, '/source/' || n, 'Dataset ' || n, '{eeg}', '{rest}', 'ready', repeat('a', 40), 'e',
           :each - :each / 10 * 2, :each / 10, :each / 10, :each, 60, zarrmill_now(), :each / 10
    FROM generate_series(1, :datasets) n
    """,
    """
    INSERT INTO runs (id, dataset_pk, number, mode, state, ended_at, zarrmill, options, engine, biosigio, owner_host, owner_pid)
    SELECT gen_random_uuid(), pk, 1, 'auto', 'completed', zarrmill_now(), 'z', 'o', 'e', 'b', 'here', 1 FROM datasets WHERE target = :target
    """,
    """
    INSERT INTO recordings (dataset_pk, path, zarr, format, modality, size_bytes, discovered, source, inputs, served_source, due, why,
                            reason, code, verdict_options, verdict_engine, verdict_biosigio)
    SELECT pk, 'sub-' || lpad(n::text, 5, '0') || '_eeg.edf', 'sub-' || lpad(n::text, 5, '0') || '_eeg.zarr', 'edf', 'eeg', 1000, true,
           's', '', CASE WHEN n % 10 > 1 THEN 's' END, (ARRAY['failed', 'pending'])[n % 10 + 1],
           CASE n % 10 WHEN 1 THEN 'new' END, CASE n % 10 WHEN 1 THEN 'not_attempted' END,
           CASE n % 10 WHEN 0 THEN 'not_continuous' END, CASE n % 10 WHEN 0 THEN 'o' END, CASE n % 10 WHEN 0 THEN 'e' END,
           CASE n % 10 WHEN 0 THEN 'b' END
    FROM datasets, generate_series(1, :each) n WHERE target = :target
    """.replace(
        "(ARRAY['failed', 'pending'])[n % 10 + 1]", "COALESCE((ARRAY['failed', 'pending'])[n % 10 + 1], 'none')"
    ),
    """
    INSERT INTO stores (recording_pk, dataset_pk, zarr, entry, source, options, engine, biosigio, digests, events_row_count, size_bytes,
                        duration_s, attempt_id, updated_utc)
    SELECT r.pk, r.dataset_pk, r.zarr, 'entry', 's', 'o', 'e', 'b', 'd', 0, 1, 1, gen_random_uuid(), zarrmill_now()
    FROM recordings r JOIN datasets d ON d.pk = r.dataset_pk AND d.target = :target WHERE r.served_source IS NOT NULL
    """,
    """
    INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, floor_bytes, projected_bytes, permitted_bytes, scratch_bytes,
                          outcome, code, ended_at)
    SELECT gen_random_uuid(), r.pk, u.id, 'w/1', 'edf', 'memory', 1, 1, 1, 1, CASE WHEN r.code IS NULL THEN 'done' ELSE 'failed' END,
           r.code, zarrmill_now()
    FROM recordings r JOIN runs u ON u.dataset_pk = r.dataset_pk JOIN datasets d ON d.pk = r.dataset_pk AND d.target = :target
    WHERE r.due <> 'pending'
    """,
)


def fill(
    c: Connection, *, datasets: int, each: int, target: str = TARGET, prefix: str = "xx", attempted: bool = True
) -> None:
    """Many ready datasets of ``each`` recordings: of ten, eight are served, one failed, one waits; and, if ``attempted``, their attempts."""
    values = {"target": target, "datasets": datasets, "each": each, "prefix": prefix}
    for statement in _FILL if attempted else _FILL[:-1]:
        c.execute(text(statement), {name: value for name, value in values.items() if f":{name}" in statement})
    c.execute(text("ANALYZE"))
