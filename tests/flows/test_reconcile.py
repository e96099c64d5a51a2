"""Reconciling over real sources and a real target: what is looked at, what is asked for, what is alarming."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from press import Press
from small_dataset import write_root
from sqlalchemy import Engine

from contract.errors import Refused
from db import alarms, datasets, policies, requests
from db.requests import Request
from flows import trigger
from flows.reconcile import reconcile
from flows.survey import current_versions
from infra.settings import Settings

TARGET = "/served"


@pytest.fixture
def settings(home: Path, database_url: str) -> Settings:
    return Settings(home=home, database_url=database_url)


def waiting(engine: Engine) -> list[Request]:
    with engine.connect() as c:
        return requests.listed(c, states=["waiting"])


def open_kinds(engine: Engine) -> set[str]:
    with engine.connect() as c:
        return {one.kind for one in alarms.open_alarms(c)}


def test_a_source_that_is_away_hinders_nobody_and_is_an_alarm_until_it_is_back(
    settings: Settings, engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_root(tmp_path / "here")
    with engine.begin() as c:
        datasets.register(c, dataset_id="xx000001", target=TARGET, source=str(tmp_path / "here"))
        away = datasets.register(c, dataset_id="xx000002", target=TARGET, source=str(tmp_path / "away"))
        off = datasets.register(c, dataset_id="xx000003", target=TARGET, source=str(tmp_path / "here"))
        datasets.set_standing(c, dataset=off, active=False)
    with caplog.at_level(logging.INFO, logger="zarrmill.flows.reconcile"):
        report = reconcile(settings, engine)
    assert (report.seen, report.inactive, report.enqueued, report.unreadable) == (3, 1, 1, 1)
    assert report.examples == ("xx000002",)
    assert [record.message for record in caplog.records] == [report.line()]
    assert "seen=3" in report.line()
    assert "unreadable:xx000002" in report.line()
    (asked,) = waiting(engine)
    assert (asked.dataset_id, asked.why, asked.mode, asked.asked_by) == ("xx000001", "new", "auto", "reconcile")
    assert (asked.version or "").startswith("folder:")
    with engine.connect() as c:
        assert "does not exist" in (policies.find(c, dataset=away).unreadable or "")
    assert open_kinds(engine) == {"source_unreadable"}
    write_root(tmp_path / "away")
    report = reconcile(settings, engine)
    assert (report.enqueued, report.unreadable) == (1, 0), "what waits already is not asked for again"
    assert open_kinds(engine) == set()


def test_an_index_that_is_gone_is_asked_for_and_a_foreign_one_is_an_alarm(
    settings: Settings, engine: Engine, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    write_root(source)
    press = Press(engine, tmp_path)
    with engine.begin() as c:
        datasets.register(c, dataset_id="xx000001", target=press.target.url, source=str(source))
    run = press.plan("01")
    press.convert("01")
    press.publish()
    with engine.begin() as c:
        trigger.settle_run(c, run=run, rebuilt=requests.DEFAULT_REBUILD_ON, stopped=False)
    press.end(run)
    assert reconcile(settings, engine).enqueued == 1, "no run was asked for at this version before"
    with engine.begin() as c:
        (asked,) = requests.listed(c)
        assert asked.why == "version"
        requests.settle(c, dataset_pk=asked.dataset_pk, mode="auto")
        policies.settle(c, dataset_pk=asked.dataset_pk, versions=current_versions(), version=asked.version)
    quiet = reconcile(settings, engine)
    assert (quiet.enqueued, quiet.foreign) == (0, 0)
    index = press.home / "index.json"
    kept = index.read_bytes()
    index.write_bytes(kept.replace(b"sub-01", b"sub-99"))
    assert reconcile(settings, engine).foreign == 1
    assert (waiting(engine), open_kinds(engine)) == ([], {"index_foreign"})
    index.unlink()
    assert reconcile(settings, engine).enqueued == 1
    assert ([one.why for one in waiting(engine)], open_kinds(engine)) == (["index"], set())


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"mode": "tomorrow"}, "mode 'tomorrow' is none of auto"),
        ({"commit": ""}, "is no name of a commit"),
        ({"commit": "a\nb"}, "is no name of a commit"),
        ({"rebuild_on": {"mood"}}, "rebuild_on names 'mood'"),
    ],
)
def test_a_trigger_with_wrong_parameters_is_refused(engine: Engine, parameters: dict[str, object], told: str) -> None:
    with engine.begin() as c:
        dataset = datasets.register(c, dataset_id="xx000001", target=TARGET, source="/s")
    with pytest.raises(Refused, match=told):
        trigger.trigger(engine, dataset, asked_by="api", **parameters)  # type: ignore[arg-type]  # wrong on purpose
    assert waiting(engine) == []


def test_a_request_that_cannot_be_begun_backs_the_dataset_off_until_its_source_changes(engine: Engine) -> None:
    with engine.begin() as c:
        dataset = datasets.register(c, dataset_id="xx000001", target=TARGET, source="/s")
        asked = requests.ask(
            c, dataset_pk=dataset.pk, mode="auto", asked_by="reconcile", why="version", version="git:a"
        ).request
    trigger.refuse_request(engine, asked, error="SOURCE /s has uncommitted changes.")
    with engine.connect() as c:
        policy = policies.find(c, dataset=dataset)
        newest = requests.latest(c, dataset=dataset)
    assert newest is not None
    assert (newest.state, newest.error) == ("refused", "SOURCE /s has uncommitted changes.")
    assert (policy.state, policy.infra_failures, policy.done_version) == ("backoff", 1, "git:a")
