from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hook_receiver import HookReceiver as Receiver
from hook_receiver import hook_receiver
from press import COMMIT, Press, zarr_of
from pydantic import SecretStr
from sqlalchemy import Engine, text
from state_bench import path_of

from contract.documents import dump
from contract.errors import LostLease, PublishConflict, Refused
from contract.index import FailureEntry
from db.measurements import kinds_measured
from infra.settings import Settings, load_settings
from tasks.callback import (
    RunReport,
    calibration_of,
    deliver_due,
    enqueue,
    enqueue_converting,
    failed_body,
    ready_body,
    refused_body,
)

SCHEMA = json.loads((Path(__file__).parents[3] / "contract/schemas/zarr-ready-v1.json").read_text())


@pytest.fixture
def press(engine: Engine, tmp_path: Path) -> Press:
    """With a database of its own: the outbox is one for all datasets."""
    return Press(engine, tmp_path)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with hook_receiver() as made:
        yield made


def told(url: str | None) -> Settings:
    return load_settings(callback_url=url, callback_token=SecretStr("t0ken") if url else None)


def report(**more: Any) -> RunReport:
    values = {"commit": COMMIT, "discovered_count": 2}
    return RunReport(**(values | more))


def converting(press: Press) -> None:
    assert press.run is not None
    with press.begin() as c:
        enqueue_converting(c, run=press.run, dataset=press.dataset)


def ended(press: Press) -> None:
    assert press.run is not None
    with press.begin() as c:
        enqueue(c, run=press.run, body=failed_body(press.dataset, report(), PublishConflict("no")))


@contextmanager
def minutes_later(press: Press, minutes: int) -> Iterator[None]:
    """Make what waits due, as if so many minutes had gone by."""
    with press.begin() as c:
        c.execute(
            text("UPDATE callback_deliveries SET next_try_at = next_try_at - make_interval(mins => :m)"), {"m": minutes}
        )
    yield


def test_a_ready_body_tells_the_published_totals_and_the_failures_of_the_run(press: Press) -> None:
    press.plan("01", "02", "03")
    press.convert("01")
    press.fail("02")
    published = press.publish()
    failure = FailureEntry(path=path_of("02"), zarr=zarr_of("02"), code="not_continuous", reason="Epochs.")
    body = ready_body(
        press.edition().dataset,
        published,
        report(converted=(zarr_of("01"),), failed=(path_of("02"),), data_failures=(failure,), deterministic=True),
    )
    said = json.loads(dump(body))
    jsonschema.validate(said, SCHEMA)
    assert set(said) == set(SCHEMA["properties"]) - {"error"}, "every field of a ready body is there"
    assert (said["store_count"], said["failure_count"], said["pending_count"], said["discovered_count"]) == (1, 1, 1, 3)
    assert (said["errors"], said["failed"], said["not_attempted_count"]) == (1, [path_of("02")], 1)
    assert (said["index_etag"], said["commit"], said["events_row_count"]) == (published.etag, COMMIT, 2)
    assert said["data_failures"][0]["code"] == "not_continuous"


def test_a_failed_body_keeps_the_standing_stores_and_claims_nothing(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    press.publish()
    error = OSError(28, "No space left on device", "/var/lib/zarrmill/secret")
    body = failed_body(press.edition().dataset, report(converted=("a.zarr",), pending_count=3), error)
    said = json.loads(dump(body))
    jsonschema.validate(said, SCHEMA)
    assert (said["store_count"], said["converted"], said["removed"], said["pending_count"]) == (1, [], [], 3)
    assert "No space left" in said["error"]
    assert "/var/lib" not in said["error"]
    absent = {
        "index_etag",
        "calibration",
        "measured_count",
        "retryable_failures",
        "non_raw_dropped",
        "manifest_upload_failed",
    }
    assert not absent & set(said)
    assert {"events_upload_failed", "events_stores_without_rows"} <= set(said)


def test_calibration_tells_measured_over_projected_by_format_and_route_worst_first(press: Press) -> None:
    press.plan("01", "02")
    attempts = {name: press.claim(press.run, name) for name in ("01", "02")}
    with press.engine.begin() as c:
        for (_name, attempt), measured in zip(attempts.items(), (4, 9), strict=True):
            c.execute(
                text(
                    "UPDATE attempts SET outcome = 'done', ended_at = zarrmill_now(), measured_bytes = :b WHERE id = :a"
                ),
                {"a": attempt, "b": measured},
            )
        c.execute(text("UPDATE attempts SET format = 'fif', route = 'streamed' WHERE id = :a"), {"a": attempts["02"]})
        told = calibration_of(kinds_measured(c, target=press.dataset.target, run=press.run))
    assert [(one.format, one.route, one.measured_count, one.median_ratio, one.worst_ratio) for one in told] == [
        ("fif", "streamed", 1, 0.9, 0.9),
        ("edf", "memory", 1, 0.4, 0.4),
    ]
    published = press.publish()
    said = json.loads(dump(ready_body(press.edition().dataset, published, report(measured_count=2, calibration=told))))
    jsonschema.validate(said, SCHEMA)
    assert [row["format"] for row in said["calibration"]] == ["fif", "edf"]


def test_callbacks_arrive_in_order_with_the_token_and_only_once(press: Press, receiver: Receiver) -> None:
    press.plan("01")
    converting(press)
    assert deliver_due(press.engine, told(receiver.url)).accepted == 1
    ended(press)
    press.plan("02")
    converting(press)
    assert deliver_due(press.engine, told(receiver.url)).accepted == 2
    assert deliver_due(press.engine, told(receiver.url)).accepted == 0
    assert receiver.statuses() == ["converting", "failed", "converting"]
    headers = receiver.received[0][0]
    assert (headers["x-webhook-token"], headers["content-type"]) == ("t0ken", "application/json")
    keys = [headers["idempotency-key"] for headers, _body in receiver.received]
    assert len(set(keys)) == 3, "a key for each, the same when it is sent again"


def test_a_stale_announcement_is_dropped_when_the_run_has_ended(press: Press, receiver: Receiver) -> None:
    press.plan("01")
    converting(press)
    ended(press)
    deliver_due(press.engine, told(receiver.url))
    assert receiver.statuses() == ["failed"]


def test_a_run_tells_one_terminal_status(press: Press) -> None:
    press.plan("01")
    press.convert("01")
    published = press.publish()
    ended(press)
    ended(press)
    assert press.run is not None
    with pytest.raises(LostLease), press.begin() as c:
        enqueue(c, run=press.run, body=ready_body(press.edition().dataset, published, report()))


@pytest.mark.parametrize("status", [302, 400, 401, 500, 503])
def test_what_is_not_accepted_is_noted_and_tried_again_later_before_anything_newer(
    press: Press, receiver: Receiver, status: int
) -> None:
    press.plan("01")
    ended(press)
    press.plan("02")
    converting(press)
    receiver.answers = [status]
    outcome = deliver_due(press.engine, told(receiver.url))
    assert (outcome.accepted, outcome.refused) == (0, 1)
    assert deliver_due(press.engine, told(receiver.url)).refused == 0, "not before its time"
    with press.begin() as c:
        noted = c.execute(text("SELECT last_error, tries FROM callback_deliveries ORDER BY callback_pk LIMIT 1")).one()
    assert (noted.tries, str(status) in noted.last_error) == (1, True)
    with minutes_later(press, 10):
        deliver_due(press.engine, told(receiver.url))
    assert receiver.statuses() == ["failed", "failed", "converting"]


def test_a_receiver_that_is_not_there_costs_nothing_but_a_note(press: Press, receiver: Receiver) -> None:
    press.plan("01")
    ended(press)
    nobody = told("http://127.0.0.1:9/hook?token=s3cret")
    assert deliver_due(press.engine, nobody).refused == 1
    with press.begin() as c:
        note = str(c.scalar(text("SELECT last_error FROM callback_deliveries")))
    assert "s3cret" not in note
    assert "t0ken" not in note
    with minutes_later(press, 10):
        assert deliver_due(press.engine, told(receiver.url)).accepted == 1


def test_without_an_address_what_is_due_is_closed_and_never_sent_later(press: Press, receiver: Receiver) -> None:
    press.plan("01")
    ended(press)
    press.plan("02")
    converting(press)
    assert deliver_due(press.engine, told(None)).unaddressed == 2
    assert deliver_due(press.engine, told(receiver.url)).accepted == 0
    assert receiver.received == []


def test_two_addresses_are_told_with_their_own_tokens_and_one_that_is_down_holds_up_no_other(
    press: Press, receiver: Receiver
) -> None:
    press.plan("01")
    ended(press)
    with hook_receiver() as other:
        settings = load_settings(
            callback_url=f"{receiver.url}, {other.url}", callback_token=SecretStr("for-the-first,for-the-second")
        )
        other.answers = [503]
        outcome = deliver_due(press.engine, settings)
        assert (outcome.accepted, outcome.refused) == (1, 1)
        with minutes_later(press, 10):
            assert deliver_due(press.engine, settings).accepted == 1
        assert (receiver.statuses(), other.statuses()) == (["failed"], ["failed", "failed"])
        assert [headers["x-webhook-token"] for headers, _body in receiver.received] == ["for-the-first"]
        [first, second] = [headers for headers, _body in other.received]
        assert (first["x-webhook-token"], first["idempotency-key"]) == ("for-the-second", second["idempotency-key"])
    with press.begin() as c:
        assert c.scalar(text("SELECT count(*) FROM callbacks WHERE delivered_at IS NULL")) == 0
        names = c.scalars(text("SELECT endpoint FROM callback_deliveries")).all()
    assert len(set(names)) == 2
    assert not any("webhooks" in name for name in names), "the path of an address may be a secret"


def test_a_run_that_could_not_be_begun_says_so_and_what_stands(press: Press) -> None:
    body = json.loads(dump(refused_body(press.dataset, Refused("the source cannot be read"))))
    jsonschema.validate(body, SCHEMA)
    assert (body["status"], body["error"], body["store_count"]) == ("failed", "the source cannot be read", 0)
    assert (body["converted"], body["removed"], body["errors"]) == ([], [], 0)
    assert "commit" not in body
    assert "discovered_count" not in body
