"""What stands around every answer: who may read, limits, ids, and readers that are sent on to the bucket."""

from __future__ import annotations

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filled_state import Kept, put
from loopback import Answer, ask, running
from s3_server import SECRET, S3Place
from sqlalchemy import Engine, create_engine, text

from api.app import create_app
from infra.settings import Settings
from infra.storage import open_target
from infra.storage.folder import FolderTarget

STORE = "/xx000001/zarr/a.zarr"
CHUNK = f"{STORE}/eeg_250hz/0/c/0/0"


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    target = FolderTarget(tmp_path / "served", port=8321)
    for number in range(1, 5):
        for name in ("index.json", "a.zarr/zarr.json", "a.zarr/eeg_250hz/0/c/0/0"):
            target.put(f"xx{number:06d}/zarr/{name}", b'{"a":1}', content_type="application/json")
    target.put("zarr-catalog.json", b"{}", content_type="application/json")
    return target


@contextmanager
def served(target: Any, engine: Engine | None = None, **given: Any) -> Iterator[int]:
    with running(create_app(target, Settings(**given), engine)) as port:
        yield port


def told(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.body)
    assert {"code", "message", "detail", "request_id", "error"} <= set(found), found
    assert found["request_id"] == answer.headers["x-request-id"]
    assert answer.headers["cache-control"] == "no-store"
    return found


def test_only_public_active_datasets_are_served_and_what_others_put_there(target: FolderTarget, engine: Engine) -> None:
    with engine.begin() as c:
        for one in (Kept(1), Kept(2, visibility="private"), Kept(3, active=False)):
            put(c, one, target=target.url)
    with served(target, engine) as port:
        for number, status in ((1, 200), (2, 404), (3, 404), (4, 200)):
            recipe = ask(port, f"/datasets/xx{number:06d}/recipe?recording=a.edf")
            assert recipe.status == (404 if status == 404 else 503), "its index here is no index"
            for path in ("index.json", "a.zarr/zarr.json", "a.zarr/eeg_250hz/0/c/0/0", "nothing.json"):
                answer = ask(port, f"/xx{number:06d}/zarr/{path}")
                assert answer.status == (404 if path == "nothing.json" else status)
                if answer.status == 404:
                    assert told(answer)["code"] == "not_found", "private and unknown look alike"
        with engine.begin() as c:
            c.execute(text("UPDATE datasets SET visibility = 'private' WHERE dataset_id = 'xx000001'"))
        assert ask(port, CHUNK).status == 404, "from the next request on"


def test_while_the_database_is_away_nothing_is_served_that_may_be_private(target: FolderTarget) -> None:
    away = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none", connect_args={"connect_timeout": 2})
    with served(target, away) as port:
        for path in (CHUNK, "/datasets", "/metrics"):
            answer = ask(port, path)
            assert (answer.status, told(answer)["code"]) == (503, "database_unavailable")
        ready = ask(port, "/readyz")
        assert (ready.status, json.loads(ready.body)["database"]) == (503, "unavailable")
        assert ask(port, "/healthz").status == 200


def test_only_the_pages_that_are_allowed_may_read(target: FolderTarget) -> None:
    with served(target, cors_origins="https://example.org,https://*.example.org,http://localhost:*") as port:
        for origin in ("https://example.org", "https://a.b.example.org", "http://localhost:5173"):
            answer = ask(port, CHUNK, Origin=origin)
            assert answer.headers["access-control-allow-origin"] == origin
            assert "Origin" in answer.headers["vary"]
        for origin in (
            "https://example.org.evil.net",
            "https://evilexample.org",
            "http://example.org",
            "https://example.org:8443",
            "http://localhost",
            "null",
        ):
            answer = ask(port, CHUNK, Origin=origin)
            assert answer.status == 200
            assert "access-control-allow-origin" not in answer.headers, origin
        assert ask(port, CHUNK).headers["vary"] == "Origin", "a cache must not give this answer to a page"


def test_an_address_that_asks_too_often_is_told_to_wait_and_may_still_see_that_the_server_lives(
    target: FolderTarget,
) -> None:
    with served(target, requests_per_minute=3, object_requests_per_minute=5) as port:
        assert [ask(port, "/catalog.json").status for _ in range(3)] == [200] * 3
        over = ask(port, "/catalog.json", Origin="https://example.org")
        assert (over.status, told(over)["code"]) == (429, "too_many_requests")
        assert 1 <= int(over.headers["retry-after"]) <= 60
        assert over.headers["access-control-allow-origin"] == "*", "a page must be able to see that it should wait"
        assert [ask(port, CHUNK).status for _ in range(6)] == [200] * 5 + [429], "objects are counted by themselves"
        assert {ask(port, "/healthz").status for _ in range(5)} == {200}


def test_a_name_that_a_proxy_gives_is_not_believed_of_others(target: FolderTarget) -> None:
    with served(target, requests_per_minute=2, trusted_proxies="10.0.0.0/8") as port:
        asked = [ask(port, "/catalog.json", X_Forwarded_For=f"192.0.2.{number}").status for number in range(3)]
    assert asked == [200, 200, 429]


def test_more_requests_at_once_than_may_be_are_told_to_come_again(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    target.put(CHUNK[1:], b"x" * (32 << 20), content_type="x")
    request = f"GET {CHUNK} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with served(target, requests_at_once=2) as port:
        readers = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(2)]
        try:
            for reader in readers:
                reader.sendall(request)
                assert reader.recv(12) == b"HTTP/1.1 200"
            over = ask(port, CHUNK)
            assert (over.status, told(over)["code"], over.headers["retry-after"]) == (503, "busy", "1")
            assert ask(port, "/healthz").status == 200
        finally:
            for reader in readers:
                reader.close()
        for _ in range(600):
            if ask(port, CHUNK, method="HEAD").status == 200:
                break
            threading.Event().wait(0.1)
        else:
            pytest.fail("room that readers gave back is not given to others")


@pytest.mark.parametrize("length", ["70000", "99999999999999999999", "-1", "many"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(target: FolderTarget, length: str) -> None:
    with served(target) as port:
        answer = ask(port, "/datasets", Content_Length=length)
    assert answer.status in (400, 413)


def test_every_answer_has_an_id_and_takes_a_plain_one_that_it_is_given(target: FolderTarget) -> None:
    with served(target) as port:
        assert ask(port, CHUNK, X_Request_Id="abcd-1234").headers["x-request-id"] == "abcd-1234"
        for odd in ("short", "a" * 65, "<script>alert(1)</script>"):
            assert re.fullmatch("[0-9a-f]{32}", ask(port, CHUNK, X_Request_Id=odd).headers["x-request-id"])


@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=" + ",".join(f"{start}-{start}" for start in range(2000))},
        {"Range": "bytes=" + "9" * 10_000 + "-"},
        {"If_None_Match": ",".join(f'"{number}"' for number in range(2000))},
        {"Range": "bytes=0-\x01"},
        {"Authorization": "Bearer " + "x" * 8000},
    ],
    ids=["many ranges", "huge range", "many etags", "control", "long token"],
)
def test_odd_headers_do_no_harm(target: FolderTarget, headers: dict[str, str]) -> None:
    with served(target) as port:
        answer = ask(port, CHUNK, **headers)
        assert answer.status in (200, 206, 304, 400, 416)
        assert ask(port, CHUNK).body == b'{"a":1}'


def without_following(url: str, **headers: str) -> tuple[int, Any]:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    try:
        answer = urllib.request.build_opener(Stay).open(urllib.request.Request(url, headers=headers), timeout=60)
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers
    return answer.status, answer.headers


@pytest.mark.parametrize("how", ["public", "signed"])
def test_readers_that_are_no_web_page_are_sent_on_to_the_bucket(s3: S3Place, engine: Engine, how: Any) -> None:
    shard = bytes(range(256)) * 8
    key = "kept/xx000001/zarr/sub-Zoë/a b.zarr/0/c/0/0"
    for name, data in (
        (key, shard),
        ("kept/xx000001/zarr/index.json", b"{}"),
        ("kept/xx000002/zarr/secret.json", b"{}"),
    ):
        s3.put(name, data)
    target = open_target(f"s3://{s3.name}/kept", s3.settings())
    with engine.begin() as c:
        put(c, Kept(2, visibility="private"), target=target.url)
    with served(target, engine, redirect=how, cors_origins="https://example.org") as port:
        here = f"http://127.0.0.1:{port}/xx000001/zarr/"
        path = "sub-Zo%C3%AB/a%20b.zarr/0/c/0/0"
        status, headers = without_following(here + path)
        assert (status, headers["Vary"]) == (302, "Origin")
        assert headers["Cache-Control"] == ("public, max-age=3600" if how == "public" else "private, max-age=1800")
        assert ("X-Amz-Signature=" in headers["Location"]) == (how == "signed")
        assert SECRET not in headers["Location"]
        assert headers["Location"].startswith(s3.proxy.url)
        if how == "signed":
            with urllib.request.urlopen(headers["Location"], timeout=60) as answer:
                assert answer.read() == shard
        page = without_following(here + path, Origin="https://example.org")
        assert (page[0], page[1]["Access-Control-Allow-Origin"]) == (200, "https://example.org")
        assert without_following(here + path, Origin="https://evil.net")[0] == 302
        assert without_following(here + "index.json")[0] == 200
        assert without_following(f"{here}{path}?direct=1")[0] == 200, "the viewer's page may connect to nowhere else"
        assert ask(port, f"/xx000001/zarr/{path}", method="HEAD").status == 200
        assert without_following(here + "sub-Zo%C3%AB/a%20b.zarr/0/c/0/1")[0] == 404, (
            "an absent chunk is absent, not denied"
        )
        assert without_following(here.replace("xx000001", "xx000002") + "secret.json")[0] == 404
