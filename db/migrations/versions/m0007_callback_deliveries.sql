CREATE TABLE callback_deliveries (
    callback_pk BIGINT NOT NULL,
    endpoint TEXT NOT NULL,
    tries INTEGER DEFAULT 0 NOT NULL,
    next_try_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    taken_until TIMESTAMP WITH TIME ZONE,
    delivered_at TIMESTAMP WITH TIME ZONE,
    last_error TEXT,
    CONSTRAINT pk_callback_deliveries PRIMARY KEY (callback_pk, endpoint),
    CONSTRAINT ck_callback_deliveries_delivered_is_not_taken CHECK (delivered_at IS NULL OR taken_until IS NULL),
    CONSTRAINT ck_callback_deliveries_thin CHECK (endpoint <> '' AND length(endpoint) <= 500 AND length(last_error) <= 4000),
    CONSTRAINT fk_callback_deliveries_callback_pk FOREIGN KEY(callback_pk) REFERENCES callbacks (pk) ON DELETE CASCADE
);

-- how often each callback was tried was kept for one address only; what is not delivered is tried anew
ALTER TABLE callbacks DROP CONSTRAINT ck_callbacks_delivered_is_not_taken, DROP CONSTRAINT ck_callbacks_thin;
ALTER TABLE callbacks DROP COLUMN tries, DROP COLUMN next_try_at, DROP COLUMN taken_until, DROP COLUMN last_error;
ALTER TABLE callbacks ADD CONSTRAINT ck_callbacks_thin CHECK (octet_length(body) <= 16777216);
