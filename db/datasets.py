"""Datasets at a target: registration, facts, and what was last published of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from contract.errors import Refused
from db.counts import Coverage
from db.dataset_values import Dataset, DatasetFacts, PublishedState
from db.runs import lost

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.runs import Run

__all__ = [
    "NOTHING_PUBLISHED",
    "Dataset",
    "DatasetFacts",
    "PublishedState",
    "by_pk",
    "find",
    "from_row",
    "list_datasets",
    "next_free_id",
    "note_converting",
    "note_failed",
    "note_published",
    "register",
    "set_anonymous",
    "set_facts",
    "set_standing",
    "set_upstream",
]


_SELECT = "SELECT * FROM datasets"


def from_row(row: Any) -> Dataset:
    """The dataset of a whole row of ``datasets``."""
    facts = DatasetFacts(
        name=row.name,
        doi=row.doi,
        license=row.license,
        citation=row.citation,
        hed_version=row.hed_version,
        has_hed=row.has_hed,
        modalities=tuple(row.modalities),
        tasks=tuple(row.tasks),
        subject_count=row.subject_count,
    )
    published = row.source_commit and PublishedState(
        source_commit=row.source_commit,
        index_etag=row.index_etag,
        counts=Coverage(
            discovered=row.discovered_count,
            stores=row.store_count,
            failures=row.failure_count,
            pending=row.pending_count,
        ),
        duration_s=row.duration_s,
        converted_at=row.converted_at,
    )
    return Dataset(
        pk=row.pk,
        dataset_id=row.dataset_id,
        target=row.target,
        source=row.source,
        visibility=row.visibility,
        anonymous=row.anonymous,
        active=row.active,
        facts=facts,
        status=row.status,
        converting=row.converting,
        published=published,
        errors=row.errors,
        error=row.error,
        annex=row.annex,
        upstream=row.upstream,
        withdrawn_at=row.withdrawn_at,
    )


def register(c: Connection, *, dataset_id: str, target: str, source: str, annex: str | None = None) -> Dataset:
    """The dataset of this id at this target, made when it is new; ``source`` becomes its source when it was another.

    ``annex`` is where content lies that git-annex does not hold at the source; None keeps what is known, unless the source is another.
    """
    row = c.execute(
        text("""
            WITH registered AS (
                INSERT INTO datasets AS d (dataset_id, target, source, annex) VALUES (:dataset_id, :target, :source, :annex)
                ON CONFLICT (target, dataset_id) DO UPDATE
                SET source = excluded.source,
                    annex = COALESCE(excluded.annex, CASE WHEN d.source = excluded.source THEN d.annex END)
                RETURNING *
            ), policy AS (INSERT INTO policies (dataset_pk) SELECT pk FROM registered ON CONFLICT DO NOTHING)
            SELECT * FROM registered
        """),
        {"dataset_id": dataset_id, "target": target, "source": source, "annex": annex},
    ).one()
    return from_row(row)


def set_anonymous(c: Connection, *, dataset: Dataset, anonymous: bool) -> None:
    """Note whether its objects can be read without credentials; its next index says so."""
    c.execute(
        text("UPDATE datasets SET anonymous = :anonymous WHERE pk = :dataset"),
        {"dataset": dataset.pk, "anonymous": anonymous},
    )


def set_standing(
    c: Connection, *, dataset: Dataset, visibility: str | None = None, active: bool | None = None
) -> Dataset:
    """Set who may see the dataset, and whether it takes part; None leaves a word as it is. Active ends a withdrawal."""
    row = c.execute(
        text("""
            UPDATE datasets
            SET visibility = COALESCE(CAST(:visibility AS text), visibility), active = COALESCE(CAST(:active AS boolean), active),
                withdrawn_at = CASE WHEN CAST(:active AS boolean) THEN NULL ELSE withdrawn_at END
            WHERE pk = :pk RETURNING *
        """),
        {"pk": dataset.pk, "visibility": visibility, "active": active},
    ).one()
    return from_row(row)


def set_upstream(c: Connection, *, dataset: Dataset, upstream: str | None) -> None:
    """Note which catalog API says the dataset's DOI, licence, citation and HED version; None: its own description does."""
    c.execute(
        text("UPDATE datasets SET upstream = :upstream WHERE pk = :dataset"),
        {"dataset": dataset.pk, "upstream": upstream},
    )


def find(
    c: Connection, *, dataset_id: str | None = None, target: str | None = None, source: str | None = None
) -> Dataset | None:
    """The dataset that fits everything given, or None. Of several the one that ran last, then the newest."""
    row = c.execute(
        text(f"""
            {_SELECT} d
            WHERE (CAST(:dataset_id AS text) IS NULL OR dataset_id = :dataset_id)
              AND (CAST(:target AS text) IS NULL OR target = :target)
              AND (CAST(:source AS text) IS NULL OR source = :source)
            ORDER BY (SELECT max(started_at) FROM runs WHERE dataset_pk = d.pk) DESC NULLS LAST, pk DESC
            LIMIT 1
        """),
        {"dataset_id": dataset_id, "target": target, "source": source},
    ).one_or_none()
    return None if row is None else from_row(row)


def by_pk(c: Connection, *, pk: int) -> Dataset | None:
    """The dataset with this key; None for one that is gone."""
    row = c.execute(text(f"{_SELECT} WHERE pk = :pk"), {"pk": pk}).one_or_none()
    return None if row is None else from_row(row)


def list_datasets(c: Connection, *, target: str | None = None) -> list[Dataset]:
    """Every dataset, or every one at a target, by id and target."""
    rows = c.execute(
        text(f"{_SELECT} WHERE CAST(:target AS text) IS NULL OR target = :target ORDER BY dataset_id, target"),
        {"target": target},
    )
    return [from_row(row) for row in rows]


def next_free_id(c: Connection, *, target: str) -> str:
    """The next ``xx`` id at this target, ``xx000001`` first. It is yours if you register it in this transaction.

    Raises
    ------
    Refused
        The highest one is taken.
    """
    # two commands must not be given the same id; the lock goes with the transaction
    c.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('next_free_id' || :target, 0))"), {"target": target})
    highest = c.scalar(
        text(
            "SELECT COALESCE(max(substr(dataset_id, 3)::int), 0) FROM datasets WHERE target = :target AND dataset_id LIKE 'xx%'"
        ),
        {"target": target},
    )
    number = int(highest or 0) + 1
    if number > 999_999:
        raise Refused("every xx dataset id is taken at this target; name one with --dataset-id")
    return f"xx{number:06d}"


def set_facts(c: Connection, *, dataset: Dataset, facts: DatasetFacts) -> bool:
    """Store what the dataset says of itself; whether that changed anything."""
    values = {name: getattr(facts, name) for name in DatasetFacts.__slots__}
    values |= {"modalities": list(facts.modalities), "tasks": list(facts.tasks)}
    columns = ", ".join(values)
    casts = {"has_hed": "boolean", "modalities": "text[]", "tasks": "text[]", "subject_count": "bigint"}
    new = ", ".join(f"CAST(:{name} AS {casts.get(name, 'text')})" for name in values)
    done = c.execute(
        text(f"UPDATE datasets SET ({columns}) = ({new}) WHERE pk = :pk AND ({columns}) IS DISTINCT FROM ({new})"),
        {"pk": dataset.pk, **values},
    )
    return done.rowcount == 1


_HOLDS = "EXISTS (SELECT FROM dataset_leases l WHERE l.dataset_pk = datasets.pk AND l.run_id = :run)"


def _note(c: Connection, run: Run, assignments: str, values: dict[str, Any]) -> None:
    done = c.execute(
        text(f"UPDATE datasets SET {assignments} WHERE pk = :dataset AND {_HOLDS}"),
        {"dataset": run.dataset_pk, "run": run.id, **values},
    )
    if done.rowcount != 1:
        raise lost(run)


def note_converting(c: Connection, *, run: Run) -> None:
    """Note that a run works on the dataset, beside its standing status. It ends with the run's lease."""
    _note(c, run, "converting = true", {})


def note_published(
    c: Connection,
    *,
    run: Run,
    source_commit: str,
    index_etag: str,
    counts: Coverage,
    duration_s: float,
    errors: int,
    deterministic: bool = False,
) -> None:
    """Note that the index now stands as described; the dataset is ready. An equal etag keeps the moment of conversion."""
    _note(
        c,
        run,
        """status = 'ready', failed_at = NULL, error = NULL, errors = :errors, deterministic = :deterministic,
           converted_at = CASE WHEN index_etag = :etag THEN converted_at ELSE zarrmill_now() END,
           source_commit = :commit, index_etag = :etag, duration_s = :duration_s,
           discovered_count = :discovered, store_count = :stores, failure_count = :failures, pending_count = :pending""",
        {
            "errors": errors,
            "deterministic": deterministic,
            "commit": source_commit,
            "etag": index_etag,
            "duration_s": duration_s,
            "discovered": counts.discovered,
            "stores": counts.stores,
            "failures": counts.failures,
            "pending": counts.pending,
        },
    )


_SERVES = "COALESCE(store_count, 0) > 0"
NOTHING_PUBLISHED: Final = f"""
    status = CASE WHEN {_SERVES} THEN 'ready' ELSE 'failed' END,
    failed_at = CASE WHEN {_SERVES} THEN NULL ELSE zarrmill_now() END,
    errors = CASE WHEN {_SERVES} THEN errors ELSE :errors END,
    deterministic = CASE WHEN {_SERVES} THEN deterministic ELSE :deterministic END,
    error = left(:error, 4000)
"""
"""SQL assignments for a run that published nothing. A disk that is not there, or a misspelt commit, must not take stores that stand
out of the catalog: a dataset that serves some stays ready, with its counts, and says the error beside that."""


def note_failed(c: Connection, *, run: Run, errors: int, error: str | None, deterministic: bool = False) -> None:
    """Note that the run published nothing. A dataset that serves a store stays ready; any other has failed."""
    _note(c, run, NOTHING_PUBLISHED, {"errors": errors, "error": error, "deterministic": deterministic})
