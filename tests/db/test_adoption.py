"""What somebody else's documents say becomes state only of recordings that nothing else is known of."""

from __future__ import annotations

from dataclasses import replace

from state_bench import Bench, path_of, planned

from contract.codes import FailureCode, PendingReason
from db.adoption import AdoptedStore, adopt_failures, adopt_pending, adopt_stores
from db.runs import Run

STORE = AdoptedStore(
    path=path_of("01"),
    entry=b'{"path":"x"}',
    biosigio="1.2.3",
    events=b"arrow",
    events_row_count=3,
    source_key="key",
    size_bytes=100,
    duration_s=60.0,
    updated_utc="2026-03-01T00:00:00Z",
    note="taken over",
)


def adopting(bench: Bench, *names: str) -> Run:
    run = bench.start()
    bench.apply(run, *(planned(name) for name in names))
    return run


def test_a_store_is_served_with_nothing_due_and_why_says_where_it_came_from(bench: Bench) -> None:
    run = adopting(bench, "01", "02")
    with bench.begin() as c:
        assert adopt_stores(c, run=run, stores=[STORE, replace(STORE, path=path_of("unknown"))]) == 1
    state = bench.state("01")
    assert (state.due, state.served is not None, state.attempts) == ("none", True, 0)
    assert state.served is not None
    assert (state.served.source, state.served.options, state.served.biosigio) == (
        state.source,
        run.versions.options,
        "1.2.3",
    )
    (attempt,) = bench.history("01").attempts
    assert (attempt.outcome, attempt.notes, attempt.counted) == ("adopted", ("taken over",), False)
    assert (bench.state("02").due, bench.state("02").served) == ("pending", None)


def test_verdicts_and_attempts_are_taken_over(bench: Bench) -> None:
    run = adopting(bench, "01", "02", "03", "04")
    with bench.begin() as c:
        failures = [
            (path_of("01"), FailureCode.NOT_CONTINUOUS, "3 epochs"),
            (path_of("02"), FailureCode.RETRY_EXHAUSTED, None),
        ]
        assert adopt_failures(c, run=run, failures=failures) == 2
        pending = [
            (path_of("03"), PendingReason.MEMORY_BUDGET, 3, "MemoryError"),
            (path_of("04"), PendingReason.INFRA_FAILURE, 9, None),
        ]
        assert adopt_pending(c, run=run, pending=pending) == 2
    states = bench.states()
    assert (states[path_of("01")].due, states[path_of("01")].code) == ("failed", FailureCode.NOT_CONTINUOUS)
    assert (states[path_of("02")].code, states[path_of("02")].attempts) == (FailureCode.RETRY_EXHAUSTED, 5)
    assert (states[path_of("03")].attempts, states[path_of("03")].last_error) == (3, "MemoryError")
    assert (states[path_of("04")].due, states[path_of("04")].attempts) == ("pending", 4), "the fifth is another edge's"
    attempt = bench.claim(run, "04")
    assert attempt


def test_what_is_known_here_is_not_overwritten(bench: Bench) -> None:
    run = adopting(bench, "01", "02")
    bench.convert(run, "01")
    bench.claim(run, "02")
    before = bench.states()
    with bench.begin() as c:
        assert adopt_stores(c, run=run, stores=[STORE, replace(STORE, path=path_of("02"))]) == 0
        assert adopt_failures(c, run=run, failures=[(path_of("01"), FailureCode.NOT_CONTINUOUS, None)]) == 0
        assert adopt_pending(c, run=run, pending=[(path_of("02"), PendingReason.INFRA_FAILURE, 2, None)]) == 0
    assert bench.states() == before
