"""Alarms begin and end with what is wrong, are told once each way, and the weekly report comes in any case."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hook_receiver import HookReceiver, hook_receiver
from mail_server import MailServer, mail_server
from product import ROOT
from sqlalchemy import Engine, text
from state_bench import Bench, planned

from contract.errors import ZarrmillError
from db import alarms, outbox, pauses, requests, watch
from flows import watch as watching
from flows.watch import KINDS, look_around, tell_of_database, tell_untold
from flows.weekly import make_report, report, report_text
from infra.settings import Settings, load_settings


@pytest.fixture
def bench(engine: Engine, home: Path, tmp_path: Path) -> Bench:
    made = Bench(engine, target=str(tmp_path / "served"))
    made.now = datetime.now(UTC)  # the watch reads the server's own clock
    (tmp_path / "served").mkdir()
    return made


@pytest.fixture
def receiver() -> Iterator[HookReceiver]:
    with hook_receiver() as made:
        yield made


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as made:
        yield made


def told(receiver: HookReceiver | None = None, **more: Any) -> Settings:
    given = {} if receiver is None else {"alarm_url": receiver.url, "alarm_token": "alarm-t0ken"}
    return load_settings(**given, **more)


def mailed(mail: MailServer, **more: Any) -> Settings:
    address = {"mail_host": "127.0.0.1", "mail_port": mail.port, "mail_security": "none"}
    return load_settings(**address, mail_from="zarrmill@example.org", mail_to="a@example.org,b@example.org", **more)


def kinds(bench: Bench) -> list[str]:
    with bench.begin() as c:
        return [one.kind for one in alarms.open_alarms(c)]


def ask(bench: Bench) -> None:
    with bench.begin() as c:
        requests.ask(c, dataset_pk=bench.dataset.pk, mode="auto", asked_by="test")


def long_ago(bench: Bench, hours: float) -> None:
    """Let everything that happened have happened so many hours earlier."""
    with bench.begin() as c:
        for table, columns in {
            "requests": ("asked_at", "started_at", "ended_at"),
            "runs": ("started_at", "ended_at"),
            "callbacks": ("created_at",),
        }.items():
            moved = ", ".join(f"{name} = {name} - make_interval(secs => :s)" for name in columns)
            c.execute(text(f"UPDATE {table} SET {moved}"), {"s": hours * 3600})


def test_silence_is_an_alarm_only_while_work_is_outstanding(bench: Bench) -> None:
    settings = told(alarm_stuck_h=12)
    long_ago(bench, 1000)
    assert look_around(settings, bench.engine) == 0
    ask(bench)
    assert look_around(settings, bench.engine) == 0, "it was only just asked for"
    long_ago(bench, 13)
    assert look_around(settings, bench.engine) == 1
    assert kinds(bench) == ["nothing_moves"]
    with bench.begin() as c:
        pauses.pause(c, dataset=None, paused_by="test")
    assert look_around(settings, bench.engine) == 0, "what is paused is not outstanding"
    with bench.begin() as c:
        pauses.resume(c, dataset=None)
    assert look_around(settings, bench.engine) == 1
    bench.start()
    assert look_around(settings, bench.engine) == 0, "a run has begun"


def test_a_conversion_that_goes_on_has_moved_when_it_began(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.claim(run, "01")
    long_ago(bench, 13)
    assert look_around(told(alarm_stuck_h=12), bench.engine) == 0
    with bench.begin() as c:
        c.execute(text("UPDATE attempts SET started_at = started_at - interval '14 hours'"))
        now = watch.moving(c)
    assert now.still_h is not None
    assert now.still_h > 12.9, "nothing else moved since the run began"


def test_a_run_that_does_not_move_is_named(bench: Bench) -> None:
    bench.start()
    assert look_around(told(), bench.engine) == 0
    long_ago(bench, 20)
    look_around(told(), bench.engine)
    with bench.begin() as c:
        [alarm] = alarms.open_alarms(c)
    assert alarm.kind == "dataset_stuck"
    assert alarm.subject.startswith(bench.dataset.dataset_id)
    assert "run 1 has not moved for 20.0 hours" in (alarm.detail or "")


def test_callbacks_that_are_not_accepted_for_long_are_an_alarm_until_they_are(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="converting", body=b"{}")
    settings = told(alarm_callback_h=3, alarm_stuck_h=1000)
    assert look_around(settings, bench.engine) == 0
    long_ago(bench, 4)
    look_around(settings, bench.engine)
    assert kinds(bench) == ["callbacks_undelivered"]
    with bench.begin() as c:
        outbox.close_told(c, endpoints=[])
    assert look_around(settings, bench.engine) == 0


def test_a_target_that_cannot_be_reached_is_an_alarm_of_its_own(bench: Bench) -> None:
    with bench.begin() as c:
        c.execute(text("UPDATE datasets SET target = 's3://gone/zarr'"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = load_settings(s3_endpoint=address, s3_access_key_id="k", s3_secret_access_key="s", s3_tries=1)
        look_around(settings, bench.engine)
    with bench.begin() as c:
        [alarm] = alarms.open_alarms(c)
    assert (alarm.kind, alarm.subject) == ("storage_unreachable", "s3://gone/zarr")


def test_a_scheduler_that_does_not_answer_matters_while_work_is_outstanding(bench: Bench) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings = load_settings(
            dask_address=f"tcp://127.0.0.1:{taken.getsockname()[1]}", database_url="postgresql://h/d"
        )
        assert look_around(settings, bench.engine) == 0
        ask(bench)
        look_around(settings, bench.engine)
    assert kinds(bench) == ["scheduler_unreachable"]


def test_each_alarm_is_told_once_when_it_begins_and_once_when_it_is_over(bench: Bench, receiver: HookReceiver) -> None:
    settings = told(receiver)
    with bench.begin() as c:
        alarms.begin(c, kind="source_unreadable", subject="on000001 at /served", detail="token=s3cret in it")
    assert tell_untold(settings, bench.engine) == 1
    assert tell_untold(settings, bench.engine) == 0
    with bench.begin() as c:
        alarms.end(c, kind="source_unreadable", subject="on000001 at /served")
    assert tell_untold(settings, bench.engine) == 1
    assert tell_untold(settings, bench.engine) == 0
    first, last = receiver.bodies()
    assert [(one["event"], one["kind"], one["state"]) for one in (first, last)] == [
        ("alarm", "source_unreadable", "began"),
        ("alarm", "source_unreadable", "ended"),
    ]
    assert first["ended_utc"] is None
    assert last["ended_utc"] is not None
    assert "s3cret" not in str(receiver.bodies())
    assert {headers["x-webhook-token"] for headers, _body in receiver.received} == {"alarm-t0ken"}


def test_an_alarm_that_reaches_nobody_is_told_again_and_one_way_is_enough(
    bench: Bench, receiver: HookReceiver, mail: MailServer
) -> None:
    with bench.begin() as c:
        alarms.begin(c, kind="engine_gate", detail="26 datasets")
    receiver.answers = [500]
    assert tell_untold(told(receiver), bench.engine) == 0
    mail.refuse = True
    assert tell_untold(mailed(mail), bench.engine) == 0
    mail.refuse = False
    receiver.answers = [500]
    both = mailed(mail, alarm_url=receiver.url)
    assert tell_untold(both, bench.engine) == 1
    [(receivers, message)] = mail.mails
    assert receivers == ["a@example.org", "b@example.org"]
    assert " ".join(message["Subject"].split()) == f"zarrmill: {KINDS['engine_gate']}"
    assert "26 datasets" in message.get_payload()


def test_a_database_that_is_away_is_told_without_it(receiver: HookReceiver) -> None:
    tell_of_database(told(receiver), over=False)
    tell_of_database(told(receiver), over=True)
    assert [(one["kind"], one["state"]) for one in receiver.bodies()] == [
        ("database_unreachable", "began"),
        ("database_unreachable", "ended"),
    ]


def test_the_report_comes_when_nothing_is_wrong_and_says_so_when_something_is(
    bench: Bench, receiver: HookReceiver, mail: MailServer
) -> None:
    settings = mailed(mail, alarm_url=receiver.url)
    assert report(settings, bench.engine) == "told to 2 of 2: healthy"
    with bench.begin() as c:
        alarms.begin(c, kind="given_up", subject="on000001")
    assert report(settings, bench.engine).endswith("alarm")
    first, second = receiver.bodies()
    assert (first["event"], first["verdict"], first["alarms"]) == ("weekly_report", "healthy", [])
    assert (second["verdict"], second["alarms"][0]["kind"]) == ("alarm", "given_up")
    assert first["datasets"]["registered"] == 1
    assert first["recordings"] == {"discovered": 0, "stores": 0, "failures": 0, "pending": 0}
    assert "no alarm is open" in mail.mails[0][1].get_payload()
    assert "given_up on000001" in mail.mails[1][1].get_payload()


def test_a_report_that_reaches_nobody_is_an_alarm_until_one_does(bench: Bench, receiver: HookReceiver) -> None:
    receiver.answers = [503]
    with pytest.raises(ZarrmillError, match="reached nobody"):
        report(told(receiver), bench.engine)
    assert kinds(bench) == ["report_undelivered"]
    report(told(receiver), bench.engine)
    assert kinds(bench) == []


def test_the_report_for_people_has_every_count(bench: Bench) -> None:
    document = make_report(bench.engine)
    words = report_text(document)
    with bench.begin() as c:
        counted = watch.week(c)
    for subject, counts in counted.items():
        assert subject.replace("_", " ") in words
        assert all(name.replace("_", " ") in words for name in counts)


def test_every_kind_of_alarm_has_its_row_in_the_runbook() -> None:
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
    assert rows == set(KINDS)
    begun = set()
    for path in (ROOT / "flows").rglob("*.py"):
        begun |= set(re.findall(r"alarms\.begin\(c, kind=\"(\w+)\"", path.read_text(encoding="utf-8")))
    assert begun <= set(watching.KINDS)
