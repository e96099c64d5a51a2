"""Reports of other converters: tokens, tolerance field by field, the columns that each status writes, the line in the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from filled_state import Kept, put
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, create_engine, text
from starlette.testclient import TestClient

from api.app import create_app
from contract.report import is_archive_id, read_report
from infra.database import engine as make_engine
from infra.settings import Settings
from infra.storage.folder import FolderTarget
from tasks.catalog import publish_catalog

TOKEN = "a-token-of-this-test-0123456789"
RAN = {"zarr_errors", "zarr_failure_count", "zarr_deterministic", "zarr_data_failures", "zarr_failed_at"}
FULL = {
    "dataset_id": "on000001",
    "status": "ready",
    "store_count": 7,
    "index_etag": "abc",
    "commit": "d" * 40,
    "converted": ["a.zarr", "b.zarr"],
    "removed": ["c.zarr"],
    "errors": 3,
    "failed": ["x.edf"],
    "failure_count": 9,
    "data_failures": [{"path": "x.edf", "code": "not_continuous"}] * 2,
    "deterministic": True,
    "pool_breaks": 1,
    "measured_count": 5,
    "calibration": [{"format": "edf"}],
    "pending_count": 4,
    "discovered_count": 20,
    "not_attempted_count": 2,
    "non_raw_dropped": 0,
    "provenance_fetch_failed": False,
    "manifest_upload_failed": True,
    "events_row_count": 120,
    "events_upload_failed": False,
    "events_stores_without_rows": 1,
    "of_the_future": {"x": 1},
}


@pytest.fixture(scope="module")
def shared(servers: Any) -> Iterator[Engine]:
    server = servers.migrated(18)
    server.create_database("api_webhooks", template="migrated")
    made = make_engine(server.url("api_webhooks"))
    try:
        yield made
    finally:
        made.dispose()
        server.drop_database("api_webhooks")


class Receiver:
    def __init__(self, engine: Engine, folder: Path, **given: Any) -> None:
        self.engine = engine
        self.target = FolderTarget(folder, port=8321)
        self.app = create_app(self.target, Settings(webhook_token=TOKEN, **given), engine)
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def send(self, body: Any, *, token: str | None = TOKEN) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if token is None else {"X-Webhook-Token": token}
        return self.client.post("/webhooks/zarr-ready", content=raw, headers=headers)

    def row(self, dataset_id: str = "on000001") -> dict[str, Any]:
        with self.engine.connect() as c:
            found = c.execute(
                text("SELECT * FROM received WHERE target = :target AND dataset_id = :id"),
                {"target": self.target.url, "id": dataset_id},
            ).one_or_none()
        return {} if found is None else dict(found._mapping)


@pytest.fixture
def receiver(shared: Engine, tmp_path: Path) -> Receiver:
    return Receiver(shared, tmp_path / "served")


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper()])
def test_without_the_token_nothing_is_taken(receiver: Receiver, token: str | None) -> None:
    refused = receiver.send(FULL, token=token)
    assert (refused.status_code, refused.json()["error"]) == (401, "Invalid webhook token")
    assert receiver.row() == {}


def test_where_no_token_is_set_nobody_is_let_in(
    shared: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = TestClient(create_app(FolderTarget(tmp_path, port=1), Settings(), shared))
    for token in ("", TOKEN):
        assert closed.post("/webhooks/zarr-ready", json=FULL, headers={"X-Webhook-Token": token}).status_code == 401
    assert "ZARRMILL_WEBHOOK_TOKEN is not set" in caplog.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "Invalid JSON in request body"),
        (b"{", "Invalid JSON in request body"),
        (b"\xff\xfe", "Invalid JSON in request body"),
        (b"[" * 100_000, "Invalid JSON in request body"),
        ([], "Invalid request body"),
        (None, "Invalid request body"),
        ({}, "Invalid request body"),
        ({"dataset_id": 1}, "Invalid request body"),
        ({"dataset_id": None}, "Invalid request body"),
        *(
            ({"dataset_id": wrong}, "dataset_id must be a valid dataset id")
            for wrong in (
                "",
                "nm1",
                "nm100000",
                "zz000001",
                "NM000001",
                "nm0000001",
                "nm000001\n",
                "../nm000001",
                "nm00000\u0661",
            )
        ),
    ],
)
def test_a_body_that_is_no_report_is_refused(receiver: Receiver, body: Any, said: str) -> None:
    refused = receiver.send(body)
    assert (refused.status_code, refused.json()["error"]) == (400, said)


def test_ids_are_those_of_the_archive() -> None:
    assert all(map(is_archive_id, ("nm000103", "on099999", "xx000001", "nm000000")))


def test_an_unknown_dataset_is_registered_or_refused_as_it_is_set(shared: Engine, tmp_path: Path) -> None:
    strict = Receiver(shared, tmp_path / "served", webhook_unknown="refuse")
    refused = strict.send(FULL)
    assert (refused.status_code, refused.json()["error"]) == (404, "Dataset not found")
    assert strict.row() == {}
    with shared.begin() as c:
        put(c, Kept(5), target=strict.target.url)
    assert strict.send({"dataset_id": "xx000005", "store_count": 2}).json()["ok"] is True
    assert strict.client.get("/datasets/xx000005").json()["dataset"]["zarr_store_count"] == 2
    open_to_all = Receiver(shared, tmp_path / "served")
    assert open_to_all.send(FULL).status_code == 200
    assert strict.send(FULL).status_code == 200, "known by now"


def test_a_database_in_trouble_is_told_as_that(tmp_path: Path) -> None:
    away = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none", connect_args={"connect_timeout": 2})
    told = Receiver(away, tmp_path).send(FULL)
    assert (told.status_code, told.json()["error"]) == (500, "Failed to record zarr state")


def test_ready_writes_its_columns_and_says_that_nothing_is_to_be_purged(receiver: Receiver) -> None:
    answer = receiver.send(FULL).json()
    assert answer == {
        "ok": True,
        "dataset_id": "on000001",
        "status": "ready",
        "cache_purge": {"ok": True, "submitted": 0},
    }
    row = receiver.row()
    assert (row["zarr_status"], row["zarr_store_count"], row["zarr_index_etag"]) == ("ready", 7, "abc")
    assert (row["zarr_source_commit"], row["zarr_errors"], row["zarr_failure_count"]) == ("d" * 40, 3, 3), "clamped"
    assert (row["zarr_deterministic"], row["zarr_pool_breaks"]) == (True, 1)
    assert row["zarr_data_failures"] == {
        "count": 2,
        "detail_ref": "zarr/index.json",
        "pending": 4,
        "discovered": 20,
        "manifest_upload_failed": True,
    }
    assert row["zarr_failed_at"] is not None
    assert row["zarr_converted_at"] is not None
    receiver.send({"dataset_id": "on000001"})
    bare = receiver.row()
    assert (bare["zarr_status"], bare["zarr_errors"], bare["zarr_failure_count"]) == ("ready", 0, 0)
    empty = (
        "zarr_store_count",
        "zarr_index_etag",
        "zarr_source_commit",
        "zarr_data_failures",
        "zarr_pool_breaks",
        "zarr_failed_at",
    )
    assert {bare[name] for name in empty} == {None}, "a ready report without them clears them"


def test_converting_leaves_what_was_published_and_clears_what_a_run_left(receiver: Receiver) -> None:
    receiver.send(FULL)
    before = receiver.row()
    answer = receiver.send({**FULL, "status": "converting", "store_count": 99}).json()
    assert answer == {"ok": True, "dataset_id": "on000001", "status": "converting"}
    after = receiver.row()
    assert {name for name in before if before[name] != after[name]} == {*RAN, "zarr_status", "received_at"}
    assert after["zarr_status"] == "pending"
    assert {after[name] for name in RAN} == {None}


def test_failed_keeps_what_was_published(receiver: Receiver) -> None:
    receiver.send(FULL)
    before = receiver.row()
    receiver.send(
        {"dataset_id": "on000001", "status": "failed", "errors": 5, "data_failures": [1, 2], "store_count": 0}
    )
    after = receiver.row()
    assert (after["zarr_status"], after["zarr_errors"], after["zarr_failure_count"]) == ("failed", 5, 2)
    kept = ("zarr_store_count", "zarr_index_etag", "zarr_source_commit", "zarr_converted_at")
    assert all(after[name] == before[name] for name in kept)


@pytest.mark.parametrize("status", ["absent", None, "done", 3, "READY", ["ready"]])
def test_a_status_that_is_missing_or_unknown_means_ready(receiver: Receiver, status: Any) -> None:
    body = {"dataset_id": "on000001"} | ({} if status == "absent" else {"status": status})
    assert receiver.send(body).json()["status"] == "ready"
    assert receiver.row()["zarr_status"] == "ready"


def test_a_malformed_field_is_dropped_and_the_rest_is_kept(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = {
        "store_count": "7",
        "errors": -1,
        "failure_count": 1.5,
        "pool_breaks": True,
        "index_etag": None,
        "commit": "HEAD",
        "deterministic": "yes",
        "data_failures": {},
        "pending_count": 1e300,
        "converted": [1],
        "events_row_count": None,
    }
    assert receiver.send({**FULL, **wrong}).status_code == 200
    row = receiver.row()
    assert (row["zarr_store_count"], row["zarr_index_etag"], row["zarr_source_commit"]) == (None, None, None)
    assert (row["zarr_errors"], row["zarr_deterministic"], row["zarr_pool_breaks"]) == (0, False, None)
    [line] = [one.message for one in caplog.records if "fields were dropped" in one.message]
    assert set(line.partition(": ")[2].partition(": ")[2].split(", ")) == set(wrong) - {"events_row_count"}
    assert receiver.send({**FULL, "index_etag": "\ud800\x00", "store_count": 3.0}).status_code == 200
    assert (receiver.row()["zarr_store_count"], receiver.row()["zarr_index_etag"]) == (3, None)


@lru_cache
def taker(engine: Engine) -> Receiver:
    """One receiver for many examples: an application costs more than a report."""
    return Receiver(engine, Path("/target/of-many"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50)
@given(said=st.dictionaries(st.sampled_from(sorted(set(FULL) - {"dataset_id"})), json_values, max_size=12))
def test_whatever_a_report_says_it_is_taken(shared: Engine, said: dict[str, Any]) -> None:
    receiver = taker(shared)
    assert receiver.send({**said, "dataset_id": "on000002"}).status_code == 200
    report = read_report(json.loads(json.dumps(said)), "on000002")
    row = receiver.row("on000002")
    assert row["zarr_status"] == {"converting": "pending"}.get(report.status, report.status)


def test_an_accepted_report_leaves_one_line(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        receiver.send(FULL)
        receiver.send({"dataset_id": "on000001", "status": "failed"})
        receiver.send({"dataset_id": "nowhere"})
    lines = [one.message for one in caplog.records if one.message.startswith("[zarr-ready]")]
    assert lines == [
        (
            "[zarr-ready] dataset=on000001 status=ready stores=7 converted=2 removed=1 purged=0 pool_breaks=1 pending=4 discovered=20"
            " not_attempted=2 non_raw_dropped=0 provenance_fetch_failed=false events_rows=120 events_upload_failed=false"
            " manifest_upload_failed=true events_stores_without_rows=1"
        ),
        (
            "[zarr-ready] dataset=on000001 status=failed stores=? converted=0 removed=0 purged=0 pool_breaks=? pending=? discovered=?"
            " not_attempted=? non_raw_dropped=? provenance_fetch_failed=? events_rows=none events_upload_failed=false"
            " manifest_upload_failed=false events_stores_without_rows=?"
        ),
    ]
    assert "1 converted stores with events have no usable row" in caplog.text
    assert "published without its manifest" in caplog.text
    assert TOKEN not in caplog.text


def test_a_dataset_that_only_others_report_is_listed_and_comes_into_the_catalog(receiver: Receiver) -> None:
    def with_zarr() -> list[str]:
        return [row["dataset_id"] for row in receiver.client.get("/datasets?has_zarr=1").json()["datasets"]]

    receiver.send({**FULL, "status": "converting"})
    assert (with_zarr(), receiver.client.get("/datasets").json()["total_count"]) == ([], 1)
    receiver.send(FULL)
    assert with_zarr() == ["on000001"]
    assert publish_catalog(receiver.engine, receiver.target).count == 1
    [row] = receiver.client.get("/catalog.json").json()["datasets"]
    assert (row["dataset_id"], row["store_count"], row["zarr_errors"]) == ("on000001", 7, 3)
    receiver.send({**FULL, "status": "failed"})
    publish_catalog(receiver.engine, receiver.target)
    assert receiver.client.get("/catalog.json").json()["datasets"] == []


def test_a_body_above_sixteen_mebibytes_is_refused_before_it_is_whole(receiver: Receiver) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (1 << 19)

    refused = receiver.client.post("/webhooks/zarr-ready", content=endless(), headers={"X-Webhook-Token": TOKEN})
    assert refused.status_code == 413
    large = {**FULL, "converted": [f"sub-{number:06d}/eeg/sub-{number:06d}_eeg.zarr" for number in range(30_000)]}
    assert receiver.send(large).status_code == 200
