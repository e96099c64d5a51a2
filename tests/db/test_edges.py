"""Every edge of a recording: where it leads, what it refuses, what a repetition of it does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, text
from state_bench import Bench, fingerprint, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from contract.errors import LostLease
from db import recordings, runs, stores
from db.recordings import Measured, PlannedAction
from db.runs import Run

Edge = Callable[[Connection, UUID, int], object]
MEASURED = Measured(
    measured_bytes=7,
    stage_seconds={"convert": 1.5},
    stage_bytes={"fetch": 9},
    traceback="x" * 20_000,
    notes=["first", "y" * 1000, "nul\x00", *map(str, range(40))],
    quantisation=b"\x00packed",
)


def done(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.done(c, attempt_id=attempt, run_number=number, store=store_row(), report=MEASURED)


def fail(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.fail(
        c,
        attempt_id=attempt,
        run_number=number,
        code=FailureCode.NOT_CONTINUOUS,
        detail="ValueError: epochs",
        report=MEASURED,
    )


def postpone(c: Connection, attempt: UUID, number: int, *, counted: bool = True) -> recordings.Ended:
    return recordings.postpone(
        c,
        attempt_id=attempt,
        run_number=number,
        reason=PendingReason.INFRA_FAILURE,
        error="OSError: disk",
        counted=counted,
        report=MEASURED,
    )


def postpone_uncounted(c: Connection, attempt: UUID, number: int) -> object:
    return postpone(c, attempt, number, counted=False)


def release(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.release(c, attempt_id=attempt, run_number=number, why="stopped", report=MEASURED)


EDGES: dict[str, tuple[Edge, str, str]] = {
    "done": (done, "none", "done"),
    "fail": (fail, "failed", "failed"),
    "postpone": (postpone, "pending", "pending"),
    "postpone uncounted": (postpone_uncounted, "pending", "pending"),
    "release": (release, "pending", "released"),
}
each_edge = pytest.mark.parametrize(("edge", "due", "outcome"), EDGES.values(), ids=EDGES)


@pytest.fixture
def run(bench: Bench) -> Run:
    started = bench.start()
    bench.apply(started, planned("01"), planned("02"))
    return started


@each_edge
def test_an_edge_moves_the_recording_and_writes_its_attempt(
    bench: Bench, run: Run, edge: Edge, due: str, outcome: str
) -> None:
    attempt = bench.claim(run)
    assert bench.state().due == "converting"
    bench.wait(seconds=59)
    with bench.begin() as c:
        edge(c, attempt, run.number)
    history = bench.history()
    assert history.state.due == due
    [record] = history.attempts
    assert (record.outcome, record.measured_bytes, record.stage_seconds, record.ended_at) == (
        outcome,
        7,
        {"convert": 1.5},
        bench.now,
    )
    assert (record.projected_bytes, record.permitted_bytes, record.route, record.engine) == (10, 20, "memory", "3")
    assert record.traceback is not None
    assert len(record.traceback) == 16_000
    assert record.notes[:4] == ("first", "y" * 300, "nul", "0")
    assert (len(record.notes), record.notes[-1]) == (20, "24 more notes were left out")
    assert record.quantisation == b"\x00packed"
    assert bench.coverage().discovered == 2


@each_edge
def test_a_repeated_edge_is_success_and_writes_nothing(
    bench: Bench, run: Run, edge: Edge, due: str, outcome: str
) -> None:
    attempt = bench.claim(run)
    with bench.begin() as c:
        first = edge(c, attempt, run.number)
    before = bench.history()
    bench.wait(hours=5)
    with bench.begin() as c:
        assert edge(c, attempt, run.number) == first
    assert bench.history() == before


@each_edge
def test_an_edge_after_the_lease_ran_out_is_lost(bench: Bench, run: Run, edge: Edge, due: str, outcome: str) -> None:
    attempt = bench.claim(run)
    bench.wait(seconds=60)
    with bench.begin() as c, pytest.raises(LostLease):
        edge(c, attempt, run.number)
    assert bench.state().due == "converting"


@each_edge
def test_an_edge_of_a_strange_attempt_is_lost(bench: Bench, run: Run, edge: Edge, due: str, outcome: str) -> None:
    attempt = bench.claim(run)
    for stranger, number in ((uuid4(), run.number), (attempt, run.number + 1), (attempt, 0)):
        with bench.begin() as c, pytest.raises(LostLease):
            edge(c, stranger, number)
    assert bench.state().due == "converting"


@pytest.mark.parametrize(
    ("one", "other"), [pair for pair in permutations(EDGES, 2) if EDGES[pair[0]][2] != EDGES[pair[1]][2]]
)
def test_an_attempt_that_ended_one_way_cannot_end_another(bench: Bench, run: Run, one: str, other: str) -> None:
    edge, second = EDGES[one][0], EDGES[other][0]
    attempt = bench.claim(run)
    with bench.begin() as c:
        edge(c, attempt, run.number)
    before = bench.history()
    with bench.begin() as c, pytest.raises(LostLease):
        second(c, attempt, run.number)
    assert bench.history() == before


@each_edge
def test_a_slow_worker_cannot_overwrite_after_a_takeover(
    bench: Bench, run: Run, edge: Edge, due: str, outcome: str
) -> None:
    attempt = bench.claim(run)
    taken = bench.start(owner_is_gone=True, pid=2)
    assert taken.number == run.number + 1
    second = bench.claim(taken, worker="w2")
    with bench.begin() as c, pytest.raises(LostLease):
        edge(c, attempt, run.number)
    assert bench.state().due == "converting"
    with bench.begin() as c:
        recordings.done(c, attempt_id=second, run_number=taken.number, store=store_row())
    with bench.begin() as c, pytest.raises(LostLease):
        edge(c, attempt, run.number)
    assert bench.state().published_as == "stores"


def test_only_a_pending_recording_can_be_claimed_and_once(bench: Bench, run: Run) -> None:
    attempt = bench.claim(run)
    bench.claim(run, attempt_id=attempt)
    with pytest.raises(LostLease):
        bench.claim(run)
    with bench.begin() as c:
        done(c, attempt, run.number)
    with pytest.raises(LostLease):
        bench.claim(run)
    assert len(bench.history().attempts) == 1


def test_a_run_that_was_taken_over_claims_nothing(bench: Bench, run: Run) -> None:
    bench.start(owner_is_gone=True, pid=2)
    with pytest.raises(LostLease):
        bench.claim(run)


def test_a_run_whose_lease_ran_out_claims_nothing(bench: Bench, run: Run) -> None:
    bench.wait(seconds=61)
    with pytest.raises(LostLease):
        bench.claim(run)


def test_renewal_keeps_what_is_held_and_brings_nothing_back(bench: Bench, run: Run) -> None:
    first = bench.claim(run, "01")
    bench.wait(seconds=30)
    second = bench.claim(run, "02")
    bench.wait(seconds=31)
    with bench.begin() as c:
        assert recordings.renew_attempts(c, attempt_ids=[first, second, uuid4()]) == {second}
    bench.wait(seconds=59)
    with bench.begin() as c:
        assert recordings.renew_attempts(c, attempt_ids=[second]) == {second}
        assert recordings.renew_attempts(c, attempt_ids=[]) == set()


def test_a_store_of_another_source_than_planned_is_not_taken(bench: Bench, run: Run) -> None:
    attempt = bench.claim(run)
    with bench.begin() as c, pytest.raises(LostLease):
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row(source="s0"))


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


def test_uncounted_postponement_spends_nothing(bench: Bench, run: Run) -> None:
    attempt = bench.claim(run)
    with bench.begin() as c:
        postpone(c, attempt, run.number, counted=False)
    state = bench.state()
    assert (state.attempts, state.reason, state.next_attempt_at) == (0, PendingReason.INFRA_FAILURE, None)


def test_a_release_leaves_the_recording_as_it_was(bench: Bench, run: Run) -> None:
    before = bench.state()
    attempt = bench.claim(run)
    with bench.begin() as c:
        release(c, attempt, run.number)
    assert bench.state() == before


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


def test_a_conversion_clears_attempts(bench: Bench, run: Run) -> None:
    attempt = bench.claim(run)
    with bench.begin() as c:
        postpone(c, attempt, run.number)
    bench.convert(run)
    state = bench.state()
    assert (state.due, state.attempts, state.last_error, state.next_attempt_at) == ("none", 0, None, None)


@pytest.mark.parametrize("reason", [PendingReason.NOT_ATTEMPTED])
def test_an_attempt_cannot_end_as_not_attempted(bench: Bench, run: Run, reason: PendingReason) -> None:
    attempt = bench.claim(run)
    with bench.begin() as c, pytest.raises(ValueError, match="release"):
        recordings.postpone(c, attempt_id=attempt, run_number=run.number, reason=reason, error=None, counted=True)


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


def test_what_a_run_still_converts_at_its_end_is_released(bench: Bench, run: Run) -> None:
    before = bench.state()
    bench.claim(run)
    with bench.begin() as c:
        runs.finish(c, run=run, state="cancelled", counts={"done": 0})
    bench.end(run)
    bench.end(run)
    assert bench.state() == before
    assert bench.history().attempts[0].outcome == "released"


def test_history_names_the_source_of_what_is_served(bench: Bench, run: Run) -> None:
    bench.convert(run)
    served = bench.state().served
    assert served is not None
    assert (served.source, served.options, served.engine) == (fingerprint("s1"), "o1", "3")
    with bench.begin() as c:
        assert (
            c.scalar(text("SELECT updated_utc FROM stores WHERE dataset_pk = :pk"), {"pk": bench.dataset.pk})
            == bench.now
        )
        assert stores.digests(c, dataset=bench.dataset, zarr=bench.state().zarr) == {
            "zarr.json": (2, fingerprint("zarr.json"))
        }
        assert stores.digests(c, dataset=bench.dataset, zarr="none.zarr") is None
