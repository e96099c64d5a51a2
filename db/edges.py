"""SQL that the edges share. Placeholders in braces are filled when the modules are read, values are always bound."""

from __future__ import annotations

__all__ = ["AWAY", "BACK_TO_PENDING", "END_ATTEMPT", "FREE", "HELD", "OTHERS_ON_ITS_WORKER", "VERDICT_OF_RUN"]

HELD = "r.attempt_id = :attempt AND r.run_number = :number AND r.due = 'converting' AND r.lease_expires_at > zarrmill_now()"
"""Over ``recordings r``: this attempt of this run holds the recording, and its lease has not run out."""

FREE = "attempt_id = NULL, run_number = NULL, worker = NULL, claimed_at = NULL, lease_expires_at = NULL"
"""Assignments that end a claim."""

VERDICT_OF_RUN = "verdict_options = u.options, verdict_engine = u.engine, verdict_biosigio = u.biosigio"
"""Assignments that note with what a verdict was found, over a row ``u`` with the run's versions."""

END_ATTEMPT = """
    UPDATE attempts a
    SET outcome = {outcome}, code = {code}, reason = {reason}, error = left({error}, 4000), counted = {counted},
        ended_at = zarrmill_now(), measured_bytes = :measured, stage_seconds = CAST(:seconds AS jsonb),
        stage_bytes = CAST(:bytes AS jsonb), traceback = :traceback, notes = CAST(:notes AS text[]),
        quantisation = :quantisation
    FROM {source} m WHERE a.id = :attempt AND a.recording_pk = m.pk
    RETURNING a.id, a.recording_pk, a.counted, false AS exhausted
"""

OTHERS_ON_ITS_WORKER = """
    SELECT FROM attempts o JOIN attempts a ON o.worker = a.worker AND o.run_id <> a.run_id
    WHERE a.id = {attempt}
      AND (o.outcome = 'converting' OR (o.outcome IN ('released', 'expired') AND o.ended_at > a.started_at))
"""
"""What other runs have on the worker process of an attempt, or had when it was lost: converting still, or given back since."""

AWAY = f"""
    SELECT w.pk, w.dataset_pk, w.attempt_id, w.run_number AS number, w.counted_run, w.attempts, 'expired' AS outcome,
           w.alone AND w.deaths > 0 AS counts,
           CASE WHEN w.alone AND w.deaths > 0 THEN 'infra_failure' END AS reason,
           CASE WHEN w.alone AND w.deaths > 0 THEN 'The worker was lost again while it converted this recording alone.' END
               AS error,
           CASE WHEN w.alone THEN 'The worker was lost while it converted this recording alone.'
                ELSE 'The worker was lost while it converted several recordings.' END AS note,
           w.alone AS died
    FROM (
        -- how many died together is counted over all that the worker held, not only over those whose lease ran out first
        SELECT locked.*, count(*) OVER (PARTITION BY worker) = 1
               AND NOT EXISTS ({OTHERS_ON_ITS_WORKER.format(attempt="locked.attempt_id")}) AS alone
        FROM (
            SELECT * FROM recordings r WHERE r.dataset_pk = :dataset AND r.due = 'converting' ORDER BY r.pk FOR UPDATE
        ) locked
    ) w WHERE {{which}}
"""
"""Recordings whose worker is gone; alone ones are suspected, and blamed the second time."""

BACK_TO_PENDING = """
    WITH held AS MATERIALIZED ({held}),
    told AS (
        SELECT h.*, spends, spends AND h.attempts = 4 AS exhausted, h.attempts + spends::int AS spent
        FROM held h, LATERAL (SELECT h.counts AND h.counted_run IS DISTINCT FROM h.number AS spends) s
    ), moved AS (
        UPDATE recordings r
        SET due = CASE WHEN t.exhausted THEN 'failed' ELSE 'pending' END,
            why = CASE WHEN NOT t.exhausted THEN r.why END,
            reason = CASE WHEN NOT t.exhausted THEN COALESCE(t.reason, r.reason) END,
            code = CASE WHEN t.exhausted THEN 'retry_exhausted' END,
            detail = CASE WHEN t.exhausted THEN left(COALESCE(t.error, r.last_error), 4000) END,
            verdict_options = CASE WHEN t.exhausted THEN u.options END,
            verdict_engine = CASE WHEN t.exhausted THEN u.engine END,
            verdict_biosigio = CASE WHEN t.exhausted THEN u.biosigio END,
            attempts = t.spent,
            counted_run = CASE WHEN t.spends THEN t.number ELSE r.counted_run END,
            deaths = r.deaths + t.died::int,
            last_error = COALESCE(left(t.error, 4000), r.last_error),
            last_attempt_at = CASE WHEN t.reason IS NULL THEN r.last_attempt_at ELSE zarrmill_now() END,
            next_attempt_at = CASE
                WHEN t.exhausted THEN NULL
                WHEN t.spends THEN zarrmill_now() + (ARRAY[
                    interval '1 hour', interval '6 hours', interval '24 hours', interval '7 days', interval '7 days'])[t.spent]
                ELSE r.next_attempt_at END,
            attempt_id = NULL, run_number = NULL, worker = NULL, claimed_at = NULL, lease_expires_at = NULL
        FROM told t JOIN runs u ON u.dataset_pk = t.dataset_pk AND u.number = t.number
        WHERE r.pk = t.pk AND r.attempt_id = t.attempt_id
        RETURNING r.pk, t.attempt_id, t.outcome, t.reason, t.note, t.spends, t.exhausted
    )
    UPDATE attempts a
    SET outcome = m.outcome, reason = CASE WHEN m.outcome = 'pending' THEN m.reason END, error = left(m.note, 4000),
        counted = m.spends, ended_at = zarrmill_now(), measured_bytes = :measured, stage_seconds = CAST(:seconds AS jsonb),
        stage_bytes = CAST(:bytes AS jsonb), traceback = :traceback, notes = CAST(:notes AS text[]),
        quantisation = :quantisation
    FROM moved m WHERE a.id = m.attempt_id
    RETURNING a.id, a.recording_pk, a.counted, m.exhausted
"""
"""The one way back from converting: to pending, or at the fifth counted attempt to failed. At most one attempt a run counts.

Waiting times after the first to the fifth counted attempt: 1 h, 6 h, 24 h, 7 d, 7 d."""
