CREATE TABLE flow_runs (
    flow_run_id UUID NOT NULL,
    request_pk BIGINT NOT NULL,
    noted_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_flow_runs PRIMARY KEY (flow_run_id),
    CONSTRAINT fk_flow_runs_request_pk FOREIGN KEY(request_pk) REFERENCES requests (pk) ON DELETE CASCADE
);

CREATE INDEX ix_flow_runs_request_pk ON flow_runs (request_pk);

CREATE INDEX ix_flow_runs_unclosed ON flow_runs (noted_at) WHERE closed_at IS NULL;
