"""A fabricated archive as an operator meets it: one dataset of 25,000 recordings under way, others in every state, hostile names.

Everything is put there by a few statements with ``generate_series``, in seconds. What looks random is a hash of a number, so that each
build is the same. Moments are counted back from the database's clock.
"""

from __future__ import annotations

from sqlalchemy import Connection, Engine, text

from db.tallies import fold

__all__ = ["HOSTILE", "LARGE", "PRIVATE", "TAG", "UNTOUCHED", "build", "fill_archive", "spread_over_days"]

LARGE = "xx000001"
"""25,000 recordings, its second run under way."""
HOSTILE = "xx000004"
"""Names, paths and details of tags."""
PRIVATE = "xx000005"
UNTOUCHED = "xx000006"
"""Registered and never converted: every number of it is unknown."""
TAG = "<script>alert(1)</script>"

_CODES = (
    "ARRAY['not_continuous', 'corrupt_or_truncated', 'file_read_error', 'channel_count_mismatch', 'retry_exhausted']"
)
_STATEMENTS = (
    # (number, status, recordings, name, visibility, modalities): counts follow from the recordings below
    """
    INSERT INTO datasets (dataset_id, target, source, name, visibility, modalities, tasks, subject_count, registered_at, last_run_number)
    SELECT 'xx' || lpad(n::text, 6, '0'), :target, '/source/' || n,
           CASE n WHEN 1 THEN 'A very large study of resting EEG' WHEN 2 THEN 'Small and clean' WHEN 3 THEN 'Never served'
                  WHEN 4 THEN 'Hostile <script>alert(1)</script> & "names"' WHEN 5 THEN 'Not for everybody'
                  WHEN 6 THEN 'Registered, never converted' ELSE 'Study ' || n END,
           CASE n WHEN 5 THEN 'private' ELSE 'public' END,
           CASE n % 4 WHEN 0 THEN '{meg}' WHEN 1 THEN '{eeg}' WHEN 2 THEN '{eeg,emg}' ELSE '{ieeg}' END::text[], '{rest}', 10 + n,
           zarrmill_now() - make_interval(days => 30), 0
    FROM generate_series(1, :datasets) n
    """,
    "INSERT INTO policies (dataset_pk) SELECT pk FROM datasets WHERE target = :target ON CONFLICT DO NOTHING",
    """
    INSERT INTO runs (id, dataset_pk, number, mode, state, stage, started_at, ended_at, zarrmill, options, engine, biosigio, owner_host,
                      owner_pid, counts, error)
    SELECT md5('run' || d.dataset_id || u)::uuid, d.pk, u, CASE u WHEN 1 THEN 'full' ELSE 'auto' END,
           CASE WHEN d.dataset_id = 'xx000001' AND u = 2 THEN 'running' WHEN d.dataset_id = 'xx000003' THEN 'failed' ELSE 'completed' END,
           CASE WHEN d.dataset_id = 'xx000001' AND u = 2 THEN 'converting' END,
           zarrmill_now() - CASE u WHEN 1 THEN interval '12 days' ELSE interval '5 hours' END,
           CASE WHEN d.dataset_id = 'xx000001' AND u = 2 THEN NULL
                ELSE zarrmill_now() - CASE u WHEN 1 THEN interval '9 days' ELSE interval '4 hours' END END,
           '0.1.0', 'o', '4', '1.2.13', 'host-a', 1, '{}',
           CASE WHEN d.dataset_id = 'xx000003' THEN 'the source <script>alert(1)</script> cannot be read' END
    FROM datasets d, generate_series(1, 2) u WHERE d.target = :target AND d.dataset_id <> 'xx000006' AND (d.dataset_id <> 'xx000003' OR u = 1)
    """,
    """
    UPDATE datasets d SET last_run_number = (SELECT max(number) FROM runs u WHERE u.dataset_pk = d.pk) WHERE target = :target
       AND EXISTS (SELECT FROM runs u WHERE u.dataset_pk = d.pk)
    """,
    """
    INSERT INTO dataset_leases (dataset_pk, run_id, run_number, owner_host, owner_pid, lock_path, expires_at)
    SELECT dataset_pk, id, number, owner_host, owner_pid, '/nowhere', zarrmill_now() + interval '1 day' FROM runs WHERE state = 'running'
    """,
    # of 100: 88 served (3 of them due again), 5 failed, 7 pending; the large one has 12 that are being converted
    f"""
    WITH sizes AS (
        SELECT pk, dataset_id, CASE dataset_id WHEN 'xx000001' THEN :each WHEN 'xx000002' THEN 20 WHEN 'xx000003' THEN 0 WHEN 'xx000006' THEN 0
                               ELSE 20 + substr(dataset_id, 3)::int % 37 END AS recordings
        FROM datasets WHERE target = :target
    ), rows AS (
        SELECT s.pk, s.dataset_id, n, CASE
                   WHEN s.dataset_id = 'xx000001' AND n % 2000 = 11 THEN 'converting'
                   WHEN s.dataset_id = 'xx000002' OR s.dataset_id > 'xx000040' AND s.dataset_id <= 'xx000060' THEN 'none'
                   WHEN n % 20 = 7 THEN 'failed' WHEN n % 100 >= 93 THEN 'pending' ELSE 'none' END AS due,
               'sub-' || lpad((n / 4)::text, 5, '0') || '/eeg/sub-' || lpad((n / 4)::text, 5, '0') || '_task-rest_run-' || n % 4
               || CASE WHEN s.dataset_id = 'xx000004' AND n % 3 = 0 THEN '<script>alert(1)<_script>' ELSE '' END || '_eeg' AS stem,
               (ARRAY['edf', 'brainvision', 'eeglab', 'fif'])[1 + n % 4] AS format,
               (1000000 * (1 + abs(hashint4(n)) % 400))::bigint AS size_bytes
        FROM sizes s, generate_series(1, s.recordings) n
    )
    INSERT INTO recordings (dataset_pk, path, zarr, format, modality, size_bytes, discovered, source, inputs, served_source, due, why,
                            reason, code, detail, verdict_options, verdict_engine, verdict_biosigio, attempts, counted_run, last_error,
                            last_attempt_at, next_attempt_at, attempt_id, run_number, worker, claimed_at, lease_expires_at)
    SELECT pk, stem || '.' || format, stem || '.zarr', format, 'eeg', size_bytes, true, 's', decode('789c8b8e0500011500b9', 'hex'),
           CASE WHEN due = 'none' OR due = 'pending' AND n % 100 >= 97 THEN 's' END, due,
           CASE WHEN due IN ('pending', 'converting') THEN CASE WHEN n % 100 >= 97 THEN 'engine' ELSE 'new' END END,
           CASE WHEN due = 'pending' THEN (ARRAY['infra_failure', 'memory_budget', 'not_attempted'])[1 + n % 3]
                WHEN due = 'converting' THEN 'not_attempted' END,
           CASE WHEN due = 'failed' THEN ({_CODES})[1 + n / 20 % 5] END,
           CASE WHEN due = 'failed' THEN 'the header declares 64 channels, <script>alert(1)</script>' END,
           CASE WHEN due = 'failed' THEN 'o' END, CASE WHEN due = 'failed' THEN '4' END, CASE WHEN due = 'failed' THEN '1.2.13' END,
           CASE WHEN due = 'failed' AND n / 20 % 5 = 4 THEN 5 WHEN due = 'pending' AND n % 3 < 2 THEN 1 ELSE 0 END,
           CASE WHEN due = 'failed' AND n / 20 % 5 = 4 OR due = 'pending' AND n % 3 < 2 THEN 1 END,
           CASE WHEN due = 'pending' AND n % 3 < 2 THEN 'the worker was killed (signal 9)' END,
           CASE WHEN due = 'none' THEN NULL ELSE zarrmill_now() - make_interval(mins => n % 9000) END,
           CASE WHEN due = 'pending' AND n % 3 < 2 THEN zarrmill_now() + interval '3 hours' END,
           CASE WHEN due = 'converting' THEN md5('at' || dataset_id || n || 2)::uuid END, CASE WHEN due = 'converting' THEN 2 END,
           CASE WHEN due = 'converting' THEN 'worker-' || n % 3 END, CASE WHEN due = 'converting' THEN zarrmill_now() - interval '1 minute' END,
           CASE WHEN due = 'converting' THEN zarrmill_now() + interval '1 day' END
    FROM rows
    """,
    # one attempt each in the first run; the failed, pending and some served again in the second
    """
    INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, floor_bytes, projected_bytes, permitted_bytes, scratch_bytes,
                          measured_bytes, outcome, counted, code, reason, error, traceback, started_at, ended_at, stage_seconds, stage_bytes, notes)
    SELECT md5('at' || m.dataset_id || m.n || u.number)::uuid, m.pk, u.id, 'worker-' || m.n % 3, m.format,
           CASE m.n % 5 WHEN 0 THEN 'streamed' ELSE 'in_memory' END, m.floor, m.projected, m.projected,
           2 * m.size_bytes, CASE WHEN m.outcome = 'converting' THEN NULL ELSE (m.projected * (0.45 + 0.5 * m.dice))::bigint END, m.outcome,
           m.outcome = 'pending' AND m.n % 3 < 2, CASE WHEN m.outcome = 'failed' THEN m.code END,
           CASE WHEN m.outcome = 'pending' THEN m.reason END,
           CASE m.outcome WHEN 'failed' THEN 'the header declares 64 channels, <script>alert(1)</script>'
                          WHEN 'pending' THEN 'the worker was killed (signal 9)' END,
           CASE m.outcome WHEN 'failed' THEN E'Traceback (most recent call last):\\n  File "convert.py", line 12\\nValueError: <script>' END,
           m.ended - make_interval(secs => m.seconds), CASE WHEN m.outcome <> 'converting' THEN m.ended END,
           CASE WHEN m.outcome = 'converting' THEN '{}' ELSE jsonb_build_object('fetch', m.seconds * 0.2, 'child', m.seconds * 0.7, 'read', m.seconds * 0.2,
                'convert', m.seconds * 0.4, 'attributes', m.seconds * 0.02, 'gate', m.seconds * 0.05, 'digest', m.seconds * 0.03, 'upload', m.seconds * 0.1) END,
           jsonb_build_object('fetch', m.size_bytes, 'upload', m.size_bytes / 2), '{}'
    FROM (
        SELECT r.*, d.dataset_id, r.n_ AS n, (r.size_bytes * 3.2 + 60000000)::bigint AS floor, (r.size_bytes * 3.8 + 80000000)::bigint AS projected,
               abs(hashint4(r.n_ * 7)) % 1000 / 1000.0 AS dice,
               (2 + r.size_bytes / 8e6 * (0.6 + abs(hashint4(r.n_ * 3)) % 1000 / 1250.0))::float8 AS seconds, k AS round,
               CASE WHEN r.due = 'converting' THEN 'converting' WHEN r.due = 'failed' AND r.code <> 'retry_exhausted' THEN 'failed'
                    WHEN r.due = 'failed' THEN 'pending' WHEN r.due = 'pending' AND r.served_source IS NULL THEN 'pending' ELSE 'done' END AS outcome,
               CASE WHEN r.due = 'converting' THEN zarrmill_now()
                    WHEN k = 1 THEN zarrmill_now() - make_interval(secs => 9 * 86400 + r.n_ % 25000 * 10)
                    ELSE zarrmill_now() - make_interval(secs => 60 + r.n_ % 5000 * 3) END AS ended
        FROM (SELECT *, row_number() OVER (PARTITION BY dataset_pk ORDER BY pk)::int AS n_ FROM recordings) r
        JOIN datasets d ON d.pk = r.dataset_pk AND d.target = :target, generate_series(1, 2) k
        WHERE CASE WHEN r.due = 'converting' THEN k = 2 WHEN k = 2 THEN r.due <> 'none' OR r.n_ % 4 = 0 ELSE r.due IN ('none', 'failed') OR r.n_ % 2 = 0 END
    ) m JOIN runs u ON u.dataset_pk = m.dataset_pk AND u.number = m.round
    """.replace("m.reason END", "COALESCE(m.reason, 'infra_failure') END"),
    """
    INSERT INTO stores (recording_pk, dataset_pk, zarr, entry, source, options, engine, biosigio, digests, events_row_count, size_bytes,
                        duration_s, attempt_id, updated_utc)
    SELECT r.pk, r.dataset_pk, r.zarr, convert_to('{"zarr": "x"}', 'UTF8'), 's', 'o', '4', '1.2.13', 'd', 0, r.size_bytes / 2, 300,
           COALESCE((SELECT a.id FROM attempts a WHERE a.recording_pk = r.pk AND a.outcome = 'done' ORDER BY a.ordinal DESC LIMIT 1),
                    md5('store' || r.pk)::uuid),
           zarrmill_now() - interval '1 hour'
    FROM recordings r JOIN datasets d ON d.pk = r.dataset_pk AND d.target = :target WHERE r.served_source IS NOT NULL
    """,
    """
    UPDATE datasets d SET status = 'ready', source_commit = repeat('a', 40), index_etag = 'etag', converted_at = zarrmill_now() - interval '2 hours',
           converting = d.dataset_id = 'xx000001', duration_s = 300 * f.stores, discovered_count = f.discovered, store_count = f.stores,
           failure_count = f.failures, pending_count = f.discovered - f.stores - f.failures, errors = f.failures
    FROM (SELECT dataset_pk, count(*) AS discovered, count(*) FILTER (WHERE served_source = source) AS stores,
                 count(*) FILTER (WHERE due = 'failed') AS failures FROM recordings GROUP BY 1) f
    WHERE f.dataset_pk = d.pk AND d.target = :target
    """,
    """
    UPDATE datasets SET status = 'failed', failed_at = zarrmill_now() - interval '9 days', error = 'the source <script>alert(1)</script> cannot be read'
    WHERE target = :target AND dataset_id = 'xx000003'
    """,
    "UPDATE datasets SET visibility = 'private' WHERE target = :target AND dataset_id = 'xx000005'",
    # what runs were asked and said; the first ones had converted less
    """
    UPDATE runs u SET source_commit = repeat('a', 40), asked = '{"by": "grace", "priority": 10, "rebuild_on": "engine, options"}',
           counts = CASE WHEN u.state = 'completed' AND d.discovered_count IS NOT NULL THEN jsonb_build_object(
               'discovered', d.discovered_count, 'stores', d.store_count - (2 - u.number) * (d.store_count / 10), 'failures', d.failure_count,
               'pending', d.pending_count + (2 - u.number) * (d.store_count / 10), 'converted', d.store_count / 2, 'removed', 0,
               'errors', d.failure_count) ELSE '{}' END
    FROM datasets d WHERE d.pk = u.dataset_pk AND d.target = :target
    """,
    """
    UPDATE policies p SET state = 'round', retry_round = 2, next_at = zarrmill_now() + interval '3 hours' FROM datasets d
    WHERE d.pk = p.dataset_pk AND d.target = :target AND d.dataset_id = 'xx000001'
    """,
    """
    UPDATE policies p SET state = 'exhausted', retry_round = 5 FROM datasets d
    WHERE d.pk = p.dataset_pk AND d.target = :target AND d.dataset_id = 'xx000007'
    """,
    """
    INSERT INTO verdicts (dataset_pk, source_commit, status, checked, mismatches, verified_at, index_etag, stores_verified, stores_failed)
    SELECT pk, source_commit, CASE WHEN dataset_id = 'xx000008' THEN 'failed' ELSE 'verified' END, 20, (dataset_id = 'xx000008')::int,
           zarrmill_now() - interval '1 day', index_etag, store_count - (dataset_id = 'xx000008')::int, (dataset_id = 'xx000008')::int
    FROM datasets WHERE target = :target AND status = 'ready' AND dataset_id <> 'xx000001'
    """,
    """
    INSERT INTO requests (dataset_pk, work, mode, why, detail, asked_by, state, asked_at, started_at, ended_at, run_id, error)
    SELECT d.pk, 'convert', 'auto', CASE d.dataset_id WHEN 'xx000003' THEN 'new' ELSE 'retry_round' END, '<script>alert(1)</script>', 'ada',
           CASE d.dataset_id WHEN 'xx000001' THEN 'running' WHEN 'xx000003' THEN 'failed' ELSE 'waiting' END,
           zarrmill_now() - interval '5 hours', CASE WHEN d.dataset_id IN ('xx000001', 'xx000003') THEN zarrmill_now() - interval '5 hours' END,
           CASE d.dataset_id WHEN 'xx000003' THEN zarrmill_now() - interval '4 hours' END, u.id, CASE d.dataset_id WHEN 'xx000003' THEN 'no source' END
    FROM datasets d LEFT JOIN runs u ON u.dataset_pk = d.pk AND u.state = 'running'
    WHERE d.target = :target AND d.dataset_id IN ('xx000001', 'xx000003', 'xx000009')
    """,
    """
    INSERT INTO callbacks (dataset_pk, run_id, status, body, created_at)
    SELECT u.dataset_pk, u.id, 'ready', '{}', zarrmill_now() - interval '30 hours' FROM runs u JOIN datasets d ON d.pk = u.dataset_pk
    WHERE d.target = :target AND d.dataset_id IN ('xx000010', 'xx000011') AND u.number = 1
    """,
    """
    INSERT INTO alarms (kind, subject, detail, began_at) VALUES
    ('exhausted', 'xx000007 at ' || :target, 'five rounds <script>alert(1)</script> were in vain', zarrmill_now() - interval '1 day'),
    ('callbacks_undelivered', '', '2 callbacks are not delivered', zarrmill_now() - interval '6 hours')
    """,
    """
    INSERT INTO operator_actions (acted_at, acted_by, why, verb, subject, executed, counts)
    SELECT zarrmill_now() - make_interval(hours => n), 'ada', 'because <script>alert(1)</script>', 'trigger', 'xx000001', true, '{"recordings": 3}'
    FROM generate_series(1, 5) n
    """,
)


def fill_archive(c: Connection, *, target: str, datasets: int = 80, each: int = 25_000) -> None:
    """Fabricate ``datasets`` datasets at a target, the first of ``each`` recordings."""
    for statement in _STATEMENTS:
        values = {"target": target, "datasets": datasets, "each": each}
        # a tag in a text is no parameter of SQLAlchemy's: only words behind a colon are
        c.execute(text(statement), {name: value for name, value in values.items() if f":{name}" in statement})


def spread_over_days(c: Connection, *, days: int = 12) -> None:
    """Fold the counts, and let everything have been discovered ``days`` ago and settled evenly since."""
    while fold(c):
        pass
    c.execute(text("DELETE FROM tally_days WHERE name IN ('discovered', 'served', 'failed', 'pending')"))
    c.execute(
        text("""
            WITH had AS (
                SELECT dataset_pk, sum(amount) FILTER (WHERE name = 'discovered') AS discovered,
                       COALESCE(sum(amount) FILTER (WHERE name = 'served'), 0) AS served,
                       COALESCE(sum(amount) FILTER (WHERE name = 'failed'), 0) AS failed
                FROM tallies WHERE name IN ('discovered', 'served', 'failed') GROUP BY 1
            ), steps AS (
                SELECT h.*, g, div(h.served * g, :days) - div(h.served * (g - 1), :days) AS serving,
                       div(h.failed * g, :days) - div(h.failed * (g - 1), :days) AS failing
                FROM had h, generate_series(0, :days) g WHERE h.discovered > 0
            )
            INSERT INTO tally_days (dataset_pk, name, day, amount)
            SELECT s.dataset_pk, n.name, (zarrmill_now() AT TIME ZONE 'UTC')::date - :days + g, n.amount
            FROM steps s, LATERAL (VALUES ('discovered', CASE g WHEN 0 THEN discovered ELSE 0 END),
                                          ('served', CASE g WHEN 0 THEN 0 ELSE serving END), ('failed', CASE g WHEN 0 THEN 0 ELSE failing END),
                                          ('pending', CASE g WHEN 0 THEN discovered ELSE -serving - failing END)) n (name, amount)
            WHERE n.amount <> 0
        """),
        {"days": days},
    )


def build(engine: Engine, *, target: str, datasets: int = 80, each: int = 25_000) -> None:
    """The same, committed, and known to the planner."""
    with engine.begin() as c:
        fill_archive(c, target=target, datasets=datasets, each=each)
        spread_over_days(c)
    with engine.connect() as c:
        c.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))
