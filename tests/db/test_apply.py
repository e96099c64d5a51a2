"""What a plan does to what is due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import event, text
from state_bench import Bench, fingerprint, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from contract.errors import LostLease
from db import recordings, stores
from db.recordings import Applied, PlannedAction

CARRY, KEEP, WAIT, FAIL = PlannedAction.CARRY, PlannedAction.KEEP_FAILED, PlannedAction.WAIT, PlannedAction.FAIL


@contextmanager
def statements(bench: Bench) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_rest: object) -> None:
        seen.append(statement)

    event.listen(bench.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(bench.engine, "before_cursor_execute", note)


def versions_of_rows(bench: Bench) -> set[str]:
    with bench.begin() as c:
        rows = c.execute(
            text("SELECT xmin::text, ctid::text FROM recordings WHERE dataset_pk = :pk"), {"pk": bench.dataset.pk}
        )
        return {f"{row.xmin} {row.ctid}" for row in rows}


def test_25_000_recordings_are_planned_in_as_many_statements_as_one(bench: Bench) -> None:
    run = bench.start()
    rows = [planned(f"{number:05d}", inputs=()) for number in range(25_000)]
    with statements(bench) as few:
        assert bench.apply(run, rows[0]) == Applied(added=1, changed=0, vanished=0)
    with statements(bench) as many:
        assert bench.apply(run, *rows) == Applied(added=24_999, changed=0, vanished=0)
    assert len(many) == len(few) < 12
    before = versions_of_rows(bench)
    rows[7] = planned("00007", source="s2", why=WhyDue.SOURCE)
    assert bench.apply(run, *rows[:-1]) == Applied(added=0, changed=1, vanished=1)
    assert len(before - versions_of_rows(bench)) == 2
    with statements(bench) as read, bench.begin() as c:
        found = recordings.snapshot(c, dataset=bench.dataset)
    assert len(read) == 2  # the bench's clock, and the snapshot
    assert [state.path for state in found] == sorted(row.path for row in rows)


@pytest.mark.postgres_versions
def test_a_plan_writes_only_what_differs(bench: Bench) -> None:
    run = bench.start()
    rows = [planned(f"{number:02d}") for number in range(20)]
    assert bench.apply(run, *rows) == Applied(added=20, changed=0, vanished=0)
    before = versions_of_rows(bench)
    assert bench.apply(run, *rows) == Applied(added=0, changed=0, vanished=0)
    assert versions_of_rows(bench) == before


def test_unchanged_inputs_need_not_be_given_again(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    assert bench.apply(run, planned("01", inputs=None)) == Applied(added=0, changed=0, vanished=0)
    with bench.begin() as c:
        state = recordings.snapshot(c, dataset=bench.dataset)[0]
        assert recordings.inputs(c, recording_ids=[state.id]) == {
            state.id: (("participants.tsv", "id"), (path_of("01"), "id-s1"))
        }


def test_a_changed_source_begins_afresh_and_takes_the_store_out_of_the_index(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.apply(run, planned("01", source="s2", why=WhyDue.SOURCE))
    state = bench.state()
    assert (state.due, state.why, state.reason, state.attempts) == (
        "pending",
        WhyDue.SOURCE,
        PendingReason.NOT_ATTEMPTED,
        0,
    )
    assert state.published_as == "pending"
    assert state.served is not None
    bench.apply(run, planned("01", CARRY))
    assert bench.state().published_as == "stores"


def count_once(bench: Bench, times: int) -> None:
    for _ in range(times):
        run = bench.start(owner_is_gone=True)
        attempt = bench.claim(run)
        with bench.begin() as c:
            recordings.postpone(
                c,
                attempt_id=attempt,
                run_number=run.number,
                reason=PendingReason.MEMORY_BUDGET,
                error="MemoryError",
                counted=True,
            )


def test_a_changed_source_resets_attempts_and_a_waiting_recording_keeps_them(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    count_once(bench, 2)
    before = bench.state()
    run = bench.start(owner_is_gone=True)
    for row in (planned("01", WAIT), planned("01", why=WhyDue.RETRY)):
        assert bench.apply(run, row).changed == 0
    assert bench.state() == before
    assert before.attempts == 2
    bench.apply(run, planned("01", source="s2", why=WhyDue.SOURCE))
    after = bench.state()
    assert (after.attempts, after.last_error, after.next_attempt_at) == (0, None, None)


@pytest.mark.parametrize("why", [WhyDue.OPTIONS, WhyDue.ENGINE, WhyDue.BIOSIGIO, WhyDue.REQUESTED])
def test_any_other_reason_keeps_the_store_in_the_index(bench: Bench, why: WhyDue) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.apply(run, planned("01", why=why))
    assert (bench.state().due, bench.state().why, bench.state().published_as) == ("pending", why, "stores")
    bench.apply(run, planned("01", CARRY))
    assert bench.state().due == "none"


def test_a_lost_store_is_forgotten(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.apply(run, planned("01", why=WhyDue.LOST))
    assert (bench.state().served, bench.state().published_as) == (None, "pending")


def test_an_engine_makes_a_verdict_due_again_and_its_attempts_are_forgotten(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    count_once(bench, 2)
    run = bench.start(owner_is_gone=True)
    attempt = bench.claim(run)
    with bench.begin() as c:
        recordings.fail(
            c, attempt_id=attempt, run_number=run.number, code=FailureCode.EMPTY_RECORDING, detail="nothing"
        )
    assert (bench.state().attempts, bench.state().code) == (2, FailureCode.EMPTY_RECORDING)
    assert bench.apply(run, planned("01", KEEP)).changed == 0
    bench.apply(run, planned("01", why=WhyDue.ENGINE))
    state = bench.state()
    assert (state.due, state.code, state.attempts, state.last_error) == ("pending", None, 0, None)


def test_a_planned_verdict_is_written_once_and_says_with_what_it_was_found(bench: Bench) -> None:
    run = bench.start()
    verdict = planned("01", FAIL, code=FailureCode.STORE_PATH_COLLISION, detail="twin")
    assert bench.apply(run, verdict) == Applied(added=1, changed=0, vanished=0)
    assert bench.apply(run, verdict) == Applied(added=0, changed=0, vanished=0)
    found = bench.state().verdict
    assert found is not None
    assert (found.code, found.detail, found.engine, found.options) == (
        FailureCode.STORE_PATH_COLLISION,
        "twin",
        "3",
        "o1",
    )


def test_a_vanished_recording_is_not_counted_and_its_store_is_to_be_removed(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"), planned("02"))
    bench.convert(run, "01")
    bench.convert(run, "02")
    bench.apply(run, planned("02", CARRY))
    assert bench.coverage().discovered == 1
    gone = bench.state("01")
    with bench.begin() as c:
        assert stores.stores_to_remove(c, dataset=bench.dataset) == [gone.zarr]
        assert [zarr for zarr, _ in stores.entries(c, dataset=bench.dataset)] == [bench.state("02").zarr]
        assert len(list(stores.entries(c, dataset=bench.dataset, published=False))) == 2
        assert stores.removed(c, dataset=bench.dataset, stores=[gone.zarr, bench.state("02").zarr, "unknown.zarr"]) == 1
        assert stores.stores_to_remove(c, dataset=bench.dataset) == []
    assert bench.state("01").served is None
    assert len(bench.history("01").attempts) == 1
    assert bench.coverage().stores == 1


def test_a_vanished_recording_that_returns_unchanged_is_carried(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.apply(run)
    assert bench.coverage().discovered == 0
    bench.apply(run, planned("01", CARRY))
    assert bench.coverage().stores == 1


def test_an_address_that_a_due_recording_will_replace_is_not_removed(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    heir = planned("02", zarr=bench.state("01").zarr)
    bench.apply(run, heir)
    with bench.begin() as c:
        assert stores.stores_to_remove(c, dataset=bench.dataset) == []
        assert stores.removed(c, dataset=bench.dataset, stores=[heir.zarr]) == 0
    bench.convert(run, "02")
    with bench.begin() as c:
        assert stores.stores_to_remove(c, dataset=bench.dataset) == []
    assert bench.state("01").served is None


def test_a_store_whose_changed_recording_failed_is_to_be_removed(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.apply(run, planned("01", source="s2", why=WhyDue.SOURCE))
    attempt = bench.claim(run)
    with bench.begin() as c:
        recordings.fail(c, attempt_id=attempt, run_number=run.number, code=FailureCode.NOT_CONTINUOUS, detail=None)
        assert stores.stores_to_remove(c, dataset=bench.dataset) == [bench.state().zarr]
    assert bench.state().published_as == "failures"


def test_a_crash_leaves_an_intent_for_the_next_attempt_to_finish(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    crashed = bench.claim(run)
    with bench.begin() as c:
        stores.open_intent(c, attempt_id=crashed, run_number=run.number)
        assert [intent.held for intent in stores.open_intents(c, dataset=bench.dataset)] == [True]
    run = bench.start(owner_is_gone=True)
    with bench.begin() as c:
        [left] = stores.open_intents(c, dataset=bench.dataset)
    assert (left.held, left.token, left.zarr) == (False, str(crashed), bench.state().zarr)
    attempt = bench.claim(run)
    with bench.begin() as c:
        assert stores.open_intent(c, attempt_id=attempt, run_number=run.number) == [left]
        assert stores.open_intent(c, attempt_id=attempt, run_number=run.number) == [left]
        stores.close_intent(c, attempt_id=crashed)
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row())
        assert stores.open_intents(c, dataset=bench.dataset) == []
    with bench.begin() as c, pytest.raises(LostLease):
        stores.open_intent(c, attempt_id=crashed, run_number=run.number - 1)


def test_a_plan_needs_the_dataset_and_no_conversion_under_way(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.claim(run)
    with pytest.raises(ValueError, match="1 recordings"):
        bench.apply(run, planned("01"))
    taken = bench.start(owner_is_gone=True)
    with pytest.raises(LostLease):
        bench.apply(run, planned("01"))
    bench.wait(seconds=61)
    with pytest.raises(LostLease):
        bench.apply(taken, planned("01"))


def test_a_planned_row_says_why_or_with_which_verdict() -> None:
    with pytest.raises(ValueError, match="says why"):
        planned("01", why=None)
    with pytest.raises(ValueError, match="has a code"):
        planned("01", FAIL)


def test_odd_paths_are_kept_and_sorted_as_python_sorts(bench: Bench) -> None:
    names = ["ö", "z", "Z", "_", "😀", "\uffff", "a b", "a\tb\\N", "%s"]
    run = bench.start()
    bench.apply(run, *(planned(name, zarr=f"{name}.zarr") for name in names))
    with bench.begin() as c:
        found = [state.path for state in recordings.due(c, dataset=bench.dataset)]
    assert found == sorted(path_of(name) for name in names)
    assert bench.state("ö").source == fingerprint("s1")
