CREATE TABLE known_headers (
    key TEXT COLLATE "C" NOT NULL,
    header JSONB DEFAULT '{}' NOT NULL,
    noted_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_known_headers PRIMARY KEY (key),
    CONSTRAINT ck_known_headers_thin CHECK (pg_column_size(header) < 16384)
);
