"""The gateway over an S3 target: what a folder would answer, from the objects of a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fault_proxy import Fault
from loopback import ask, running
from s3_server import SECRET, S3Place

from api.app import create_app
from infra.settings import Settings
from infra.storage import open_target

STORE = "/xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
SHARD = f"{STORE}/eeg_250hz/0/c/0/0"
BYTES = bytes(range(256)) * 40
INDEX = b'{"format":"nemar-zarr-index"}'
SETTINGS = Settings()


@pytest.fixture
def port(s3: S3Place) -> Iterator[int]:
    """A gateway over ``kept/`` of a bucket in which other things lie too."""
    for key, data in {
        f"kept{SHARD}": BYTES,
        f"kept{STORE}/zarr.json": b"{}",
        "kept/xx000001/zarr/index.json": INDEX,
        "kept/xx000001/zarr/events.parquet": b"PAR1",
        "kept/xx000001/zarr/sub-Zoë/a b.zarr/zarr.json": b"[]",
        "kept/xx000001/zarr/.hidden.json": b"secret",
        "kept/xx000001/elsewhere/index.json": b"secret",
        "kept/zarr-catalog.json": b'{"count":1}',
        "secret.json": b"secret",
        "xx000001/zarr/secret.json": b"secret",
    }.items():
        s3.put(key, data)
    target = open_target(f"s3://{s3.name}/kept", s3.settings(s3_tries=1))
    with running(create_app(target, SETTINGS)) as port:
        yield port


def test_documents_and_shards_have_their_type_and_their_time(port: int) -> None:
    for path, body, kind, times in (
        ("/xx000001/zarr/index.json", INDEX, "application/json", (300, 3600)),
        ("/xx000001/zarr/events.parquet", b"PAR1", "application/vnd.apache.parquet", (300, 3600)),
        (f"{STORE}/zarr.json", b"{}", "application/json", (60, 300)),
        ("/catalog.json", b'{"count":1}', "application/json", (3600, 3600)),
        (SHARD, BYTES, "application/octet-stream", (86400, 86400)),
        ("/xx000001/zarr/sub-Zo%C3%AB/a%20b.zarr/zarr.json", b"[]", "application/json", (60, 300)),
    ):
        kept = "public, max-age={}, stale-while-revalidate={}".format(*times)
        get, head = ask(port, path), ask(port, path, method="HEAD")
        assert (get.status, get.body) == (200, body)
        assert (get.headers["content-type"], get.headers["cache-control"]) == (kind, kept)
        own = {"date": "", "x-request-id": ""}
        assert (head.status, head.body, head.headers | own) == (200, b"", get.headers | own)


def test_a_range_of_a_shard_is_asked_of_the_bucket_as_a_range(port: int, s3: S3Place) -> None:
    for asked, status, body in (
        ("bytes=0-15", 206, BYTES[:16]),
        ("bytes=10200-", 206, BYTES[10200:]),
        ("bytes=-16", 206, BYTES[-16:]),
        ("bytes=-99999", 206, BYTES),
        ("bytes=0-1,5-6", 200, BYTES),
        ("bytes=x-1", 200, BYTES),
    ):
        answer = ask(port, SHARD, Range=asked)
        assert (answer.status, answer.body) == (status, body), asked
    assert ask(port, SHARD, Range="bytes=10-19").headers["content-range"] == f"bytes 10-19/{len(BYTES)}"
    sent = {headers.get("Range") or headers.get("range") for headers in s3.proxy.seen_headers}
    assert "bytes=10-19" in sent, "ten bytes cost ten bytes"
    past = ask(port, SHARD, Range="bytes=10240-")
    assert (past.status, past.headers["content-range"]) == (416, f"bytes */{len(BYTES)}")


def test_a_reader_that_has_the_object_gets_no_bytes_and_a_new_object_is_never_joined_to_an_old_one(
    port: int, s3: S3Place
) -> None:
    etag = ask(port, SHARD).headers["etag"]
    known = ask(port, SHARD, If_None_Match=etag)
    assert (known.status, known.body, known.headers["etag"]) == (304, b"", etag)
    assert ask(port, SHARD, Range="bytes=0-3", If_Range=etag).status == 206
    s3.put(f"kept{SHARD}", BYTES[::-1])
    newer = ask(port, SHARD, Range="bytes=0-3", If_Range=etag)
    assert (newer.status, newer.body) == (200, BYTES[::-1])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_everything_else_is_not_found(port: int, method: str) -> None:
    for path in (
        "/xx000001",
        "/xx000001/zarr/",
        "/xx000001/elsewhere/index.json",
        "/xx000001/zarr/sub-01",
        f"{STORE}/",
        f"{STORE}//zarr.json",
        f"{STORE}/eeg_250hz/0/c/9/9",
        "/xx000001/zarr/nothing.json",
        "/xx000001/zarr/.hidden.json",
        "/xx000001/zarr/secret.json",
        "/xx000001/zarr/../../../secret.json",
        "/xx000001/zarr/%2e%2e/%2e%2e/%2e%2e/secret.json",
        "/xx000001/zarr/..%2f..%2f..%2fsecret.json",
        "/xx000001/zarr/index.json%00",
        "/xx000002/zarr/index.json",
        "/kept/xx000001/zarr/index.json",
        "/zarr-catalog.json",
    ):
        answer = ask(port, path, method=method)
        assert answer.status == 404, path
        assert b"secret" not in answer.body


def test_nothing_can_be_written(port: int, s3: S3Place) -> None:
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert ask(port, "/xx000001/zarr/index.json", method=method).status == 405
    assert s3.get("kept/xx000001/zarr/index.json") == INDEX
    assert s3.proxy.counts().keys() <= {"GET", "HEAD", "LIST"}


@pytest.mark.parametrize("kind", ["denied", "unavailable"])
def test_a_bucket_in_trouble_is_no_absence(port: int, s3: S3Place, kind: Any) -> None:
    s3.proxy.faults = [Fault(kind=kind)]
    answer = ask(port, "/xx000001/zarr/index.json")
    assert answer.status == 503
    assert SECRET.encode() not in answer.body
    assert s3.name.encode() not in answer.body
    s3.proxy.forget()
    assert ask(port, "/xx000001/zarr/index.json").body == INDEX
