"""Old history goes; what explains a recording, what is served and what is owed stays."""

from __future__ import annotations

from sqlalchemy import text
from state_bench import Bench, planned

from contract.codes import PendingReason, WhyDue
from db import recordings, retention, runs
from db.recordings import PlannedAction
from db.runs import Run


def tried(bench: Bench, run: Run, name: str) -> None:
    attempt = bench.claim(run, name)
    with bench.begin() as c:
        recordings.postpone(
            c,
            attempt_id=attempt,
            run_number=run.number,
            reason=PendingReason.INFRA_FAILURE,
            error="OSError: net",
            counted=True,
        )


def one_run(bench: Bench, *, convert: str | None = None, attempt: str | None = None) -> Run:
    run = bench.start()
    states = bench.states()
    wanted = PlannedAction.CONVERT
    rows = [planned(name, wanted, why=WhyDue.REQUESTED if states else WhyDue.NEW) for name in ("01", "02")]
    bench.apply(run, *rows)
    if convert is not None:
        bench.convert(run, convert)
    if attempt is not None:
        tried(bench, run, attempt)
    with bench.begin() as c:
        runs.finish(c, run=run, state="completed", counts={})
    bench.end(run)
    return run


def trim(bench: Bench, days: int = 30) -> retention.Trimmed:
    with bench.begin() as c:
        return retention.trim(c, dataset=bench.dataset, keep_days=days)


def test_attempts_older_than_asked_go_but_for_the_last_and_the_one_that_is_served(bench: Bench) -> None:
    one_run(bench, convert="01", attempt="02")
    bench.wait(days=10)
    one_run(bench, attempt="02")
    bench.wait(days=40)
    one_run(bench, attempt="02")
    assert [len(bench.history(name).attempts) for name in ("01", "02")] == [1, 3]
    assert trim(bench) == retention.Trimmed(attempts=2, callbacks=0, runs=1), "the first run made what is served"
    assert [attempt.run_number for attempt in bench.history("01").attempts] == [1]
    assert [attempt.run_number for attempt in bench.history("02").attempts] == [3]
    assert trim(bench) == retention.Trimmed(0, 0, 0)


def test_what_is_young_or_the_last_stays(bench: Bench) -> None:
    one_run(bench, convert="01", attempt="02")
    bench.wait(days=29)
    assert trim(bench) == retention.Trimmed(0, 0, 0)
    bench.wait(days=1000)
    assert trim(bench) == retention.Trimmed(0, 0, 0), (
        "each attempt is the last of its recording, the run is the last one"
    )


def test_a_callback_goes_only_when_it_was_delivered(bench: Bench) -> None:
    run = one_run(bench)
    with bench.begin() as c:
        for delivered in (False, True):
            c.execute(
                text("""
                    INSERT INTO callbacks (dataset_pk, run_id, status, body, delivered_at)
                    VALUES (:dataset, :run, CASE WHEN :delivered THEN 'converting' ELSE 'ready' END, CASE WHEN :delivered THEN NULL ELSE 'x'::bytea END,
                            CASE WHEN :delivered THEN zarrmill_now() END)
                """),
                {"dataset": bench.dataset.pk, "run": run.id, "delivered": delivered},
            )
    bench.wait(days=31)
    one_run(bench)
    assert trim(bench) == retention.Trimmed(attempts=0, callbacks=1, runs=0), "a run that owes a callback stays"


def test_only_this_dataset_is_trimmed(bench: Bench) -> None:
    one_run(bench, attempt="01")
    bench.wait(days=40)
    one_run(bench, attempt="01")
    with bench.begin() as c:
        other = retention.trim(c, dataset=type(bench)(bench.engine).dataset, keep_days=30)
    assert other == retention.Trimmed(0, 0, 0)
    assert trim(bench).attempts == 1


def test_every_table_and_database_is_measured(bench: Bench) -> None:
    with bench.begin() as c:
        tables = {table.name: table.size_bytes for table in retention.table_sizes(c)}
        assert {"attempts", "recordings", "stores", "runs"} <= tables.keys()
        assert tables["recordings"] > 0
        assert sum(retention.database_sizes(c).values()) > max(tables.values())
