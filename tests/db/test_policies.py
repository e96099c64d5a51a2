"""How a dataset's policy moves at the end of a run; alarms, approvals and the history of operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from state_bench import VERSIONS, Bench, planned

from contract.codes import FailureCode, PendingReason
from db import alarms, approvals, operators, policies, recordings
from db.policies import Policy
from db.runs import Run

HOUR = timedelta(hours=1)
ROUNDS = [HOUR, 6 * HOUR, 24 * HOUR, 168 * HOUR, 168 * HOUR]
BACKOFF = [HOUR / 2, HOUR, 2 * HOUR, 4 * HOUR]


def settle(bench: Bench, run: Run | None, **more: object) -> Policy:
    with bench.begin() as c:
        return policies.settle(c, dataset_pk=bench.dataset.pk, versions=VERSIONS, run=run, **more)  # type: ignore[arg-type]  # tests name what differs


def in_vain(bench: Bench, run: Run, name: str) -> None:
    attempt = bench.claim(run, name)
    with bench.begin() as c:
        recordings.postpone(
            c,
            attempt_id=attempt,
            run_number=run.number,
            reason=PendingReason.INFRA_FAILURE,
            error="no network",
            counted=False,
        )


@pytest.mark.postgres_versions
def test_what_is_tried_in_vain_makes_five_rounds(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    for number, wait in enumerate(ROUNDS, start=1):
        in_vain(bench, run, "01")
        policy = settle(bench, run)
        assert (policy.state, policy.retry_round, policy.next_at) == ("round", number, bench.now + wait)
        bench.end(run)
        bench.now = policy.next_at
        run = bench.start()
    in_vain(bench, run, "01")
    policy = settle(bench, run)
    assert (policy.state, policy.retry_round, policy.next_at) == ("exhausted", 5, None)
    assert settle(bench, None).state == "exhausted", "a look changes nothing"
    with bench.begin() as c:
        assert policies.renew(c, dataset_pk=bench.dataset.pk)
        assert not policies.renew(c, dataset_pk=bench.dataset.pk)


def test_what_was_never_reached_is_due_soon_and_uses_no_round(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"), planned("02"))
    for _ in range(8):
        policy = settle(bench, run)
        assert (policy.state, policy.retry_round, policy.next_at) == ("soon", 0, bench.now + HOUR)
    in_vain(bench, run, "01")
    policy = settle(bench, run)
    assert (policy.state, policy.retry_round, policy.next_at) == ("soon", 1, bench.now + HOUR)
    bench.end(run)
    later = bench.start()
    bench.convert(later, "02")
    policy = settle(bench, later)
    assert (policy.state, policy.retry_round) == ("round", 1), "this run did not try the other one"
    assert policy.next_at == bench.now + HOUR
    bench.convert(later, "01")
    policy = settle(bench, later)
    assert (policy.state, policy.retry_round, policy.next_at) == ("clean", 0, None)


def test_a_recording_that_fits_no_worker_uses_a_round(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    with bench.begin() as c:
        recordings.defer(c, run=run, recording_ids=[bench.state("01").id], error="it needs 90 GiB")
    assert settle(bench, run).retry_round == 1


def test_verdicts_alone_are_terminal(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"), planned("02"))
    bench.convert(run, "02")
    attempt = bench.claim(run, "01")
    with bench.begin() as c:
        recordings.fail(c, attempt_id=attempt, run_number=run.number, code=FailureCode.EMPTY_RECORDING, detail=None)
    policy = settle(bench, run, version="git:a")
    assert (policy.state, policy.next_at, policy.done_version) == ("terminal", None, "git:a")
    assert settle(bench, None).done_version == "git:a", "a look that names no version keeps it"


def test_runs_that_publish_nothing_back_off_and_are_given_up(bench: Bench) -> None:
    for number, wait in enumerate(BACKOFF, start=1):
        with bench.begin() as c:
            policy = policies.trouble(c, dataset_pk=bench.dataset.pk)
        assert (policy.state, policy.infra_failures, policy.next_at) == ("backoff", number, bench.now + wait)
    for _ in range(2):
        with bench.begin() as c:
            policy = policies.trouble(c, dataset_pk=bench.dataset.pk)
        assert (policy.state, policy.infra_failures, policy.next_at) == ("given_up", 5, None)
    assert settle(bench, None).infra_failures == 0


def test_a_stamp_moves_only_where_a_run_rebuilt(bench: Bench) -> None:
    assert settle(bench, None).biosigio == VERSIONS.biosigio
    newer = replace(VERSIONS, engine="4", biosigio="2.0")
    with bench.begin() as c:
        policy = policies.settle(c, dataset_pk=bench.dataset.pk, versions=newer)
    assert (policy.engine, policy.biosigio) == ("4", VERSIONS.biosigio)


def test_a_source_that_cannot_be_looked_at_is_noted_with_its_beginning(bench: Bench) -> None:
    pk = bench.dataset.pk
    with bench.begin() as c:
        policies.note_seen(c, dataset_pk=pk, version="git:a")
        began = bench.now
    for _ in range(2):
        bench.wait(hours=1)
        with bench.begin() as c:
            policies.note_unreadable(c, dataset_pk=pk, error="it is away")
            policy = policies.find(c, dataset=bench.dataset)
    assert (policy.unreadable, policy.unreadable_since) == ("it is away", began + HOUR)
    assert (policy.seen_version, policy.seen_at) == ("git:a", began)
    with bench.begin() as c:
        policies.note_seen(c, dataset_pk=pk, version="git:a")
        assert policies.find(c, dataset=bench.dataset).unreadable is None


def test_stale_is_what_was_stamped_otherwise_and_an_approval_is_for_one_value(bench: Bench) -> None:
    newer = replace(VERSIONS, engine=f"e{uuid4()}", biosigio="2.0")
    pk = bench.dataset.pk
    with bench.begin() as c:
        assert pk not in approvals.stale(c, versions=newer, columns=approvals.STAMPS), "it was never stamped"
    settle(bench, None)
    with bench.begin() as c:
        assert approvals.stale(c, versions=newer, columns=approvals.STAMPS)[pk] == ("engine", "biosigio")
        assert approvals.stale(c, versions=newer, columns=["options", "engine"])[pk] == ("engine",)
        assert pk not in approvals.stale(c, versions=VERSIONS, columns=approvals.STAMPS)
        cost = approvals.preview(c, datasets=[pk])
        assert (cost.datasets, cost.recordings, cost.hours) == (1, 0, 0.0)
        approve = {"versions": newer, "columns": ["engine"], "approved_by": "ana", "why": "checked", "cost": cost}
        assert approvals.approve(c, **approve) == 1  # type: ignore[arg-type]  # a table of arguments
        assert approvals.approve(c, **approve) == 0  # type: ignore[arg-type]  # a table of arguments
        assert "engine" in [one.rebuild_column for one in approvals.approved(c, versions=newer)]
        assert "engine" not in [
            one.rebuild_column for one in approvals.approved(c, versions=replace(newer, engine="other"))
        ]


def test_a_preview_counts_bytes_memory_and_hours(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01", size_bytes=1000), planned("02", size_bytes=3000))
    attempt = bench.claim(run, "01", permitted_bytes=77)
    from state_bench import store_row

    with bench.begin() as c:
        report = recordings.Measured(stage_seconds={"child": 1800.0}, measured_bytes=55)
        recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row(), report=report)
        cost = approvals.preview(c, datasets=[bench.dataset.pk])
    assert (cost.recordings, cost.size_bytes, cost.largest_bytes) == (2, 4000, 55)
    assert cost.hours == pytest.approx(2.0), "half an hour, and three times as much at the same pace"


def test_an_alarm_is_told_once_at_each_end(bench: Bench) -> None:
    kind = f"kind-{uuid4()}"

    def untold() -> list[tuple[str, str]]:
        with bench.begin() as c:
            return [(one.alarm.subject, one.which) for one in alarms.untold(c) if one.alarm.kind == kind]

    with bench.begin() as c:
        assert alarms.begin(c, kind=kind, subject="xx000001", detail="first")
        assert not alarms.begin(c, kind=kind, subject="xx000001", detail="second")
        assert alarms.begin(c, kind=kind, subject="xx000002")
    assert untold() == [("xx000001", "began"), ("xx000002", "began")]
    bench.wait(minutes=5)
    with bench.begin() as c:
        assert alarms.end_all_but(c, kind=kind, subjects=["xx000002"]) == 1
        assert not alarms.end(c, kind=kind, subject="xx000001")
        (one, other) = [each.alarm for each in alarms.untold(c) if each.alarm.kind == kind]
        assert one.detail == "second"
        assert alarms.told(c, pk=one.pk, which="began")
        assert not alarms.told(c, pk=one.pk, which="began")
        assert alarms.told(c, pk=other.pk, which="began")
    assert untold() == [("xx000001", "ended")]
    with bench.begin() as c:
        assert alarms.told(c, pk=one.pk, which="ended")
        assert [each.subject for each in alarms.open_alarms(c) if each.kind == kind] == ["xx000002"]
        assert alarms.end(c, kind=kind, subject="xx000002")
        assert alarms.begin(c, kind=kind, subject="xx000002"), "a new one, after the old one was over"


def test_the_history_tells_what_was_shown_and_what_was_done(bench: Bench) -> None:
    subject = f"xx{uuid4().int % 1_000_000:06d}"
    with bench.begin() as c:
        operators.note(c, acted_by="ana", verb="requeue", executed=False, subject=subject, parameters={"code": "x"})
        operators.note(
            c, acted_by="ana", verb="requeue", executed=True, subject=subject, why="asked", counts={"requeued": 3}
        )
        (done, shown, *_) = operators.last_actions(c, subject=subject)
    assert (done.executed, done.why, done.counts) == (True, "asked", {"requeued": 3})
    assert (shown.executed, shown.parameters) == (False, {"code": "x"})
