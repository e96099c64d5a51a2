"""Which attempts count: five runs, deaths, neighbours, deferrals and verdicts."""

from __future__ import annotations

import pytest
from edge_calls import postpone
from state_bench import Bench, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from contract.errors import LostLease
from db import recordings, stores
from db.recordings import PlannedAction
from db.runs import Run


def test_five_counted_runs_are_a_failure_that_keeps_the_last_error(bench: Bench, run: Run) -> None:
    waits = []
    for number in range(1, 6):
        attempt = bench.claim(run)
        with bench.begin() as c:
            ended = postpone(c, attempt, run.number)
        assert (ended.counted, ended.exhausted) == (True, number == 5)
        state = bench.state()
        assert state.attempts == number
        if number < 5:
            assert state.next_attempt_at is not None
            waits.append((state.next_attempt_at - bench.now).total_seconds() / 3600)
        bench.end(run)
        run = bench.start()
    assert waits == [1, 6, 24, 168]
    assert (state.due, state.code, state.verdict and state.verdict.detail) == (
        "failed",
        FailureCode.RETRY_EXHAUSTED,
        "OSError: disk",
    )
    assert state.published_as == "failures"
    assert [record.counted for record in bench.history().attempts] == [True] * 5


def test_a_second_counted_attempt_in_one_run_is_not_counted(bench: Bench, run: Run) -> None:
    for expected in (True, False, False):
        attempt = bench.claim(run)
        with bench.begin() as c:
            assert postpone(c, attempt, run.number).counted is expected
    assert bench.state().attempts == 1
    assert [record.counted for record in bench.history().attempts] == [True, False, False]


def test_a_failed_rebuild_that_is_exhausted_keeps_its_store_in_the_index(bench: Bench, run: Run) -> None:
    bench.convert(run)
    for _ in range(5):
        bench.end(run)
        run = bench.start()
        bench.apply(run, planned("01", why=WhyDue.OPTIONS), planned("02"))
        attempt = bench.claim(run)
        with bench.begin() as c:
            postpone(c, attempt, run.number)
    state = bench.state()
    assert (state.due, state.code, state.published_as) == ("failed", FailureCode.RETRY_EXHAUSTED, "stores")
    assert bench.coverage().stores == 1


def test_a_lone_death_is_forgiven_once_and_counted_then(bench: Bench, run: Run) -> None:
    for expected in (False, True):
        bench.claim(run)
        run = bench.start(owner_is_gone=True, pid=run.number + 1)
        record = bench.history().attempts[-1]
        assert (record.outcome, record.counted) == ("expired", expected)
    state = bench.state()
    assert (state.attempts, state.reason) == (1, PendingReason.INFRA_FAILURE)


def test_a_lone_recording_is_innocent_when_another_dataset_had_one_on_the_worker(bench: Bench, run: Run) -> None:
    other = Bench(bench.engine)
    its_run = other.start(pid=77)
    other.apply(its_run, planned("01"))
    worker = f"shared-by-two-{bench.dataset.pk}"
    for _ in range(3):
        lost = bench.claim(run, worker=worker, is_shared=True)
        other.claim(its_run, worker=worker, is_shared=True)
        with bench.begin() as c:
            assert not recordings.was_alone(c, attempt_id=lost)
        for one in (bench, other):
            one.wait(seconds=1)  # each has a clock of its own
        its_run = other.start(owner_is_gone=True, pid=its_run.number + 100)
        run = bench.start(owner_is_gone=True, pid=run.number + 1)
    assert (bench.state().attempts, other.state().attempts) == (0, 0)


def test_neighbours_that_die_together_are_innocent(bench: Bench, run: Run) -> None:
    before = bench.states()
    for _ in range(4):
        bench.claim(run, "01")
        bench.claim(run, "02")
        run = bench.start(owner_is_gone=True, pid=run.number + 1)
    assert bench.states() == before


def test_expired_attempts_of_a_living_run_are_given_back(bench: Bench, run: Run) -> None:
    lost = bench.claim(run, "01", worker="dead")
    held = bench.claim(run, "02", worker="alive")
    bench.wait(seconds=40)
    with bench.begin() as c:
        assert recordings.expire(c, run=run) == []
        assert recordings.renew_attempts(c, attempt_ids=[held]) == {held}
    bench.wait(seconds=25)
    with bench.begin() as c:
        [ended] = recordings.expire(c, run=run)
    assert (ended.attempt_id, ended.counted) == (lost, False)
    assert (bench.state("01").due, bench.state("02").due) == ("pending", "converting")


def test_a_verdict_needs_no_attempt(bench: Bench, run: Run) -> None:
    recording = bench.state().id
    for _ in range(2):
        with bench.begin() as c:
            recordings.refuse(
                c,
                run=run,
                recording_id=recording,
                code=FailureCode.RECORDING_TOO_LARGE,
                detail="needs 90 GiB",
                needed_bytes=90 << 30,
            )
    state = bench.state()
    assert state.verdict is not None
    assert (state.verdict.code, state.verdict.needed_bytes, state.verdict.engine) == (
        FailureCode.RECORDING_TOO_LARGE,
        90 << 30,
        "3",
    )
    with bench.begin() as c, pytest.raises(LostLease):
        recordings.refuse(c, run=run, recording_id=recording, code=FailureCode.EMPTY_RECORDING, detail=None)
    assert bench.history().attempts == ()


def test_a_deferral_spends_nothing_and_hides_no_real_error(bench: Bench, run: Run) -> None:
    attempt = bench.claim(run, "01")
    with bench.begin() as c:
        postpone(c, attempt, run.number)
    ids = [bench.state("01").id, bench.state("02").id]
    with bench.begin() as c:
        assert recordings.defer(c, run=run, recording_ids=ids, error="needs 8 GiB") == 1
        assert recordings.defer(c, run=run, recording_ids=ids, error="needs 8 GiB") == 0
    assert (bench.state("01").reason, bench.state("01").last_error) == (PendingReason.INFRA_FAILURE, "OSError: disk")
    second = bench.state("02")
    assert (second.reason, second.last_error, second.attempts) == (PendingReason.MEMORY_BUDGET, "needs 8 GiB", 0)


def test_one_address_is_served_for_one_recording(bench: Bench, run: Run) -> None:
    bench.convert(run)
    bench.end(run)
    run = bench.start()
    heir = planned("03", zarr=bench.state("01").zarr)
    loser = planned("01", PlannedAction.FAIL, code=FailureCode.STORE_PATH_COLLISION, detail=path_of("03"))
    bench.apply(run, loser, planned("02"), heir)
    assert bench.state("01").published_as == "stores"
    attempt = bench.claim(run, "03")
    with bench.begin() as c:
        assert stores.open_intent(c, attempt_id=attempt, run_number=run.number) == []
    assert bench.state("01").published_as == "failures"
    with bench.begin() as c:
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row("03"))
        assert stores.open_intents(c, dataset=bench.dataset) == []
    assert (bench.state("01").served, bench.state("03").published_as) == (None, "stores")
