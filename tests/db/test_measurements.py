"""What attempts measured, read back from Postgres: for the next plan, for a run's callback, for people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from state_bench import VERSIONS, Bench, path_of, planned, store_row

from contract.codes import PendingReason
from db import recordings
from db.measurements import kinds_measured, measured_attempts, recent_ratios
from db.recordings import Measured
from db.runs import Run, Versions, find_run
from tasks.plan.learning import ENOUGH_ATTEMPTS, learn

KIND = ("edf", "memory")
MB = 10**6


@pytest.fixture
def bench(engine: Engine) -> Bench:
    return Bench(engine)


def converted(
    bench: Bench,
    run: Run,
    name: str,
    *,
    floor: int,
    measured: int | None,
    projected: int = 100 * MB,
    took_s: int = 10,
    **more: Any,
) -> None:
    attempt = bench.claim(run, name, floor_bytes=floor, projected_bytes=projected, permitted_bytes=projected, **more)
    bench.wait(seconds=took_s)
    with bench.begin() as c:
        report = Measured(measured_bytes=measured, stage_seconds={"child": 7.0, "upload": 3.0})
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row(name), report=report)


def begin(bench: Bench, count: int, **more: Any) -> Run:
    run = bench.start(**more)
    bench.apply(run, *(planned(f"{number:03}") for number in range(count)))
    return run


def ratios(bench: Bench, versions: Versions = VERSIONS, **more: Any) -> tuple[float, ...]:
    with bench.begin() as c:
        return recent_ratios(c, kinds=[KIND, ("fif", "streamed")], versions=versions, **more).get(KIND, ())


def test_fifty_attempts_correct_a_formula_that_promises_twice_too_much(bench: Bench) -> None:
    count = ENOUGH_ATTEMPTS + 2
    run = begin(bench, count)
    for number in range(count):
        converted(bench, run, f"{number:03}", floor=100 * MB, measured=(50 + number % 10) * MB, took_s=1)
    found = ratios(bench)
    assert len(found) == count
    learnt = learn(found)
    assert learnt is not None
    assert learnt.attempts == count
    assert learnt.factor == pytest.approx(0.59 * 1.1)
    promised = learnt.bytes_for(100 * MB)
    used = sorted((50 + number % 10) * MB / promised for number in range(count))
    assert used[-1] <= 1.0
    assert used[len(used) // 2] >= 0.5


def test_a_plan_asks_once_and_by_the_index(bench: Bench) -> None:
    run = begin(bench, 1)
    converted(bench, run, "000", floor=100 * MB, measured=50 * MB)
    said: list[str] = []

    def listen(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    with bench.begin() as c:
        c.execute(text("SET LOCAL enable_seqscan = off"))
        event.listen(bench.engine, "before_cursor_execute", listen)
        try:
            kinds = [(name, route) for name in ("edf", "fif", "kit") for route in ("memory", "streamed")]
            assert recent_ratios(c, kinds=kinds, versions=VERSIONS) == {KIND: (0.5,)}
        finally:
            event.remove(bench.engine, "before_cursor_execute", listen)
        assert len(said) == 1
        values = {"formats": ["edf"], "routes": ["memory"], "zarrmill": "0.1.0", "biosigio": "1.2.13", "limit": 200}
        from db.measurements import _RECENT

        explained = c.execute(text(f"EXPLAIN {_RECENT.text}"), values).scalars().all()
    assert any("ix_attempts_measured" in line for line in explained)


def test_the_newest_attempts_count_and_old_ones_are_forgotten(bench: Bench) -> None:
    run = begin(bench, 6)
    for number in range(6):
        converted(bench, run, f"{number:03}", floor=100 * MB, measured=10 * (number + 1) * MB)
    assert ratios(bench, limit=3) == pytest.approx((0.6, 0.5, 0.4))


def test_another_release_or_biosigio_teaches_nothing(bench: Bench) -> None:
    run = begin(bench, 2)
    converted(bench, run, "000", floor=100 * MB, measured=50 * MB)
    bench.end(run)
    for other in (
        Versions(zarrmill="0.2.0", options="o1", engine="3", biosigio="1.2.13"),
        Versions(zarrmill="0.1.0", options="o1", engine="3", biosigio="1.3.0"),
    ):
        assert ratios(bench, other) == ()
        later = bench.start(versions=other)
        bench.apply(later, planned("000", source=other.zarrmill + other.biosigio), planned("001"))
        attempt = bench.claim(later, "000", floor_bytes=100 * MB)
        with bench.begin() as c:
            row = store_row("000", source=other.zarrmill + other.biosigio)
            recordings.done(
                c, attempt_id=attempt, run_number=later.number, store=row, report=Measured(measured_bytes=80 * MB)
            )
        bench.end(later)
        assert ratios(bench, other) == pytest.approx((0.8,))
    assert ratios(bench) == pytest.approx((0.5,))


def test_what_ran_out_of_memory_counts_as_needing_more_and_other_ends_do_not_count(bench: Bench) -> None:
    run = begin(bench, 4)
    converted(bench, run, "000", floor=100 * MB, measured=50 * MB)
    converted(bench, run, "003", floor=0, measured=50 * MB)
    for name, reason in (("001", PendingReason.MEMORY_BUDGET), ("002", PendingReason.INFRA_FAILURE)):
        attempt = bench.claim(run, name, floor_bytes=100 * MB, permitted_bytes=60 * MB, projected_bytes=60 * MB)
        with bench.begin() as c:
            recordings.postpone(
                c,
                attempt_id=attempt,
                run_number=run.number,
                reason=reason,
                error="it died",
                counted=False,
                report=Measured(measured_bytes=55 * MB),
            )
        bench.wait(seconds=1)
    assert ratios(bench) == pytest.approx((0.75, 0.5))


def test_kinds_tell_count_quantiles_and_the_worst_recording_of_all_one_dataset_or_one_run(bench: Bench) -> None:
    run = begin(bench, 4)
    for number, measured in enumerate((40, 60, 50, None)):
        converted(bench, run, f"{number:03}", floor=80 * MB, measured=None if measured is None else measured * MB)
    bench.end(run)
    later = bench.start()
    bench.apply(later, planned("000", source="s2"))
    attempt = bench.claim(later, "000", projected_bytes=100 * MB, permitted_bytes=100 * MB)
    with bench.begin() as c:
        row = store_row("000", source="s2")
        recordings.done(
            c, attempt_id=attempt, run_number=later.number, store=row, report=Measured(measured_bytes=110 * MB)
        )
        (first,) = kinds_measured(c, target="/served", run=run)
        assert (first.format, first.route, first.attempts) == ("edf", "memory", 3)
        assert (first.median_ratio, first.worst_ratio) == (0.5, 0.6)
        assert 0.59 < first.p99_ratio <= 0.6
        assert first.worst_path == path_of("001")
        assert (first.worst_projected_bytes, first.worst_measured_bytes) == (100 * MB, 60 * MB)
        assert first.formula_median_ratio == pytest.approx(0.625)
        (both,) = kinds_measured(c, target="/served", dataset=bench.dataset)
        assert (both.attempts, both.worst_ratio, both.worst_path) == (4, 1.1, path_of("000"))
        assert kinds_measured(c, target="/served") == (both,)
        assert kinds_measured(c, target="/elsewhere") == ()
        assert find_run(c, dataset=bench.dataset, number=later.number) == later
        assert find_run(c, dataset=bench.dataset, number=99) is None


def test_attempts_tell_when_their_memory_was_held(bench: Bench) -> None:
    run = begin(bench, 2)
    began = bench.now
    converted(bench, run, "000", floor=80 * MB, measured=40 * MB, worker="w7")
    converted(bench, run, "001", floor=80 * MB, measured=50 * MB)
    with bench.begin() as c:
        first, second = measured_attempts(c, target="/served", run=run)
        assert measured_attempts(c, target="/served", dataset=bench.dataset, limit=1) == (second,)
    assert (first.path, first.worker, first.run_number, first.measured_bytes) == (
        path_of("000"),
        f"w7/{bench.dataset.pk}",
        1,
        40 * MB,
    )
    assert first.started_at == began
    assert first.held_until == began + timedelta(seconds=7), "what was uploaded held no memory"
    assert second.started_at == began + timedelta(seconds=10)
