CREATE TABLE received (
    target TEXT NOT NULL,
    dataset_id TEXT COLLATE "C" NOT NULL,
    zarr_status TEXT NOT NULL,
    zarr_converted_at TIMESTAMP WITH TIME ZONE,
    zarr_store_count BIGINT,
    zarr_index_etag TEXT,
    zarr_source_commit TEXT,
    zarr_errors BIGINT,
    zarr_failure_count BIGINT,
    zarr_deterministic BOOLEAN,
    zarr_data_failures JSONB,
    zarr_pool_breaks BIGINT,
    zarr_failed_at TIMESTAMP WITH TIME ZONE,
    registered_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_received PRIMARY KEY (target, dataset_id),
    CONSTRAINT ck_received_id_shape CHECK (dataset_id ~ '^[a-z]{2}[0-9]{6}$'),
    CONSTRAINT ck_received_status CHECK (zarr_status IN ('pending', 'ready', 'failed')),
    CONSTRAINT ck_received_ready_has_moment CHECK (zarr_status <> 'ready' OR zarr_converted_at IS NOT NULL),
    CONSTRAINT ck_received_pending_is_cleared CHECK (zarr_status <> 'pending' OR num_nonnulls(zarr_errors, zarr_failure_count, zarr_deterministic, zarr_data_failures, zarr_failed_at) = 0),
    CONSTRAINT ck_received_failed_has_moment CHECK (zarr_status <> 'failed' OR zarr_failed_at IS NOT NULL),
    CONSTRAINT ck_received_counts CHECK (zarr_store_count >= 0 AND zarr_errors >= 0 AND zarr_failure_count >= 0 AND zarr_pool_breaks >= 0),
    CONSTRAINT ck_received_failures_are_errors CHECK (zarr_failure_count <= zarr_errors),
    CONSTRAINT ck_received_thin CHECK (length(zarr_index_etag) <= 1000 AND length(zarr_source_commit) <= 1000 AND pg_column_size(zarr_data_failures) < 4096)
);

CREATE INDEX ix_recordings_failed ON recordings (dataset_pk, code, path) WHERE due = 'failed';
CREATE INDEX ix_recordings_due ON recordings (dataset_pk, path) WHERE due IN ('pending', 'converting');
