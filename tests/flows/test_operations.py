"""What operators do: shown or done, each with its row in the history; withdrawal of what really stands at a target."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from press import Press
from s3_server import S3Place
from small_dataset import write_recording, write_root
from sqlalchemy import Engine, text
from state_bench import path_of

from cli.outlook import outlook_lines
from contract.codes import FailureCode, PendingReason
from contract.errors import Busy, Refused
from db import datasets, operators, pauses, policies, recordings, requests
from db.operators import Action
from db.requeue import Chosen
from db.standings import Outlook
from flows import operations, trigger
from flows.operations import Operator
from flows.reconvert import Recorded, reconvert
from flows.registration import register_source
from flows.request import ProgressEvent, ReconvertRequest, Started, StopSignal, exit_code
from flows.standing import check_standing
from flows.survey import current_versions
from flows.withdraw import withdraw
from infra.settings import Settings
from tasks.catalog import publish_catalog

ANA = Operator(name="ana", why="asked by the owners")


@pytest.fixture
def settings(home: Path, database_url: str) -> Settings:
    return Settings(home=home, database_url=database_url)


@pytest.fixture
def press(engine: Engine, tmp_path: Path) -> Press:
    return Press(engine, tmp_path)


def last(engine: Engine) -> Action:
    with engine.connect() as c:
        return operators.last_actions(c, limit=1)[0]


def dataset_of(press: Press) -> datasets.Dataset:
    with press.begin() as c:
        found = datasets.find(c, dataset_id="xx000001", target=press.target.url)
    assert found is not None
    return found


def troubled(press: Press) -> None:
    """A store, a verdict, and a recording that waits for its next attempt; the run is over."""
    run = press.plan("01", "02", "03")
    press.convert("01")
    press.fail("02", FailureCode.CORRUPT_OR_TRUNCATED)
    press.postpone("03")
    press.publish()
    with press.begin() as c:
        trigger.settle_run(c, run=run, rebuilt=requests.DEFAULT_REBUILD_ON, stopped=False)
    press.end(run)
    press.run = None


CHOICES = {
    "everything": (Chosen(), {"02", "03"}),
    "a code": (Chosen(codes=frozenset({"corrupt_or_truncated"})), {"02"}),
    "a reason": (Chosen(reasons=frozenset({"infra_failure"})), {"03"}),
    "a code and a reason": (
        Chosen(codes=frozenset({"corrupt_or_truncated"}), reasons=frozenset({"infra_failure"})),
        {"02", "03"},
    ),
    "another code": (Chosen(codes=frozenset({"empty_recording"})), set()),
    "datasets in a round": (Chosen(states=frozenset({"round"})), {"02", "03"}),
    "datasets that are given up": (Chosen(states=frozenset({"given_up"})), set()),
    "another dataset": (Chosen(datasets=frozenset({-1})), set()),
}


@pytest.mark.parametrize(("chosen", "names"), CHOICES.values(), ids=CHOICES)
def test_what_is_requeued_is_due_now_and_asked_for(press: Press, chosen: Chosen, names: set[str]) -> None:
    troubled(press)
    before = press.states()
    shown = operations.requeue_recordings(press.engine, chosen, ANA, execute=False)
    assert press.states() == before
    assert (last(press.engine).executed, last(press.engine).counts["recordings"]) == (False, len(names))
    done = operations.requeue_recordings(press.engine, chosen, ANA, execute=True)
    assert done == shown
    assert sum(one.recordings for one in done) == len(names)
    moved = {name for name in ("01", "02", "03") if press.state(name) != before[path_of(name)]}
    assert moved == names
    for name in names:
        state = press.state(name)
        assert (state.due, state.why, state.reason, state.attempts) == ("pending", "requested", "not_attempted", 0)
        assert (state.next_attempt_at, state.verdict) == (None, None)
    with press.begin() as c:
        asked = requests.listed(c)
        policy = policies.find(c, dataset=press.dataset)
    assert [(one.asked_by, one.why, one.detail) for one in asked] == ([("ana", "requested", ANA.why)] if names else [])
    assert policy.state == ("clean" if names else "round")
    action = last(press.engine)
    assert (action.verb, action.executed, action.acted_by, action.why) == ("requeue", True, "ana", ANA.why)


def test_a_dataset_that_backs_off_is_requeued_though_nothing_of_it_is_due(press: Press) -> None:
    run = press.plan("01")
    press.convert("01")
    press.end(run)
    with press.begin() as c:
        policies.trouble(c, dataset_pk=press.dataset.pk)
    (one,) = operations.requeue_recordings(press.engine, Chosen(), ANA, execute=True)
    assert (one.recordings, one.state) == (0, "backoff")


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (Chosen(codes=frozenset({"tired"})), "--code knows not_continuous"),
        (Chosen(reasons=frozenset({"tired"})), "--reason knows infra_failure"),
        (Chosen(states=frozenset({"tired"})), "--status knows clean"),
    ],
)
def test_a_word_that_is_none_is_refused(engine: Engine, chosen: Chosen, told: str) -> None:
    with pytest.raises(Refused, match=told):
        operations.requeue_recordings(engine, chosen, ANA, execute=True)


def test_what_a_comparison_of_objects_found_damaged_is_due_soon(press: Press) -> None:
    run = press.plan("01")
    with press.begin() as c:
        trigger.settle_run(c, run=replace(run, mode="reconcile"), rebuilt=(), stopped=False)
        policy = policies.find(c, dataset=press.dataset)
    assert (policy.state, policy.engine) == ("soon", None)
    lines = list(outlook_lines(Outlook(policy=policy, paused=True, request=None)))
    assert [line.split()[0] for line in lines] == ["paused", "policy"]


@pytest.mark.parametrize(("failures", "told"), [(1, "its last run published"), (3, "its last 3 runs published")])
def test_runs_that_published_nothing_are_counted_in_words(press: Press, failures: int, told: str) -> None:
    with press.begin() as c:
        policy = policies.find(c, dataset=press.dataset)
    failed = replace(policy, state="backoff", infra_failures=failures)
    [line] = outlook_lines(Outlook(policy=failed, paused=False, request=None))
    assert told in line


def test_a_pause_is_shown_set_and_ended(press: Press) -> None:
    for dataset in (press.dataset, None):
        for paused in (True, False):
            assert operations.set_pause(press.engine, dataset, ANA, paused=paused, execute=False)
            assert operations.set_pause(press.engine, dataset, ANA, paused=paused, execute=True)
            assert not operations.set_pause(press.engine, dataset, ANA, paused=paused, execute=True)
            with press.begin() as c:
                assert len(pauses.current(c)) == paused
    assert (last(press.engine).verb, last(press.engine).counts) == ("resume", {"changed": 0})


def test_the_engine_is_previewed_and_approved_as_a_whole(press: Press) -> None:
    troubled(press)  # made with engine 3 and options o1
    seen = operations.preview_engine(press.engine)
    assert (seen.stale["options"], seen.held, seen.approved) == (1, False, 0)
    assert (seen.cost.datasets, seen.cost.recordings) == (1, 3)
    assert "options" in seen.unapproved
    shown = operations.approve_engine(press.engine, ANA, execute=False)
    assert shown.approved == 0
    assert operations.approve_engine(press.engine, ANA, execute=True).approved == 2
    assert operations.approve_engine(press.engine, ANA, execute=True).approved == 0
    assert "options" not in operations.preview_engine(press.engine).unapproved
    newer = replace(current_versions(), options="other")
    assert "options" in operations.preview_engine(press.engine, versions=newer).unapproved
    with pytest.raises(Refused, match="--on knows options"):
        operations.approve_engine(press.engine, ANA, columns=["source"], execute=True)


def test_the_catalog_tells_what_it_gains_and_loses(settings: Settings, press: Press) -> None:
    troubled(press)
    target = press.target.url
    shown = operations.publish_catalog_now(settings, press.engine, ANA, target=target, execute=False)
    assert (shown.added, shown.count, shown.changed) == (("xx000001",), 1, False)
    assert operations.publish_catalog_now(settings, press.engine, ANA, target=target, execute=True).changed
    operations.set_standing(press.engine, press.dataset, ANA, active=False)
    done = operations.publish_catalog_now(settings, press.engine, ANA, target=target, execute=True)
    assert (done.removed, done.count, done.changed) == (("xx000001",), 0, True)


def test_what_anybody_can_read_cannot_be_called_private(press: Press) -> None:
    with press.begin() as c:
        datasets.set_anonymous(c, dataset=press.dataset, anonymous=True)
    with pytest.raises(Refused, match="zarrmill withdraw xx000001"):
        operations.set_standing(press.engine, dataset_of(press), ANA, visibility="private")
    with pytest.raises(Refused, match="public or private"):
        operations.set_standing(press.engine, dataset_of(press), ANA, visibility="secret")
    with press.begin() as c:
        datasets.set_anonymous(c, dataset=press.dataset, anonymous=False)
    private = operations.set_standing(press.engine, dataset_of(press), ANA, visibility="private")
    assert private.visibility == "private"
    check_standing(private, is_open=False)
    with pytest.raises(Refused, match="--visibility public"):
        check_standing(private, is_open=True)
    assert last(press.engine).parameters["visibility"] == "private"


def test_what_is_published_in_a_folder_cannot_be_called_private(settings: Settings, press: Press) -> None:
    troubled(press)
    assert dataset_of(press).published is not None
    with pytest.raises(Refused, match="zarrmill withdraw xx000001"):
        operations.set_standing(press.engine, dataset_of(press), ANA, visibility="private")
    assert dataset_of(press).visibility == "public"
    assert operations.set_standing(press.engine, dataset_of(press), ANA, visibility="public").visibility == "public"
    withdraw(settings, press.engine, dataset_of(press), ANA, execute=True)
    assert operations.set_standing(press.engine, dataset_of(press), ANA, visibility="private").visibility == "private"


def test_a_withdrawn_dataset_is_gone_and_its_history_stays(settings: Settings, press: Press) -> None:
    troubled(press)
    publish_catalog(press.engine, press.target)
    (press.home / "left.txt").write_text("no part of a dataset")
    requests_before = trigger.trigger(press.engine, press.dataset, asked_by="ana").request
    shown = withdraw(settings, press.engine, dataset_of(press), ANA, execute=False)
    assert (shown.stores, shown.strays, shown.executed) == (1, ("xx000001/zarr/left.txt",), False)
    assert (press.home / "index.json").exists()
    held = press.start()
    with pytest.raises(Busy):
        withdraw(settings, press.engine, dataset_of(press), ANA, execute=True)
    press.end(held)
    withdraw(settings, press.engine, dataset_of(press), ANA, execute=True)
    assert [path.name for path in press.home.rglob("*") if path.is_file()] == ["left.txt"]
    assert json.loads((press.target.root / "zarr-catalog.json").read_bytes())["datasets"] == []
    gone = dataset_of(press)
    assert (gone.active, gone.status, gone.published, gone.withdrawn_at is None) == (False, None, None, False)
    assert {state.published_as for state in press.states().values()} == {"pending", "failures"}
    assert press.history("01").attempts != ()
    with press.begin() as c:
        refused = requests.find(c, pk=requests_before.pk)
        told = c.execute(
            text("SELECT k.status, u.state FROM callbacks k JOIN runs u ON u.id = k.run_id WHERE u.mode = 'withdraw'")
        ).all()
    assert refused is not None
    assert (refused.state, refused.error) == ("refused", "The dataset was withdrawn.")
    assert [tuple(row) for row in told] == [("ready", "completed")]
    withdraw(settings, press.engine, gone, ANA, execute=True)


def test_a_withdrawn_dataset_is_not_converted_until_it_takes_part_again(settings: Settings, press: Press) -> None:
    troubled(press)
    withdraw(settings, press.engine, dataset_of(press), ANA, execute=True)
    with pytest.raises(Refused, match="--active yes"):
        trigger.trigger(press.engine, dataset_of(press), asked_by="ana")
    source = press.folder / "source"
    source.mkdir()
    (source / "dataset_description.json").write_text('{"Name": "one", "BIDSVersion": "1.10.0"}')
    asked = ReconvertRequest(source=str(source), target=press.target.url, dataset_id="xx000001")
    with pytest.raises(Refused, match="was withdrawn"):
        reconvert(settings, asked, lambda _event: None, StopSignal())
    back = operations.set_standing(press.engine, dataset_of(press), ANA, active=True)
    assert (back.active, back.withdrawn_at) == (True, None)
    with press.begin() as c:
        policy = policies.find(c, dataset=press.dataset)
    assert (policy.engine, policy.done_version) == (None, None), "it is asked for as a new one is"
    run = press.start()
    with press.begin() as c:
        assert len(recordings.due(c, dataset=press.dataset)) == 2
    press.end(run)
    assert press.state("01").reason is PendingReason.NOT_ATTEMPTED


def test_a_private_dataset_is_not_published_where_anybody_can_read(
    home: Path, database_url: str, engine: Engine, tmp_path: Path, s3: S3Place
) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    settings = s3.settings(home=home, database_url=database_url)
    policy = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{s3.name}/*"}
    s3.plain.put_bucket_policy(Bucket=s3.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [policy]}))
    asked = ReconvertRequest(source=str(source), target=f"s3://{s3.name}/served", dataset_id="xx000001")
    register_source(settings, engine, asked, ANA, visibility="private")
    for request in (asked, replace(asked, public=True)):
        with pytest.raises(Refused, match="is private, and anybody can read"):
            reconvert(settings, request, lambda _event: None, StopSignal())
    assert s3.plain.list_objects_v2(Bucket=s3.name).get("Contents", []) == []
    with engine.connect() as c:
        assert c.scalar(text("SELECT count(*) FROM runs")) == 0


def begun(press: Press) -> None:
    """A run that took up a request, and converted one recording of two."""
    with press.begin() as c:
        requests.ask(c, dataset_pk=press.dataset.pk, mode="full", asked_by="ana")
    run = press.plan("01", "02")
    with press.begin() as c:
        c.execute(text("UPDATE runs SET mode = 'full' WHERE id = :run"), {"run": run.id})
        assert trigger.claim_for_run(c, run=replace(run, mode="full"), commits=()) is not None
    press.convert("01")


ENDS = {
    "stopped": (lambda c, run: trigger.settle_run(c, run=run, rebuilt=(), stopped=True, left="stopped"), True),
    "stopped in trouble": (
        lambda c, run: trigger.end_without_publishing(c, run=run, error="gone", counts=True, stopped=True),
        True,
    ),
    "unserved": (lambda c, run: trigger.settle_run(c, run=run, rebuilt=(), stopped=False, left="unserved"), False),
}


@pytest.mark.parametrize(("end", "at_once"), ENDS.values(), ids=ENDS)
def test_a_run_that_ended_before_its_work_leaves_its_request_and_no_policy(
    press: Press, end: Any, at_once: bool
) -> None:
    begun(press)
    assert press.run is not None
    press.publish()
    with press.begin() as c:
        before = policies.find(c, dataset=press.dataset)
        end(c, press.run)
    press.end(press.run)
    press.run = None
    with press.begin() as c:
        assert policies.find(c, dataset=press.dataset) == before
        (standing,) = requests.listed(c)
        assert (standing.state, standing.mode, standing.lost_runs) == ("waiting", "full", 0)
        assert bool(requests.next_due(c)) == at_once


def test_only_a_cancelled_run_is_not_gone_on_with() -> None:
    asked, cancelled = StopSignal(), StopSignal()
    assert not asked.goes_on_later
    asked.request("SIGTERM")
    cancelled.cancel()
    assert (asked.goes_on_later, asked.kind) == (True, "SIGTERM")
    assert (cancelled.goes_on_later, cancelled.kind, cancelled.state) == (False, "SIGTERM", "finish")


def test_a_run_that_is_stopped_before_its_work_lets_its_request_wait(
    home: Path, database_url: str, engine: Engine, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_root(source)
    write_recording(source, "01")
    # no scheduler is asked for anything before the run converts
    settings = Settings(home=home, database_url=database_url)
    asked = ReconvertRequest(source=str(source), target=str(tmp_path / "served"), dataset_id="xx000001")
    register_source(settings, engine, asked, ANA)
    with engine.begin() as c:
        (dataset,) = datasets.list_datasets(c)
        pk = requests.ask(c, dataset_pk=dataset.pk, mode="auto", asked_by="ana").request.pk
    stop = StopSignal()

    def tell(event: ProgressEvent) -> None:
        if isinstance(event, Started):
            stop.request("SIGTERM")

    summary = reconvert(settings, asked, tell, stop, recorded=Recorded(api_url=None))
    assert (summary.stopped, exit_code(summary)) == ("SIGTERM", 143)
    with engine.connect() as c:
        assert [(one.pk, one.state) for one in requests.listed(c)] == [(pk, "waiting")]
        assert [one.pk for one in requests.next_due(c)] == [pk]
        assert policies.find(c, dataset=dataset).state == "clean"
