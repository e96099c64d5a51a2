"""A trigger is checked before anything begins, and of one dataset at most one request waits."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, text
from state_bench import Bench

from contract.errors import Refused
from db import datasets, requests
from flows.asking import Triggered, ask_for_conversion


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
