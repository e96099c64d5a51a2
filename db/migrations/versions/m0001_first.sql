-- The one clock of leases and policy. Tests set zarrmill.clock to stop it.
-- clock_timestamp() and not now(): now() is when the transaction began, and an edge that waited for a row lock would
-- otherwise find a lease alive that ran out while it waited.
CREATE FUNCTION zarrmill_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT COALESCE(NULLIF(current_setting('zarrmill.clock', true), '')::timestamptz, clock_timestamp())
$$;

CREATE TABLE datasets (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_id TEXT COLLATE "C" NOT NULL,
    target TEXT NOT NULL,
    source TEXT NOT NULL,
    visibility TEXT DEFAULT 'public' NOT NULL,
    anonymous BOOLEAN DEFAULT false NOT NULL,
    active BOOLEAN DEFAULT true NOT NULL,
    registered_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    last_run_number BIGINT DEFAULT 0 NOT NULL,
    name TEXT,
    doi TEXT,
    license TEXT,
    citation TEXT,
    hed_version TEXT,
    has_hed BOOLEAN,
    modalities TEXT[] DEFAULT '{}' NOT NULL,
    tasks TEXT[] DEFAULT '{}' NOT NULL,
    subject_count BIGINT,
    status TEXT,
    converting BOOLEAN DEFAULT false NOT NULL,
    source_commit TEXT,
    index_etag TEXT,
    discovered_count BIGINT,
    store_count BIGINT,
    failure_count BIGINT,
    pending_count BIGINT,
    duration_s DOUBLE PRECISION,
    converted_at TIMESTAMP WITH TIME ZONE,
    errors BIGINT,
    deterministic BOOLEAN,
    failed_at TIMESTAMP WITH TIME ZONE,
    error TEXT,
    CONSTRAINT pk_datasets PRIMARY KEY (pk),
    CONSTRAINT uq_datasets_target_dataset_id UNIQUE (target, dataset_id),
    CONSTRAINT ck_datasets_id_shape CHECK (dataset_id ~ '^[a-z]{2}[0-9]{6}$'),
    CONSTRAINT ck_datasets_visibility CHECK (visibility IN ('public', 'private')),
    CONSTRAINT ck_datasets_status CHECK (status IN ('ready', 'failed')),
    CONSTRAINT ck_datasets_commit_shape CHECK (source_commit ~ '^[0-9a-f]{40}$'),
    CONSTRAINT ck_datasets_published_whole CHECK (num_nulls(source_commit, index_etag, discovered_count, store_count, failure_count, pending_count, duration_s, converted_at) IN (0, 8)),
    CONSTRAINT ck_datasets_coverage CHECK (discovered_count = store_count + failure_count + pending_count),
    CONSTRAINT ck_datasets_ready_is_published CHECK (status IS DISTINCT FROM 'ready' OR source_commit IS NOT NULL),
    CONSTRAINT ck_datasets_failed_has_moment CHECK ((status IS NOT DISTINCT FROM 'failed') = (failed_at IS NOT NULL))
);

CREATE INDEX ix_datasets_target_source ON datasets (target, source);

CREATE TABLE drains (
    worker TEXT NOT NULL,
    grace_s DOUBLE PRECISION NOT NULL,
    why TEXT,
    asked_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_drains PRIMARY KEY (worker),
    CONSTRAINT ck_drains_worker CHECK (worker <> ''),
    CONSTRAINT ck_drains_grace CHECK (grace_s >= 0)
);

CREATE TABLE hosts (
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    scratch_bytes BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    free_memory_bytes BIGINT NOT NULL,
    free_scratch_bytes BIGINT NOT NULL,
    free_slots BIGINT NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_hosts PRIMARY KEY (key),
    CONSTRAINT ck_hosts_memory CHECK (free_memory_bytes BETWEEN 0 AND memory_bytes),
    CONSTRAINT ck_hosts_scratch CHECK (free_scratch_bytes BETWEEN 0 AND scratch_bytes),
    CONSTRAINT ck_hosts_slots CHECK (free_slots BETWEEN 0 AND slots)
);

CREATE TABLE recordings (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    zarr TEXT COLLATE "C" NOT NULL,
    format TEXT NOT NULL,
    modality TEXT,
    size_bytes BIGINT NOT NULL,
    discovered BOOLEAN NOT NULL,
    source TEXT NOT NULL,
    inputs BYTEA NOT NULL,
    served_source TEXT,
    due TEXT NOT NULL,
    why TEXT,
    reason TEXT,
    code TEXT,
    detail TEXT,
    needed_bytes BIGINT,
    verdict_options TEXT,
    verdict_engine TEXT,
    verdict_biosigio TEXT,
    attempts INTEGER DEFAULT 0 NOT NULL,
    counted_run BIGINT,
    deaths INTEGER DEFAULT 0 NOT NULL,
    last_error TEXT,
    last_attempt_at TIMESTAMP WITH TIME ZONE,
    next_attempt_at TIMESTAMP WITH TIME ZONE,
    attempt_id UUID,
    run_number BIGINT,
    worker TEXT,
    claimed_at TIMESTAMP WITH TIME ZONE,
    lease_expires_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_recordings PRIMARY KEY (pk),
    CONSTRAINT uq_recordings_dataset_pk_path UNIQUE (dataset_pk, path),
    CONSTRAINT uq_recordings_pk_served_source UNIQUE (pk, served_source),
    CONSTRAINT ck_recordings_due CHECK (due IN ('none', 'pending', 'converting', 'failed')),
    CONSTRAINT ck_recordings_absent_has_nothing_due CHECK (discovered OR due = 'none'),
    CONSTRAINT ck_recordings_nothing_due_is_served CHECK (NOT discovered OR due <> 'none' OR (served_source IS NOT NULL AND served_source = source)),
    CONSTRAINT ck_recordings_pending_has_reason CHECK ((due IN ('pending', 'converting')) = (reason IS NOT NULL)),
    CONSTRAINT ck_recordings_pending_has_why CHECK ((due IN ('pending', 'converting')) = (why IS NOT NULL)),
    CONSTRAINT ck_recordings_converting_has_lease CHECK (num_nonnulls(attempt_id, run_number, worker, claimed_at, lease_expires_at) = CASE due WHEN 'converting' THEN 5 ELSE 0 END),
    CONSTRAINT ck_recordings_failed_has_code CHECK (num_nonnulls(code, verdict_options, verdict_engine, verdict_biosigio) = CASE due WHEN 'failed' THEN 4 ELSE 0 END),
    CONSTRAINT ck_recordings_only_verdicts_have_detail CHECK (due = 'failed' OR (detail IS NULL AND needed_bytes IS NULL)),
    CONSTRAINT ck_recordings_reason CHECK (reason IN ('infra_failure', 'memory_budget', 'not_attempted')),
    CONSTRAINT ck_recordings_why CHECK (why IN ('new', 'source', 'options', 'engine', 'biosigio', 'lost', 'requested', 'retry')),
    CONSTRAINT ck_recordings_attempts CHECK (attempts BETWEEN 0 AND 5 AND deaths >= 0),
    CONSTRAINT ck_recordings_counted_in_a_run CHECK (attempts = 0 OR counted_run IS NOT NULL),
    CONSTRAINT ck_recordings_five_attempts_are_a_verdict CHECK (attempts < 5 OR due = 'failed'),
    CONSTRAINT ck_recordings_not_attempted_has_no_attempts CHECK (attempts = 0 OR reason <> 'not_attempted'),
    CONSTRAINT ck_recordings_exhausted_after_five CHECK (code <> 'retry_exhausted' OR attempts = 5),
    CONSTRAINT ck_recordings_nothing_due_is_clean CHECK (due <> 'none' OR (attempts = 0 AND last_error IS NULL AND next_attempt_at IS NULL)),
    CONSTRAINT ck_recordings_thin CHECK (length(detail) <= 4000 AND length(last_error) <= 4000 AND octet_length(inputs) <= 4194304),
    CONSTRAINT fk_recordings_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE UNIQUE INDEX ix_recordings_claimed ON recordings (attempt_id) WHERE attempt_id IS NOT NULL;

CREATE INDEX ix_recordings_dataset_pk_zarr ON recordings (dataset_pk, zarr);

CREATE TABLE reservations (
    id UUID NOT NULL,
    host_key TEXT NOT NULL,
    memory_bytes BIGINT NOT NULL,
    scratch_bytes BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    owner_host TEXT NOT NULL,
    owner_pid BIGINT NOT NULL,
    lock_path TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    run_id UUID,
    worker TEXT,
    CONSTRAINT pk_reservations PRIMARY KEY (id),
    CONSTRAINT ck_reservations_sizes CHECK (memory_bytes >= 0 AND scratch_bytes >= 0 AND slots >= 0),
    CONSTRAINT fk_reservations_host_key FOREIGN KEY(host_key) REFERENCES hosts (key) ON DELETE CASCADE
);

CREATE INDEX ix_reservations_host_key ON reservations (host_key);

CREATE TABLE runs (
    id UUID NOT NULL,
    dataset_pk BIGINT NOT NULL,
    number BIGINT NOT NULL,
    mode TEXT NOT NULL,
    state TEXT DEFAULT 'running' NOT NULL,
    stage TEXT,
    zarrmill TEXT NOT NULL,
    options TEXT NOT NULL,
    engine TEXT NOT NULL,
    biosigio TEXT NOT NULL,
    owner_host TEXT NOT NULL,
    owner_pid BIGINT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    counts JSONB DEFAULT '{}' NOT NULL,
    error TEXT,
    CONSTRAINT pk_runs PRIMARY KEY (id),
    CONSTRAINT uq_runs_dataset_pk_number UNIQUE (dataset_pk, number),
    CONSTRAINT ck_runs_state CHECK (state IN ('running', 'completed', 'failed', 'cancelled', 'lost')),
    CONSTRAINT ck_runs_running_has_no_end CHECK ((state = 'running') = (ended_at IS NULL)),
    CONSTRAINT ck_runs_mode CHECK (mode IN ('auto', 'full', 'retry-pending', 'adopt', 'republish', 'reconcile')),
    CONSTRAINT ck_runs_number CHECK (number > 0),
    CONSTRAINT ck_runs_thin CHECK (pg_column_size(counts) < 65536 AND length(error) <= 4000),
    CONSTRAINT fk_runs_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE UNIQUE INDEX uq_runs_one_running ON runs (dataset_pk) WHERE state = 'running';

CREATE TABLE verdicts (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT NOT NULL,
    source_commit TEXT NOT NULL,
    status TEXT NOT NULL,
    verified_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    checked BIGINT NOT NULL,
    mismatches BIGINT NOT NULL,
    examples JSONB DEFAULT '[]' NOT NULL,
    CONSTRAINT pk_verdicts PRIMARY KEY (pk),
    CONSTRAINT ck_verdicts_status CHECK (status IN ('verified', 'failed', 'unverifiable')),
    CONSTRAINT ck_verdicts_failed_has_mismatch CHECK (checked >= 0 AND mismatches >= 0 AND (status = 'failed') = (mismatches > 0)),
    CONSTRAINT ck_verdicts_verified_means_checked CHECK (status <> 'verified' OR checked > 0),
    CONSTRAINT ck_verdicts_thin CHECK (pg_column_size(examples) < 16384),
    CONSTRAINT fk_verdicts_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE INDEX ix_verdicts_dataset_pk_verified_at ON verdicts (dataset_pk, verified_at);

CREATE TABLE attempts (
    id UUID NOT NULL,
    ordinal BIGINT GENERATED ALWAYS AS IDENTITY,
    recording_pk BIGINT NOT NULL,
    run_id UUID NOT NULL,
    worker TEXT NOT NULL,
    format TEXT NOT NULL,
    route TEXT NOT NULL,
    floor_bytes BIGINT,
    projected_bytes BIGINT NOT NULL,
    permitted_bytes BIGINT NOT NULL,
    scratch_bytes BIGINT NOT NULL,
    measured_bytes BIGINT,
    outcome TEXT DEFAULT 'converting' NOT NULL,
    counted BOOLEAN DEFAULT false NOT NULL,
    code TEXT,
    reason TEXT,
    error TEXT,
    traceback TEXT,
    started_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    stage_seconds JSONB DEFAULT '{}' NOT NULL,
    stage_bytes JSONB DEFAULT '{}' NOT NULL,
    notes TEXT[] DEFAULT '{}' NOT NULL,
    quantisation BYTEA,
    CONSTRAINT pk_attempts PRIMARY KEY (id),
    CONSTRAINT ck_attempts_outcome CHECK (outcome IN ('converting', 'done', 'failed', 'pending', 'released', 'expired', 'adopted')),
    CONSTRAINT ck_attempts_converting_has_no_end CHECK ((outcome = 'converting') = (ended_at IS NULL)),
    CONSTRAINT ck_attempts_failed_has_code CHECK ((outcome = 'failed') = (code IS NOT NULL)),
    CONSTRAINT ck_attempts_pending_has_reason CHECK ((outcome = 'pending') = (reason IS NOT NULL)),
    CONSTRAINT ck_attempts_counted CHECK (NOT counted OR outcome IN ('pending', 'expired')),
    CONSTRAINT ck_attempts_memory_is_promised CHECK (outcome = 'adopted' OR (projected_bytes > 0 AND permitted_bytes > 0 AND scratch_bytes >= 0 AND floor_bytes > 0)),
    CONSTRAINT ck_attempts_thin CHECK (length(error) <= 4000 AND length(traceback) <= 16000 AND cardinality(notes) <= 20 AND octet_length(quantisation) <= 524288),
    CONSTRAINT fk_attempts_recording_pk FOREIGN KEY(recording_pk) REFERENCES recordings (pk) ON DELETE CASCADE,
    CONSTRAINT fk_attempts_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_attempts_measured ON attempts (format, route, ended_at) WHERE measured_bytes IS NOT NULL AND floor_bytes IS NOT NULL;

CREATE INDEX ix_attempts_recording_pk_ordinal ON attempts (recording_pk, ordinal);

CREATE INDEX ix_attempts_run_id ON attempts (run_id);

CREATE INDEX ix_attempts_worker ON attempts (worker) WHERE outcome IN ('converting', 'released', 'expired');

CREATE UNIQUE INDEX uq_attempts_one_counted ON attempts (recording_pk, run_id) WHERE counted;

CREATE TABLE callbacks (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT NOT NULL,
    run_id UUID NOT NULL,
    status TEXT NOT NULL,
    body BYTEA,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    delivered_at TIMESTAMP WITH TIME ZONE,
    tries INTEGER DEFAULT 0 NOT NULL,
    next_try_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    taken_until TIMESTAMP WITH TIME ZONE,
    last_error TEXT,
    CONSTRAINT pk_callbacks PRIMARY KEY (pk),
    CONSTRAINT ck_callbacks_status CHECK (status IN ('converting', 'ready', 'failed')),
    CONSTRAINT ck_callbacks_body_until_delivered CHECK ((delivered_at IS NULL) = (body IS NOT NULL)),
    CONSTRAINT ck_callbacks_delivered_is_not_taken CHECK (delivered_at IS NULL OR taken_until IS NULL),
    CONSTRAINT ck_callbacks_thin CHECK (octet_length(body) <= 16777216 AND length(last_error) <= 4000),
    CONSTRAINT fk_callbacks_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE,
    CONSTRAINT fk_callbacks_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_callbacks_waiting ON callbacks (dataset_pk, pk) WHERE delivered_at IS NULL;

CREATE UNIQUE INDEX uq_callbacks_one_converting ON callbacks (run_id) WHERE status = 'converting';

CREATE UNIQUE INDEX uq_callbacks_one_terminal ON callbacks (run_id) WHERE status <> 'converting';

CREATE TABLE contenders (
    run_id UUID NOT NULL,
    worker TEXT NOT NULL,
    host_key TEXT NOT NULL,
    priority BIGINT NOT NULL,
    waiting_count BIGINT NOT NULL,
    waiting_bytes BIGINT NOT NULL,
    drained_bytes BIGINT NOT NULL,
    since TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_contenders PRIMARY KEY (run_id, worker),
    CONSTRAINT ck_contenders_priority CHECK (priority BETWEEN 1 AND 100),
    CONSTRAINT ck_contenders_sizes CHECK (waiting_count >= 0 AND waiting_bytes >= 0 AND drained_bytes >= 0),
    CONSTRAINT fk_contenders_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE,
    CONSTRAINT fk_contenders_host_key FOREIGN KEY(host_key) REFERENCES hosts (key) ON DELETE CASCADE
);

CREATE INDEX ix_contenders_host_key ON contenders (host_key);

CREATE TABLE dataset_leases (
    dataset_pk BIGINT NOT NULL,
    run_id UUID NOT NULL,
    run_number BIGINT NOT NULL,
    owner_host TEXT NOT NULL,
    owner_pid BIGINT NOT NULL,
    lock_path TEXT NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_dataset_leases PRIMARY KEY (dataset_pk),
    CONSTRAINT fk_dataset_leases_dataset_pk_run_number FOREIGN KEY(dataset_pk, run_number) REFERENCES runs (dataset_pk, number) ON DELETE CASCADE,
    CONSTRAINT fk_dataset_leases_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE,
    CONSTRAINT uq_dataset_leases_run_id UNIQUE (run_id),
    CONSTRAINT fk_dataset_leases_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE TABLE documents (
    target TEXT NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    etag TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    comparable_sha256 TEXT NOT NULL,
    made_from TEXT,
    row_count BIGINT,
    adopted BYTEA,
    run_id UUID,
    written_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_documents PRIMARY KEY (target, key),
    CONSTRAINT fk_documents_run_id FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE SET NULL
);

CREATE TABLE intents (
    attempt_id UUID NOT NULL,
    dataset_pk BIGINT NOT NULL,
    recording_pk BIGINT NOT NULL,
    zarr TEXT COLLATE "C" NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_intents PRIMARY KEY (attempt_id),
    CONSTRAINT fk_intents_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE,
    CONSTRAINT fk_intents_recording_pk FOREIGN KEY(recording_pk) REFERENCES recordings (pk) ON DELETE CASCADE
);

CREATE INDEX ix_intents_dataset_pk_zarr ON intents (dataset_pk, zarr);

CREATE TABLE stores (
    recording_pk BIGINT NOT NULL,
    dataset_pk BIGINT NOT NULL,
    zarr TEXT COLLATE "C" NOT NULL,
    entry BYTEA NOT NULL,
    source TEXT NOT NULL,
    options TEXT NOT NULL,
    engine TEXT NOT NULL,
    biosigio TEXT NOT NULL,
    digests BYTEA NOT NULL,
    etags BYTEA,
    events BYTEA,
    events_row_count BIGINT NOT NULL,
    source_key TEXT,
    size_bytes BIGINT NOT NULL,
    duration_s DOUBLE PRECISION NOT NULL,
    attempt_id UUID NOT NULL,
    updated_utc TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_stores PRIMARY KEY (recording_pk),
    CONSTRAINT uq_stores_dataset_pk_zarr UNIQUE (dataset_pk, zarr),
    CONSTRAINT uq_stores_recording_pk_source UNIQUE (recording_pk, source),
    CONSTRAINT fk_stores_served FOREIGN KEY(recording_pk, source) REFERENCES recordings (pk, served_source) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT ck_stores_no_events_no_rows CHECK (events IS NOT NULL OR events_row_count = 0),
    CONSTRAINT ck_stores_sizes CHECK (events_row_count >= 0 AND size_bytes >= 0 AND duration_s >= 0),
    CONSTRAINT ck_stores_not_empty CHECK (octet_length(entry) > 2 AND octet_length(digests) > 0),
    CONSTRAINT fk_stores_recording_pk FOREIGN KEY(recording_pk) REFERENCES recordings (pk) ON DELETE CASCADE,
    CONSTRAINT fk_stores_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

ALTER TABLE recordings ADD CONSTRAINT fk_recordings_served FOREIGN KEY(pk, served_source) REFERENCES stores (recording_pk, source) DEFERRABLE INITIALLY DEFERRED;
