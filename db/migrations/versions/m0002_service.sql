ALTER TABLE datasets ADD COLUMN annex TEXT, ADD COLUMN upstream TEXT, ADD COLUMN withdrawn_at TIMESTAMP WITH TIME ZONE;
ALTER TABLE datasets
    ADD CONSTRAINT ck_datasets_private_is_not_anonymous CHECK (visibility = 'public' OR NOT anonymous),
    ADD CONSTRAINT ck_datasets_withdrawn_is_not_served CHECK (withdrawn_at IS NULL OR (NOT active AND status IS NULL));
ALTER TABLE runs DROP CONSTRAINT ck_runs_mode;
ALTER TABLE runs ADD CONSTRAINT ck_runs_mode
    CHECK (mode IN ('auto', 'full', 'retry-pending', 'adopt', 'republish', 'reconcile', 'verify', 'withdraw'));

CREATE TABLE alarms (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    kind TEXT NOT NULL,
    subject TEXT DEFAULT '' NOT NULL,
    detail TEXT,
    began_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    told_began TIMESTAMP WITH TIME ZONE,
    told_ended TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_alarms PRIMARY KEY (pk),
    CONSTRAINT ck_alarms_thin CHECK (kind <> '' AND length(subject) <= 250 AND length(detail) <= 4000),
    CONSTRAINT ck_alarms_ends_after_it_began CHECK (ended_at IS NULL OR ended_at >= began_at),
    CONSTRAINT ck_alarms_told_in_order CHECK (told_ended IS NULL OR (ended_at IS NOT NULL AND told_began IS NOT NULL))
);

CREATE INDEX ix_alarms_untold ON alarms (pk) WHERE told_began IS NULL OR (ended_at IS NOT NULL AND told_ended IS NULL);

CREATE UNIQUE INDEX uq_alarms_one_open ON alarms (kind, subject) WHERE ended_at IS NULL;

CREATE TABLE approvals (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    rebuild_column TEXT NOT NULL,
    value TEXT NOT NULL,
    approved_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    approved_by TEXT NOT NULL,
    why TEXT,
    preview JSONB DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_approvals PRIMARY KEY (pk),
    CONSTRAINT uq_approvals_rebuild_column_value UNIQUE (rebuild_column, value),
    CONSTRAINT ck_approvals_rebuild_column CHECK (rebuild_column IN ('options', 'engine', 'biosigio')),
    CONSTRAINT ck_approvals_named CHECK (value <> '' AND approved_by <> '' AND length(why) <= 1000)
);

CREATE TABLE operator_actions (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    acted_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    acted_by TEXT NOT NULL,
    why TEXT,
    verb TEXT NOT NULL,
    subject TEXT,
    parameters JSONB DEFAULT '{}' NOT NULL,
    executed BOOLEAN DEFAULT false NOT NULL,
    counts JSONB DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_operator_actions PRIMARY KEY (pk),
    CONSTRAINT ck_operator_actions_named CHECK (verb <> '' AND acted_by <> ''),
    CONSTRAINT ck_operator_actions_thin CHECK (length(acted_by) <= 200 AND length(why) <= 1000 AND length(subject) <= 250 AND pg_column_size(parameters) < 16384 AND pg_column_size(counts) < 16384)
);

CREATE INDEX ix_operator_actions_acted_at ON operator_actions (acted_at);

CREATE TABLE pauses (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT,
    paused_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    paused_by TEXT NOT NULL,
    why TEXT,
    CONSTRAINT pk_pauses PRIMARY KEY (pk),
    CONSTRAINT uq_pauses_dataset_pk UNIQUE NULLS NOT DISTINCT (dataset_pk),
    CONSTRAINT ck_pauses_thin CHECK (paused_by <> '' AND length(paused_by) <= 200 AND length(why) <= 1000),
    CONSTRAINT fk_pauses_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE TABLE policies (
    dataset_pk BIGINT NOT NULL,
    state TEXT DEFAULT 'clean' NOT NULL,
    retry_round INTEGER DEFAULT 0 NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE,
    infra_failures INTEGER DEFAULT 0 NOT NULL,
    seen_version TEXT,
    seen_at TIMESTAMP WITH TIME ZONE,
    done_version TEXT,
    options TEXT,
    engine TEXT,
    biosigio TEXT,
    unreadable_since TIMESTAMP WITH TIME ZONE,
    unreadable TEXT,
    reconciled_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_policies PRIMARY KEY (dataset_pk),
    CONSTRAINT ck_policies_state CHECK (state IN ('clean', 'round', 'soon', 'exhausted', 'backoff', 'given_up', 'terminal')),
    CONSTRAINT ck_policies_waiting_has_moment CHECK ((state IN ('round', 'soon', 'backoff')) = (next_at IS NOT NULL)),
    CONSTRAINT ck_policies_counts CHECK (retry_round BETWEEN 0 AND 5 AND infra_failures BETWEEN 0 AND 5),
    CONSTRAINT ck_policies_round_has_number CHECK (state <> 'round' OR retry_round > 0),
    CONSTRAINT ck_policies_exhausted_after_five CHECK (state <> 'exhausted' OR retry_round = 5),
    CONSTRAINT ck_policies_settled_is_reset CHECK (state NOT IN ('clean', 'terminal') OR (retry_round = 0 AND infra_failures = 0)),
    CONSTRAINT ck_policies_ran_is_no_trouble CHECK (state NOT IN ('round', 'soon', 'exhausted') OR infra_failures = 0),
    CONSTRAINT ck_policies_backoff_has_failures CHECK (state <> 'backoff' OR infra_failures BETWEEN 1 AND 4),
    CONSTRAINT ck_policies_given_up_after_five CHECK (state <> 'given_up' OR infra_failures = 5),
    CONSTRAINT ck_policies_stamps_together CHECK (num_nulls(options, engine, biosigio) IN (0, 3)),
    CONSTRAINT ck_policies_unreadable_has_moment CHECK (num_nulls(unreadable_since, unreadable) IN (0, 2)),
    CONSTRAINT ck_policies_thin CHECK (length(unreadable) <= 4000 AND length(seen_version) <= 250 AND length(done_version) <= 250),
    CONSTRAINT fk_policies_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE INDEX ix_policies_next_at ON policies (next_at) WHERE next_at IS NOT NULL;

CREATE TABLE requests (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT NOT NULL,
    work TEXT NOT NULL,
    mode TEXT NOT NULL,
    commit TEXT,
    rebuild_on TEXT[] DEFAULT '{options,engine}' NOT NULL,
    why TEXT NOT NULL,
    detail TEXT,
    asked_by TEXT NOT NULL,
    version TEXT,
    state TEXT DEFAULT 'waiting' NOT NULL,
    asked_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    ended_at TIMESTAMP WITH TIME ZONE,
    run_id UUID,
    coalesced INTEGER DEFAULT 0 NOT NULL,
    lost_runs INTEGER DEFAULT 0 NOT NULL,
    error TEXT,
    CONSTRAINT pk_requests PRIMARY KEY (pk),
    CONSTRAINT ck_requests_work CHECK (work IN ('convert', 'verify')),
    CONSTRAINT ck_requests_mode CHECK (mode IN ('auto', 'retry-pending', 'full', 'verify')),
    CONSTRAINT ck_requests_mode_of_work CHECK ((mode = 'verify') = (work = 'verify')),
    CONSTRAINT ck_requests_why CHECK (why IN ('new', 'version', 'retry_round', 'not_attempted', 'backoff', 'engine', 'requested', 'index')),
    CONSTRAINT ck_requests_state CHECK (state IN ('waiting', 'running', 'done', 'failed', 'refused')),
    CONSTRAINT ck_requests_asked_by CHECK (asked_by <> '' AND length(asked_by) <= 200),
    CONSTRAINT ck_requests_waiting_has_no_run CHECK (state <> 'waiting' OR (run_id IS NULL AND started_at IS NULL)),
    CONSTRAINT ck_requests_running_has_begun CHECK (state <> 'running' OR started_at IS NOT NULL),
    CONSTRAINT ck_requests_ended_has_moment CHECK ((state IN ('waiting', 'running')) = (ended_at IS NULL)),
    CONSTRAINT ck_requests_trouble_has_error CHECK ((state IN ('failed', 'refused')) = (error IS NOT NULL)),
    CONSTRAINT ck_requests_counts CHECK (coalesced >= 0 AND lost_runs BETWEEN 0 AND 5),
    CONSTRAINT ck_requests_rebuild_on CHECK (rebuild_on <@ ARRAY['options', 'engine', 'biosigio']),
    CONSTRAINT ck_requests_thin CHECK (length(detail) <= 1000 AND length(error) <= 4000 AND length(commit) <= 250 AND length(version) <= 250),
    CONSTRAINT fk_requests_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE,
    CONSTRAINT fk_requests_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE SET NULL
);

CREATE INDEX ix_requests_dataset_pk_asked_at ON requests (dataset_pk, asked_at);

CREATE INDEX ix_requests_run ON requests (run_id) WHERE run_id IS NOT NULL;

CREATE UNIQUE INDEX uq_requests_one_running ON requests (dataset_pk, work) WHERE state = 'running';

CREATE UNIQUE INDEX uq_requests_one_waiting ON requests (dataset_pk, work) WHERE state = 'waiting';

-- what ran before is clean as far as anybody knows; the converter it ran with is noted
INSERT INTO policies (dataset_pk, options, engine, biosigio)
SELECT d.pk, u.options, u.engine, u.biosigio
FROM datasets d LEFT JOIN runs u ON u.dataset_pk = d.pk AND u.number = d.last_run_number AND u.state = 'completed';
