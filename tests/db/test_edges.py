"""Every edge of a recording: where it leads, what it refuses, what a repetition of it does."""

from __future__ import annotations

from itertools import permutations
from uuid import uuid4

import pytest
from edge_calls import EDGES, Edge, done, each_edge, postpone, release
from sqlalchemy import text
from state_bench import Bench, fingerprint, store_row

from contract.codes import PendingReason
from contract.errors import LostLease
from db import recordings, runs, stores
from db.runs import Run


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
