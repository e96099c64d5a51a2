"""A trigger is checked before anything begins, and of one dataset at most one request waits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from git_dataset import repository
from sqlalchemy import Engine, text
from state_bench import Bench

from cli.outlook import outlook_lines
from contract.errors import Refused
from db import datasets, operators, pauses, requests
from db.datasets import Dataset
from db.standings import outlook
from flows.asking import Triggered, ask_as_operator, ask_for_conversion
from flows.operations import Operator
from flows.trigger import trigger


@pytest.fixture
def bench(engine: Engine) -> Bench:
    made = Bench(engine)
    made.now = datetime.now(UTC)  # a trigger reads the server's own clock
    return made


def ask(bench: Bench, **more: object) -> Triggered:
    given = {"dataset_id": bench.dataset.dataset_id, "asked_by": "test"} | more
    return ask_for_conversion(bench.engine, **given)  # type: ignore[arg-type]  # tests name what differs


def test_the_first_trigger_stands_alone_and_the_next_are_coalesced_into_it(bench: Bench) -> None:
    first, second, third = ask(bench), ask(bench, mode="full"), ask(bench)
    assert (first.stands_alone, second.stands_alone, third.stands_alone) == (True, False, False)
    assert {first.request_pk} == {second.request_pk, third.request_pk}
    assert str(first.request_pk) in second.sentence
    with bench.begin() as c:
        [waiting] = requests.listed(c)
    assert (waiting.mode, waiting.coalesced, waiting.asked_by) == ("full", 2, "test")


def test_a_trigger_of_a_dataset_that_runs_is_told_so_and_one_request_follows_the_run(bench: Bench) -> None:
    run = bench.start()
    first, second = ask(bench), ask(bench)
    assert (first.at_work, first.stands_alone, second.stands_alone) == (True, False, False)
    assert f"run {run.number} of" in first.sentence
    assert first.request_pk == second.request_pk
    # a run that is not heard of any more is nobody's excuse
    with bench.begin() as c:
        c.execute(text("UPDATE dataset_leases SET expires_at = zarrmill_now() - interval '5 minutes'"))
    assert not ask(bench).at_work


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"dataset_id": "on1"}, "is no dataset's id"),
        ({"dataset_id": "on000404"}, "is not registered"),
        ({"mode": "quickly"}, "is none of auto, retry-pending"),
        ({"commit": "--upload-pack=x"}, "is no name of a commit"),
        ({"commit": "a b"}, "is no name of a commit"),
        ({"target": "/elsewhere"}, "is not registered at /elsewhere"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    bench: Bench, given: dict[str, object], told: str
) -> None:
    with pytest.raises(Refused, match=re.escape(told)):
        ask(bench, **given)  # type: ignore[arg-type]  # the wrong ones are the point
    with bench.begin() as c:
        assert requests.listed(c) == []


def test_a_commit_is_looked_up_in_the_source_before_anything_is_written(bench: Bench, tmp_path: Path) -> None:
    commit = repository(tmp_path / "git", {"dataset_description.json": b"{}"})
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/dataset_description.json").write_text("{}")
    (tmp_path / "unmounted").mkdir()

    def moved(source: str) -> None:
        with bench.begin() as c:
            c.execute(text("UPDATE datasets SET source = :source"), {"source": source})

    for source, told in (
        (str(tmp_path / "git"), "is no commit of"),
        (str(tmp_path / "plain"), "is not the toplevel of a git repository"),
        ("s3://bucket/prefix", "is a bucket"),
    ):
        moved(source)
        with pytest.raises(Refused, match=told):
            ask(bench, commit="no-such-branch")
        with pytest.raises(Refused, match=told):
            trigger(bench.engine, _dataset(bench), asked_by="http", commit="no-such-branch")
    with bench.begin() as c:
        assert requests.listed(c) == []
    for source in (str(tmp_path / "gone"), str(tmp_path / "unmounted")):
        moved(source)
        assert ask(bench, commit="later").request_pk
    moved(str(tmp_path / "git"))
    assert f"reads commit {commit}, no longer later" in ask(bench, commit=commit).sentence
    assert f"reads commit {commit}" in ask(bench).sentence, "who names none is told what is read"
    assert "no longer" not in ask(bench, commit=commit).sentence


def _dataset(bench: Bench) -> Dataset:
    with bench.begin() as c:
        found = datasets.by_pk(c, pk=bench.dataset.pk)
    assert found is not None
    return found


def test_who_asks_on_the_command_line_is_in_the_history(bench: Bench) -> None:
    operator = Operator(name="ana", why="the author asked")
    ask_as_operator(bench.engine, bench.dataset.dataset_id, operator, mode="full", commit=None, target=None)
    with bench.begin() as c:
        [action] = operators.last_actions(c, subject=bench.dataset.dataset_id)
        [waiting] = requests.listed(c)
    assert (action.verb, action.acted_by, action.why) == ("trigger", "ana", "the author asked")
    assert (waiting.asked_by, waiting.detail) == ("ana", "the author asked")


def test_a_dataset_at_two_targets_must_be_told_apart_and_one_that_is_not_active_waits(bench: Bench) -> None:
    with bench.begin() as c:
        datasets.register(c, dataset_id=bench.dataset.dataset_id, target="/other", source="/source")
    with pytest.raises(Refused, match="/other, /served"):
        ask(bench)
    assert ask(bench, target="/other").target == "/other"
    with bench.begin() as c:
        c.execute(text("UPDATE datasets SET active = false WHERE target = '/served'"))
    with pytest.raises(Refused, match="--active yes"):
        ask(bench, target="/served")


@pytest.mark.parametrize("everything", [True, False])
def test_a_trigger_that_a_pause_holds_names_the_way_out(bench: Bench, everything: bool) -> None:
    assert ask(bench).held is None
    paused = None if everything else bench.dataset
    with bench.begin() as c:
        pauses.pause(c, dataset=paused, paused_by="ana")
    held = ask(bench).held
    assert held is not None
    way_out = "resume --execute" if everything else f"resume {bench.dataset.dataset_id} --execute"
    assert way_out in held
    with bench.begin() as c:
        found = outlook(c, dataset=bench.dataset)
    assert (found.paused, found.everything_paused) == (True, everything)
    assert ("everything" in next(iter(outlook_lines(found)))) == everything
