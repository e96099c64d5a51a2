ALTER TABLE runs ADD COLUMN source_commit TEXT, ADD COLUMN asked JSONB DEFAULT '{}' NOT NULL, ADD COLUMN flow_run_id UUID;
ALTER TABLE runs DROP CONSTRAINT ck_runs_thin;
ALTER TABLE runs ADD CONSTRAINT ck_runs_thin
    CHECK (pg_column_size(counts) < 65536 AND pg_column_size(asked) < 16384 AND length(source_commit) <= 250 AND length(error) <= 4000);
CREATE INDEX ix_runs_started_at ON runs (started_at);

ALTER TABLE attempts ADD COLUMN why TEXT;

CREATE INDEX ix_operator_actions_subject_pk ON operator_actions (subject, pk);

CREATE TABLE run_reports (
    run_id UUID NOT NULL,
    made_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    tries INTEGER DEFAULT 1 NOT NULL,
    size_bytes BIGINT,
    trouble TEXT,
    CONSTRAINT pk_run_reports PRIMARY KEY (run_id),
    CONSTRAINT ck_run_reports_written_or_trouble CHECK (num_nulls(size_bytes, trouble) = 1),
    CONSTRAINT ck_run_reports_thin CHECK (tries > 0 AND size_bytes >= 0 AND length(trouble) <= 4000),
    CONSTRAINT fk_run_reports_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
