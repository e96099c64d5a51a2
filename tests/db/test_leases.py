"""Who holds a dataset, and what happens when several want it, or a recording, at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from state_bench import VERSIONS, Bench, planned, store_row

from contract.errors import Busy, LostLease
from db import datasets, leases, recordings, runs
from db.coverage import Coverage
from db.leases import Owner
from db.runs import Run


def test_a_second_run_is_told_which_one_is_under_way(bench: Bench) -> None:
    run = bench.start()
    with pytest.raises(Busy) as caught:
        bench.start(pid=2)
    assert caught.value.sentence == (
        f"run 1 of {bench.dataset.dataset_id} is under way since 2026-03-01T00:00:00Z (pid 1 on here); wait for it or stop it"
    )
    assert caught.value.detail == str(run.id)


def test_the_owner_is_asked_for_by_its_lock(bench: Bench) -> None:
    bench.start()
    asked: list[Owner] = []

    def owner_is_gone(owner: Owner) -> bool:
        asked.append(owner)
        return True

    mine = Owner(host="here", pid=2, lock_path="/home/locks/2")
    with bench.begin() as c:
        run = leases.acquire(
            c, dataset=bench.dataset, owner=mine, mode="full", versions=VERSIONS, owner_is_gone=owner_is_gone
        )
    assert asked == [Owner(host="here", pid=1, lock_path="/home/locks/1")]
    assert (run.number, run.mode) == (2, "full")


def test_a_lease_that_ran_out_is_taken_over_and_its_run_is_lost(bench: Bench) -> None:
    first = bench.start()
    bench.wait(seconds=leases.LEASE_S)
    second = bench.start(pid=2)
    for lost in (
        lambda c: leases.renew(c, run=first),
        lambda c: leases.release(c, run=first),
        lambda c: runs.note_stage(c, run=first, stage="convert"),
        lambda c: runs.finish(c, run=first, state="completed"),
        lambda c: datasets.note_converting(c, run=first),
        lambda c: datasets.note_failed(c, run=first, errors=0, error=None),
    ):
        with bench.begin() as c, pytest.raises(LostLease):
            lost(c)
    with bench.begin() as c:
        leases.renew(c, run=second)
        assert [(record.run.number, record.state) for record in runs.last_runs(c, dataset=bench.dataset)] == [
            (2, "running"),
            (1, "lost"),
        ]


def test_a_lease_that_ran_out_and_that_nobody_took_is_renewed(bench: Bench) -> None:
    run = bench.start()
    bench.wait(hours=3)
    with bench.begin() as c:
        leases.renew(c, run=run)
    with pytest.raises(Busy):
        bench.start(pid=2)


def test_a_run_ends_once_and_in_one_way(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        runs.note_stage(c, run=run, stage="publish")
        runs.finish(c, run=run, state="completed", counts={"done": 3}, error=None)
        runs.finish(c, run=run, state="completed")
        with pytest.raises(LostLease):
            runs.finish(c, run=run, state="failed")
        with pytest.raises(LostLease):
            runs.note_stage(c, run=run, stage="again")
        leases.release(c, run=run)
        [record] = runs.last_runs(c, dataset=bench.dataset)
    assert (record.run, record.state, record.stage, record.counts) == (run, "completed", "publish", {"done": 3})


def test_a_run_that_is_let_go_without_a_word_is_failed(bench: Bench) -> None:
    bench.end(bench.start())
    bench.end(bench.start())
    with bench.begin() as c:
        assert [record.state for record in runs.last_runs(c, dataset=bench.dataset)] == ["failed", "failed"]


def test_a_dataset_stays_ready_while_it_reconverts(bench: Bench) -> None:
    run = bench.start()
    counts = Coverage(discovered=3, stores=1, failures=1, pending=1)
    published = {"source_commit": "a" * 40, "index_etag": "e1", "counts": counts, "duration_s": 60.0, "errors": 2}
    with bench.begin() as c:
        datasets.note_published(c, run=run, **published)
    first = bench.now
    bench.end(run)
    bench.wait(hours=1)
    run = bench.start()
    with bench.begin() as c:
        datasets.note_converting(c, run=run)
        found = datasets.find(c, dataset_id=bench.dataset.dataset_id, target="/served")
        datasets.note_published(c, run=run, **published)
    assert found is not None
    assert (found.status, found.converting) == ("ready", True)
    bench.end(run)
    with bench.begin() as c:
        found = datasets.find(c, dataset_id=bench.dataset.dataset_id, target="/served")
    assert found is not None
    assert found.published is not None
    assert (found.converting, found.published.converted_at, found.published.counts) == (False, first, counts)
    run = bench.start()
    with bench.begin() as c:
        datasets.note_failed(c, run=run, errors=1, error="publish conflict")
        found = datasets.find(c, dataset_id=bench.dataset.dataset_id, target="/served")
    assert found is not None
    assert (found.status, found.error, found.published and found.published.index_etag) == (
        "ready",
        "publish conflict",
        "e1",
    )
    assert found.errors == 2, "what is published has as many as before"


@pytest.mark.parametrize("counts", [None, Coverage(discovered=1, stores=0, failures=1, pending=0)])
def test_a_dataset_that_serves_nothing_has_failed_when_its_run_has(bench: Bench, counts: Coverage | None) -> None:
    run = bench.start()
    with bench.begin() as c:
        if counts is not None:
            datasets.note_published(
                c, run=run, source_commit="a" * 40, index_etag="e1", counts=counts, duration_s=0.0, errors=1
            )
        datasets.note_failed(c, run=run, errors=0, error="the source is away")
        found = datasets.by_pk(c, pk=bench.dataset.pk)
    assert found is not None
    assert (found.status, found.error, found.errors) == ("failed", "the source is away", 0)


def together(bench: Bench, *calls: Callable[[], object]) -> list[Future[object]]:
    """Start every call at the same moment, each in its own thread; return when all have ended."""
    barrier = threading.Barrier(len(calls))

    def meet(call: Callable[[], object]) -> object:
        barrier.wait(timeout=90)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [pool.submit(meet, call) for call in calls]


def test_of_two_claimers_one_gets_each_recording(bench: Bench) -> None:
    run = bench.start()
    names = [f"{number:02d}" for number in range(12)]
    bench.apply(run, *(planned(name) for name in names))
    ids = [state.id for state in bench.states().values()]

    def claim_all(worker: str) -> set[int]:
        got = set()
        for recording in ids:
            try:
                with bench.begin() as c:
                    recordings.claim(
                        c,
                        run=run,
                        recording_id=recording,
                        attempt_id=uuid4(),
                        worker=worker,
                        route="memory",
                        projected_bytes=1,
                        permitted_bytes=1,
                    )
            except LostLease:
                continue
            got.add(recording)
        return got

    first, second = (future.result() for future in together(bench, lambda: claim_all("w1"), lambda: claim_all("w2")))
    assert isinstance(first, set)
    assert isinstance(second, set)
    assert first | second == set(ids)
    assert not first & second


def test_of_two_runs_that_start_together_one_is_busy(bench: Bench) -> None:
    began = together(bench, lambda: bench.start(pid=1), lambda: bench.start(pid=2))
    assert sorted(type(future.exception()).__name__ for future in began) == ["Busy", "NoneType"]


def wait_until_blocked(bench: Bench) -> None:
    """Return when one of this database's sessions waits for another's lock."""
    deadline = threading.Event()
    for _ in range(4500):
        with bench.engine.connect() as c:
            if c.scalar(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
            ):
                return
        deadline.wait(0.02)
    raise AssertionError("nothing waited for a lock")


def test_a_claim_under_way_is_seen_by_the_run_that_takes_over(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    recording, attempt = bench.state().id, uuid4()
    with ThreadPoolExecutor(1) as pool:
        with bench.begin() as c:
            claim_in(c, run, recording, attempt)
            taking = pool.submit(bench.start, owner_is_gone=True, pid=2)
            wait_until_blocked(bench)
        taking.result(timeout=90)
    assert bench.state().due == "pending"
    assert bench.history().attempts[0].outcome == "expired"


def test_a_worker_that_ends_while_it_is_taken_over_loses(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    attempt = bench.claim(run)

    def end() -> None:
        with bench.begin() as c:
            recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row())

    with ThreadPoolExecutor(1) as pool:
        with bench.begin() as c:
            leases.acquire(
                c,
                dataset=bench.dataset,
                owner=Owner(host="here", pid=2, lock_path="/2"),
                mode="auto",
                versions=VERSIONS,
                owner_is_gone=lambda _: True,
            )
            ending = pool.submit(end)
            wait_until_blocked(bench)
        with pytest.raises(LostLease):
            ending.result(timeout=90)
    assert (bench.state().due, bench.state().served) == ("pending", None)


def claim_in(c: object, run: Run, recording: int, attempt: UUID) -> None:
    recordings.claim(
        c,  # type: ignore[arg-type]  # the bench's connection
        run=run,
        recording_id=recording,
        attempt_id=attempt,
        worker="w1",
        route="memory",
        projected_bytes=1,
        permitted_bytes=1,
    )
