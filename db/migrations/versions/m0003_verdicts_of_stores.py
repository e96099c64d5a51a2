"""Verdicts of the verify sweep by store, and what a dataset's verdict was about."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE stores ADD COLUMN digest TEXT NOT NULL GENERATED ALWAYS AS (encode(sha256(digests), 'hex')) STORED",
    "ALTER TABLE verdicts ADD COLUMN index_etag TEXT",
    "ALTER TABLE verdicts ADD COLUMN stores_verified BIGINT DEFAULT 0 NOT NULL",
    "ALTER TABLE verdicts ADD COLUMN stores_failed BIGINT DEFAULT 0 NOT NULL",
    "ALTER TABLE verdicts ADD COLUMN stores_unverifiable BIGINT DEFAULT 0 NOT NULL",
    """
    CREATE TABLE store_verdicts (
        recording_pk BIGINT NOT NULL,
        dataset_pk BIGINT NOT NULL,
        digest TEXT NOT NULL,
        body_digest TEXT NOT NULL,
        source TEXT NOT NULL,
        status TEXT NOT NULL,
        why TEXT,
        checked BIGINT NOT NULL,
        mismatches BIGINT NOT NULL,
        examples JSONB DEFAULT '[]' NOT NULL,
        seed BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        verified_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
        CONSTRAINT pk_store_verdicts PRIMARY KEY (recording_pk),
        CONSTRAINT ck_store_verdicts_status CHECK (status IN ('verified', 'failed', 'unverifiable')),
        CONSTRAINT ck_store_verdicts_failed_has_mismatch CHECK (checked >= 0 AND mismatches >= 0 AND (status = 'failed') = (mismatches > 0)),
        CONSTRAINT ck_store_verdicts_verified_means_checked CHECK (status <> 'verified' OR checked > 0),
        CONSTRAINT ck_store_verdicts_unverifiable_has_why CHECK ((status = 'unverifiable') = (why IS NOT NULL)),
        CONSTRAINT ck_store_verdicts_thin CHECK (pg_column_size(examples) < 16384 AND length(why) <= 4000),
        CONSTRAINT fk_store_verdicts_recording_pk FOREIGN KEY(recording_pk) REFERENCES recordings (pk) ON DELETE CASCADE,
        CONSTRAINT fk_store_verdicts_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_store_verdicts_dataset_pk ON store_verdicts (dataset_pk)",
    """
    CREATE TABLE sweeps (
        dataset_pk BIGINT NOT NULL,
        attempted_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
        unjudged BIGINT NOT NULL,
        trouble TEXT,
        CONSTRAINT pk_sweeps PRIMARY KEY (dataset_pk),
        CONSTRAINT ck_sweeps_unjudged CHECK (unjudged >= 0 AND length(trouble) <= 4000),
        CONSTRAINT fk_sweeps_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
    )
    """,
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
