"""Rows that contradict themselves are refused by the server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError
from state_bench import Bench, planned

from contract.codes import FailureCode, PendingReason, WhyDue
from db import recordings
from db.coverage import Coverage, Unaccounted

IMPOSSIBLE = {
    "failed without a code": "due = 'failed', reason = NULL, why = NULL",
    "a code but not failed": "code = 'not_continuous', verdict_options = 'o', verdict_engine = '3', verdict_biosigio = '1'",
    "a verdict without its versions": "due = 'failed', reason = NULL, why = NULL, code = 'not_continuous'",
    "pending without a reason": "reason = NULL",
    "pending without a why": "why = NULL",
    "a reason that is not published": "reason = 'tired'",
    "a why that is unknown": "why = 'mood'",
    "converting without a lease": "due = 'converting'",
    "converting without a worker": (
        "due = 'converting', attempt_id = gen_random_uuid(), run_number = 1, claimed_at = now(), lease_expires_at = now()"
    ),
    "a lease but not converting": "lease_expires_at = now()",
    "an attempt but not converting": "attempt_id = gen_random_uuid()",
    "nothing due and nothing served": "due = 'none', reason = NULL, why = NULL",
    "served without a store": "served_source = source",
    "vanished and pending": "discovered = false",
    "no such state": "due = 'tired'",
    "counted but never counted in a run": "attempts = 1, reason = 'infra_failure'",
    "attempted but not attempted": "attempts = 1, counted_run = 1",
    "five attempts and no verdict": "attempts = 5, counted_run = 1, reason = 'infra_failure'",
    "six attempts": "attempts = 6, counted_run = 1, reason = 'infra_failure'",
    "exhausted after four": (
        "due = 'failed', reason = NULL, why = NULL, code = 'retry_exhausted', verdict_options = 'o', verdict_engine = '3', "
        "verdict_biosigio = '1', attempts = 4, counted_run = 4"
    ),
    "a detail without a verdict": "detail = 'x'",
    "a fat error": "last_error = repeat('x', 4001)",
}


@pytest.mark.parametrize("assignments", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_recording_cannot_be(bench: Bench, assignments: str) -> None:
    bench.apply(bench.start(), planned("01"))
    with pytest.raises(IntegrityError), bench.begin() as c:
        c.execute(text(f"UPDATE recordings SET {assignments} WHERE dataset_pk = :pk"), {"pk": bench.dataset.pk})


SERVED_IMPOSSIBLE = {
    "nothing due and another source": "UPDATE recordings SET source = 'other' WHERE dataset_pk = :pk",
    "a store of another source than noted": "UPDATE stores SET source = 'other' WHERE dataset_pk = :pk",
    "a store that is not noted": (
        "UPDATE recordings SET served_source = NULL, due = 'pending', why = 'new', reason = 'not_attempted' WHERE dataset_pk = :pk"
    ),
    "a store that vanished by itself": "DELETE FROM stores WHERE dataset_pk = :pk",
    "event rows without events": "UPDATE stores SET events = NULL WHERE dataset_pk = :pk",
    "no digests": "UPDATE stores SET digests = '' WHERE dataset_pk = :pk",
    "no entry": "UPDATE stores SET entry = NULL WHERE dataset_pk = :pk",
    "a done attempt with a code": "UPDATE attempts SET code = 'x' WHERE recording_pk IN (SELECT recording_pk FROM stores WHERE dataset_pk = :pk)",
    "a done attempt that counts": "UPDATE attempts SET counted = true WHERE recording_pk IN (SELECT recording_pk FROM stores WHERE dataset_pk = :pk)",
    "an end that is none": "UPDATE attempts SET ended_at = NULL WHERE recording_pk IN (SELECT recording_pk FROM stores WHERE dataset_pk = :pk)",
    "two running runs": (
        "INSERT INTO runs (id, dataset_pk, number, mode, zarrmill, options, engine, biosigio, owner_host, owner_pid) "
        "SELECT gen_random_uuid(), :pk, 99, 'auto', '', '', '', '', '', 1"
    ),
    "ready but not published": "UPDATE datasets SET status = 'ready' WHERE pk = :pk",
    "published by halves": "UPDATE datasets SET index_etag = 'e' WHERE pk = :pk",
    "failed at no moment": "UPDATE datasets SET status = 'failed' WHERE pk = :pk",
    "an odd id": "UPDATE datasets SET dataset_id = 'x1' WHERE pk = :pk",
}


@pytest.mark.parametrize("statement", SERVED_IMPOSSIBLE.values(), ids=SERVED_IMPOSSIBLE)
def test_a_served_dataset_cannot_be(bench: Bench, statement: str) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    with pytest.raises(IntegrityError), bench.begin() as c:
        c.execute(text(statement), {"pk": bench.dataset.pk})


def test_two_stores_at_one_address_cannot_be(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"), planned("02"))
    bench.convert(run, "01")
    bench.convert(run, "02")
    with pytest.raises(IntegrityError), bench.begin() as c:
        c.execute(text("UPDATE stores SET zarr = 'same.zarr' WHERE dataset_pk = :pk"), {"pk": bench.dataset.pk})


def test_two_counted_attempts_in_one_run_cannot_be(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    for _ in range(2):
        attempt = bench.claim(run)
        with bench.begin() as c:
            recordings.postpone(
                c,
                attempt_id=attempt,
                run_number=run.number,
                reason=PendingReason.INFRA_FAILURE,
                error=None,
                counted=True,
            )
    with pytest.raises(IntegrityError), bench.begin() as c:
        c.execute(text("UPDATE attempts SET counted = true WHERE run_id = :run"), {"run": run.id})


def test_every_code_reason_and_why_of_the_contract_can_be_stored(bench: Bench) -> None:
    run = bench.start()
    for why in WhyDue:
        bench.apply(run)
        bench.apply(run, planned("01", why=why))
        assert bench.state().why is why
    for code in FailureCode:
        if code is not FailureCode.RETRY_EXHAUSTED:
            bench.apply(run, planned("01", recordings.PlannedAction.FAIL, code=code))
            assert bench.state().code is code
    bench.apply(run, planned("01", why=WhyDue.NEW))
    with bench.begin() as c:
        for reason in PendingReason:
            c.execute(
                text("UPDATE recordings SET reason = :reason WHERE dataset_pk = :pk"),
                {"reason": reason, "pk": bench.dataset.pk},
            )


def test_coverage_that_does_not_add_up_raises(engine: Engine, shared_engines: Callable[[int], Engine]) -> None:
    with pytest.raises(Unaccounted, match="5 recordings"):
        Coverage(discovered=5, stores=3, failures=1, pending=0)
    bench = Bench(engine)
    bench.apply(bench.start(), planned("01"))
    with engine.begin() as c:
        c.execute(text("ALTER TABLE recordings DROP CONSTRAINT ck_recordings_nothing_due_is_served"))
        c.execute(text("UPDATE recordings SET due = 'none', reason = NULL, why = NULL"))
    with pytest.raises(Unaccounted, match="1 recordings"):
        bench.coverage()
