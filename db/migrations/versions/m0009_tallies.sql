-- Counts that pages show at once: kept by the statements that change what they count, so that nobody counts a million rows to look.
-- A statement leaves what it changed as rows of tally_changes, which it locks with nobody: edges of one dataset run side by side.
-- They are folded into tallies and tally_days after each publication and by upkeep; who reads adds what is not folded yet.

CREATE TABLE tallies (
    dataset_pk BIGINT NOT NULL,
    name TEXT NOT NULL,
    amount BIGINT NOT NULL,
    CONSTRAINT pk_tallies PRIMARY KEY (dataset_pk, name),
    CONSTRAINT fk_tallies_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);

CREATE TABLE tally_days (
    dataset_pk BIGINT NOT NULL,
    name TEXT NOT NULL,
    day DATE NOT NULL,
    amount BIGINT NOT NULL,
    CONSTRAINT pk_tally_days PRIMARY KEY (dataset_pk, name, day),
    CONSTRAINT fk_tally_days_dataset_pk FOREIGN KEY(dataset_pk) REFERENCES datasets (pk) ON DELETE CASCADE
);
CREATE INDEX ix_tally_days_name_day ON tally_days (name, day);

-- no key to datasets: a dataset that is removed with its recordings leaves changes behind itself, which are dropped when they are folded
CREATE TABLE tally_changes (
    pk BIGINT GENERATED ALWAYS AS IDENTITY,
    dataset_pk BIGINT NOT NULL,
    name TEXT NOT NULL,
    amount BIGINT NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_tally_changes PRIMARY KEY (pk)
);

CREATE TABLE marks (
    name TEXT NOT NULL,
    marked_at TIMESTAMP WITH TIME ZONE DEFAULT zarrmill_now() NOT NULL,
    CONSTRAINT pk_marks PRIMARY KEY (name)
);

-- what one recording, store or attempt that ended counts for
CREATE FUNCTION zarrmill_recording_counts(r recordings) RETURNS TABLE (name text, amount bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT * FROM (VALUES
        ('discovered', CAST(r.discovered AS int)::bigint),
        ('served', CAST(r.discovered AND r.served_source IS NOT NULL AND r.served_source = r.source AS int)::bigint),
        ('failed', CAST(r.discovered AND NOT (r.served_source IS NOT NULL AND r.served_source = r.source) AND r.due = 'failed' AS int)::bigint),
        ('pending', CAST(r.discovered AND NOT (r.served_source IS NOT NULL AND r.served_source = r.source)
                         AND r.due IN ('pending', 'converting') AS int)::bigint),
        ('converting', CAST(r.due = 'converting' AS int)::bigint),
        ('due', CAST(r.due IN ('pending', 'converting') AS int)::bigint),
        ('due_bytes', CASE WHEN r.due IN ('pending', 'converting') THEN r.size_bytes ELSE 0 END)
    ) counts (name, amount) WHERE amount <> 0
$$;

CREATE FUNCTION zarrmill_store_counts(s stores) RETURNS TABLE (name text, amount bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT * FROM (VALUES ('stores', 1::bigint), ('store_bytes', s.size_bytes), ('store_seconds', round(s.duration_s)::bigint))
        counts (name, amount) WHERE amount <> 0
$$;

CREATE FUNCTION zarrmill_attempt_counts(a attempts) RETURNS TABLE (name text, amount bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'ended:' || a.outcome, 1::bigint WHERE a.outcome <> 'converting'
    UNION ALL SELECT 'code:' || a.code, 1::bigint WHERE a.code IS NOT NULL
    UNION ALL SELECT 'reason:' || a.reason, 1::bigint WHERE a.reason IS NOT NULL
$$;

CREATE FUNCTION zarrmill_tally_recordings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT r.dataset_pk, n.name, sum(n.amount) FROM added r, zarrmill_recording_counts(r) n GROUP BY 1, 2;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT r.dataset_pk, n.name, -sum(n.amount) FROM removed r, zarrmill_recording_counts(r) n GROUP BY 1, 2;
    ELSE
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT dataset_pk, name, sum(amount) FROM (
            SELECT r.dataset_pk, n.name, n.amount FROM added r, zarrmill_recording_counts(r) n
            UNION ALL SELECT r.dataset_pk, n.name, -n.amount FROM removed r, zarrmill_recording_counts(r) n
        ) both_sides GROUP BY 1, 2 HAVING sum(amount) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_inserted AFTER INSERT ON recordings REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_recordings();
CREATE TRIGGER tally_updated AFTER UPDATE ON recordings REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_recordings();
CREATE TRIGGER tally_deleted AFTER DELETE ON recordings REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_recordings();

CREATE FUNCTION zarrmill_tally_stores() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT s.dataset_pk, n.name, sum(n.amount) FROM added s, zarrmill_store_counts(s) n GROUP BY 1, 2;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT s.dataset_pk, n.name, -sum(n.amount) FROM removed s, zarrmill_store_counts(s) n GROUP BY 1, 2;
    ELSE
        INSERT INTO tally_changes (dataset_pk, name, amount)
        SELECT dataset_pk, name, sum(amount) FROM (
            SELECT s.dataset_pk, n.name, n.amount FROM added s, zarrmill_store_counts(s) n
            UNION ALL SELECT s.dataset_pk, n.name, -n.amount FROM removed s, zarrmill_store_counts(s) n
        ) both_sides GROUP BY 1, 2 HAVING sum(amount) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_inserted AFTER INSERT ON stores REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_stores();
CREATE TRIGGER tally_updated AFTER UPDATE ON stores REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_stores();
CREATE TRIGGER tally_deleted AFTER DELETE ON stores REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_stores();

-- an attempt counts once it has ended, and for ever: removing old history takes nothing away from what was
CREATE FUNCTION zarrmill_tally_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tally_changes (dataset_pk, name, amount, changed_at)
        SELECT r.dataset_pk, n.name, sum(n.amount), date_trunc('day', a.ended_at, 'UTC')
        FROM added a JOIN recordings r ON r.pk = a.recording_pk, zarrmill_attempt_counts(a) n GROUP BY 1, 2, 4;
    ELSE
        INSERT INTO tally_changes (dataset_pk, name, amount, changed_at)
        SELECT r.dataset_pk, n.name, sum(n.amount), date_trunc('day', a.ended_at, 'UTC')
        FROM added a JOIN removed b ON b.id = a.id AND b.outcome = 'converting' JOIN recordings r ON r.pk = a.recording_pk,
             zarrmill_attempt_counts(a) n
        WHERE a.outcome <> 'converting' GROUP BY 1, 2, 4;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_inserted AFTER INSERT ON attempts REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_attempts();
CREATE TRIGGER tally_updated AFTER UPDATE ON attempts REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION zarrmill_tally_attempts();

-- what there is already
INSERT INTO tally_changes (dataset_pk, name, amount)
SELECT r.dataset_pk, n.name, sum(n.amount) FROM recordings r, zarrmill_recording_counts(r) n GROUP BY 1, 2;
INSERT INTO tally_changes (dataset_pk, name, amount)
SELECT s.dataset_pk, n.name, sum(n.amount) FROM stores s, zarrmill_store_counts(s) n GROUP BY 1, 2;
INSERT INTO tally_changes (dataset_pk, name, amount, changed_at)
SELECT r.dataset_pk, n.name, sum(n.amount), date_trunc('day', a.ended_at, 'UTC')
FROM attempts a JOIN recordings r ON r.pk = a.recording_pk, zarrmill_attempt_counts(a) n GROUP BY 1, 2, 4;

-- the newest attempts of everything, for throughput and for samples
CREATE INDEX ix_attempts_ended_at_id ON attempts (ended_at, id);
