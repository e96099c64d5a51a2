from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import zarr
from fabricated import write_store
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import Answer, ask, running

from api.app import create_app
from infra.settings import Settings
from infra.storage.folder import FolderTarget

STORE = "/xx000001/zarr/sub-01/eeg/sub-01_eeg.zarr"
CHUNK = f"{STORE}/eeg_250hz/0/c/0/0"
BYTES = bytes(range(256)) * 40
SETTINGS = Settings()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("target") / "served"
    target = FolderTarget(root, port=8321)
    write_store(root.parent / "scratch", "one")
    (root.parent / "scratch/eeg_250hz/0/c/0/0").write_bytes(BYTES)
    (root.parent / "scratch").rename(root.parent / "s")
    (root / STORE[1:]).parent.mkdir(parents=True)
    (root.parent / "s").rename(root / STORE[1:])
    target.put("xx000001/zarr/index.json", b'{"format":"nemar-zarr-index"}', content_type="application/json")
    target.put("xx000001/zarr/events.parquet", b"PAR1", content_type="x")
    target.put("zarr-catalog.json", b'{"count":1}', content_type="application/json")
    (root.parent / "secret.json").write_text("secret")
    (root / "xx000001/zarr/link.json").symlink_to(root.parent / "secret.json")
    (root / "xx000001/zarr/linked").symlink_to(root.parent)
    (root / "xx000001/zarr/.index.json.new").write_text("half")
    (root / "xx000001/elsewhere").mkdir()
    (root / "xx000001/elsewhere/index.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    with running(create_app(FolderTarget(root, port=8321), SETTINGS)) as port:
        yield port


def test_a_chunk_is_served_whole_with_what_a_reader_and_a_cache_need(port: int) -> None:
    answer = ask(port, CHUNK)
    assert (answer.status, answer.body) == (200, BYTES)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-length"] == str(len(BYTES))
    assert answer.headers["cache-control"] == "public, max-age=86400, stale-while-revalidate=86400"


@pytest.mark.parametrize(
    ("path", "kind", "fresh_s", "stale_s"),
    [
        ("/xx000001/zarr/index.json", "application/json", 300, 3600),
        ("/xx000001/zarr/events.parquet", "application/vnd.apache.parquet", 300, 3600),
        ("/xx000001/zarr/events.parquet?v=", "application/vnd.apache.parquet", 300, 3600),
        ("/xx000001/zarr/events.parquet?v=2026-11-30T080000Z", "application/vnd.apache.parquet", 86400, 86400),
        (f"{STORE}/zarr.json", "application/json", 60, 300),
        (f"{STORE}/zarr.json?v=2026", "application/json", 86400, 86400),
        ("/catalog.json", "application/json", 3600, 3600),
        ("/catalog.json?v=1", "application/json", 3600, 3600),
    ],
)
def test_documents_have_their_type_and_their_time(port: int, path: str, kind: str, fresh_s: int, stale_s: int) -> None:
    answer = ask(port, path)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["cache-control"] == f"public, max-age={fresh_s}, stale-while-revalidate={stale_s}"


def test_head_tells_the_same_without_a_body(port: int) -> None:
    head, get = ask(port, CHUNK, method="HEAD"), ask(port, CHUNK)
    assert head.body == b""
    assert told(head) == told(get)


def told(answer: Answer) -> dict[str, str]:
    """The headers that do not belong to one request alone."""
    return {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}


@given(first=st.integers(0, 10_300), last=st.integers(0, 30_000))
@settings(max_examples=25, deadline=None)
def test_a_single_range_gives_exactly_its_bytes(port: int, first: int, last: int) -> None:
    answer = ask(port, CHUNK, Range=f"bytes={first}-{last}")
    if last < first:
        assert (answer.status, answer.body) == (200, BYTES)
    elif first >= len(BYTES):
        assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{len(BYTES)}")
    else:
        assert (answer.status, answer.body) == (206, BYTES[first : last + 1])
        end = min(last, len(BYTES) - 1)
        assert answer.headers["content-range"] == f"bytes {first}-{end}/{len(BYTES)}"


@pytest.mark.parametrize(
    ("asked", "status", "body"),
    [
        ("bytes=10200-", 206, BYTES[10200:]),
        ("bytes=-16", 206, BYTES[-16:]),
        ("bytes=-99999", 206, BYTES),
        ("bytes=-0", 416, None),
        ("bytes=10240-", 416, None),
        ("bytes=0-1,5-6", 200, BYTES),
        ("bytes=-", 200, BYTES),
        ("bytes=x-1", 200, BYTES),
        ("items=0-1", 200, BYTES),
        ("bytes=0-" + "9" * 40, 200, BYTES),
        ("bytes=-" + "9" * 40, 200, BYTES),
    ],
)
def test_odd_ranges_follow_the_rules_of_http(port: int, asked: str, status: int, body: bytes | None) -> None:
    answer = ask(port, CHUNK, Range=asked)
    assert answer.status == status
    assert body is None or answer.body == body


def test_a_reader_that_already_has_the_object_gets_no_bytes(port: int) -> None:
    etag = ask(port, CHUNK).headers["etag"]
    for known in (etag, f'"other", W/{etag}', "*"):
        answer = ask(port, CHUNK, If_None_Match=known)
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", etag)
    assert ask(port, CHUNK, If_None_Match='"other"').status == 200


def test_a_range_of_another_version_gives_the_whole_new_object(port: int) -> None:
    etag = ask(port, CHUNK).headers["etag"]
    assert ask(port, CHUNK, Range="bytes=0-3", If_Range=etag).status == 206
    assert ask(port, CHUNK, Range="bytes=0-3", If_Range='"other"').status == 200


def test_every_origin_may_read_and_see_the_headers_it_needs(port: int) -> None:
    answer = ask(port, CHUNK, Origin="https://viewer.example")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert {"ETag", "Content-Range"} <= set(answer.headers["access-control-expose-headers"].split(", "))
    preflight = ask(
        port,
        CHUNK,
        method="OPTIONS",
        Origin="https://viewer.example",
        Access_Control_Request_Method="GET",
        Access_Control_Request_Headers="range",
    )
    assert preflight.status == 200
    assert "Range" in preflight.headers["access-control-allow-headers"]
    refused = ask(port, CHUNK, method="OPTIONS", Origin="https://x.example", Access_Control_Request_Method="PUT")
    assert refused.status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/xx000001",
        "/xx000001/",
        "/xx000001/zarr",
        "/xx000001/zarr/",
        "/xx000001/index.json",
        "/xx000001/elsewhere/index.json",
        "/xx000001/zarr/sub-01",
        f"{STORE}/",
        f"{STORE}//zarr.json",
        "/xx000001/zarr/nothing.json",
        "/xx000001/zarr/index.json/x",
        "/xx000001/zarr/.index.json.new",
        "/.zarrmill/zarr/locks/xx000001",
        "/xx000001/zarr/../../zarr-catalog.json",
        "/xx000001/zarr/../../../secret.json",
        "/xx000001/zarr/%2e%2e/%2e%2e/zarr-catalog.json",
        "/xx000001/zarr/..%2f..%2fzarr-catalog.json",
        "/xx000001/zarr/sub-01%2Feeg/sub-01_eeg.zarr/zarr.json",
        "/xx000001/zarr/index.json%00",
        "/xx000001/zarr/%5c..%5cindex.json",
        "/xx000001/zarr//etc/passwd",
        "//etc/passwd",
        "/xx000001/zarr/link.json",
        "/xx000001/zarr/linked/secret.json",
        "/xx000001/zarr/" + "a" * 300,
        "/xx000001/zarr/%ff%fe",
        "/XX000001/zarr/index.json",
        "/xx0000010/zarr/index.json",
        "/zarr-catalog.json",
        "/schemas/../app.py",
        "/schemas/unknown.json",
        "/docs",
        "/redoc",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_everything_else_is_not_found(port: int, path: str, method: str) -> None:
    answer = ask(port, path, method=method)
    assert answer.status == 404
    assert b"secret" not in answer.body
    assert b"count" not in answer.body


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_nothing_can_be_written(port: int, root: Path, method: str) -> None:
    assert ask(port, "/xx000001/zarr/index.json", method=method).status == 405
    assert (root / "xx000001/zarr/index.json").is_file()


def test_a_pipe_below_the_target_does_not_hang_the_server(port: int, root: Path) -> None:
    subprocess.run(["mkfifo", str(root / "xx000001/zarr/pipe.json")], check=True)
    assert ask(port, "/xx000001/zarr/pipe.json").status == 404


def test_an_object_is_found_whatever_the_query_says(port: int) -> None:
    assert ask(port, f"{CHUNK}?v=2026-11-30T00:00:00Z").body == BYTES


def test_names_with_spaces_and_accents_are_served(port: int, root: Path) -> None:
    folder = root / "xx000001/zarr/sub-Zoë/a b.zarr"
    folder.mkdir(parents=True)
    (folder / "zarr.json").write_text("{}")
    assert ask(port, "/xx000001/zarr/sub-Zo%C3%AB/a%20b.zarr/zarr.json").body == b"{}"


def test_the_schemas_are_served_and_an_unknown_one_names_the_others(port: int) -> None:
    unknown = ask(port, "/schemas/none.json")
    available = json.loads(unknown.body)["available"]
    assert {"zarr-index-v3.json", "zarr-manifest-v1.json"} <= set(available)
    for name in available:
        assert json.loads(ask(port, f"/schemas/{name}").body)["$id"].endswith(name)


def test_the_server_says_that_it_is_there(port: int) -> None:
    assert json.loads(ask(port, "/healthz").body) == {"status": "ok"}
    assert json.loads(ask(port, "/").body)["service"] == "zarrmill"


def test_a_target_that_does_not_exist_yet_is_simply_empty(tmp_path: Path) -> None:
    with running(create_app(FolderTarget(tmp_path / "later", port=8321), SETTINGS)) as port:
        assert ask(port, "/catalog.json").status == 404
        FolderTarget(tmp_path / "later", port=1).put("zarr-catalog.json", b"{}", content_type="application/json")
        assert ask(port, "/catalog.json").status == 200


def test_a_store_exchanged_during_a_response_does_not_mix_into_it(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=1)
    size = 16 << 20

    def put(letter: bytes) -> None:
        objects = write_store(tmp_path / "scratch", "v")
        big = tmp_path / "scratch/eeg_250hz/0/c/0/0"
        big.write_bytes(letter * size)
        target.put_store(STORE[1:], tmp_path / "scratch", objects, token="t", may_write=lambda: None)

    put(b"a")
    root = f"{STORE}/zarr.json"
    with running(create_app(target, SETTINGS)) as port, socket.create_connection(("127.0.0.1", port)) as reader:
        reader.settimeout(20)
        reader.sendall(f"GET {CHUNK} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = reader.recv(4096)
        before = ask(port, root)
        put(b"b")
        after = ask(port, root, method="HEAD")
        assert ask(port, root).body == before.body
        assert after.headers["etag"] != before.headers["etag"], (
            "an exchange shows even where the root's bytes are equal"
        )
        received += b"".join(iter(lambda: reader.recv(1 << 20), b""))
        assert received.partition(b"\r\n\r\n")[2] == b"a" * size
        assert ask(port, CHUNK).body == b"b" * size


def test_readers_that_leave_early_cost_no_open_file(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=1)
    target.put(CHUNK[1:], b"x" * (8 << 20), content_type="x")

    def open_chunks() -> int:
        return sum(file.path == str(target.root / CHUNK[1:]) for file in psutil.Process().open_files())

    with running(create_app(target, SETTINGS)) as port:
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", port)) as reader:
                reader.sendall(f"GET {CHUNK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                reader.recv(10)
        deadline = time.monotonic() + 90
        while open_chunks():
            assert time.monotonic() < deadline, "files stay open"
            time.sleep(0.05)


READ = """
import json, sys
import zarr
from zarr.storage import FsspecStore
group = zarr.open_group(FsspecStore.from_url(sys.argv[1]), mode="r", zarr_format=3)
array = group["eeg_250hz/0"]
print(json.dumps({"rate": group["eeg_250hz"].attrs["rate"], "sum": int(array[:].sum()), "part": array[1, 700:710].tolist()}))
"""


def test_zarr_python_reads_a_sharded_store_through_the_gateway(tmp_path: Path) -> None:
    store = tmp_path / "served" / STORE[1:]
    group = zarr.open_group(store, mode="w", zarr_format=3)
    level = group.create_group("eeg_250hz", attributes={"rate": 250.0})
    data = np.arange(3000, dtype=np.int16).reshape(2, 1500)
    level.create_array("0", data=data, chunks=(1, 250), shards=(2, 1500))
    with running(create_app(FolderTarget(tmp_path / "served", port=8321), SETTINGS)) as port:
        read = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", READ, f"http://127.0.0.1:{port}{STORE}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
    assert read.returncode == 0, read.stderr
    expected = {"rate": 250.0, "sum": int(data.sum()), "part": data[1, 700:710].tolist()}
    assert json.loads(read.stdout) == expected
