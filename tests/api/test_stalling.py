"""Clients that send a body and stop half way, and readers that take nothing more."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Iterator

import pytest
from fastapi import FastAPI, Request
from loopback import ask, running
from starlette.responses import StreamingResponse

from api.errors import add_error_handlers
from api.guard import Limits
from infra.settings import Settings

PIECE = bytes(1 << 16)
PIECES = 4000


class Open:
    """An application behind ``Limits`` that has patience for a moment only, and room for one request."""

    def __init__(self) -> None:
        self.app = FastAPI()
        add_error_handlers(self.app)
        self.app.add_middleware(Limits, settings=Settings(requests_at_once=1), body_s=0.5, stalled_s=0.5)
        self.app.add_api_route("/body", self.body, methods=["POST"])
        self.app.add_api_route("/long", self.long)
        self.app.add_api_route("/short", lambda: "here")

    async def body(self, request: Request) -> int:
        return len(await request.body())

    async def long(self) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(PIECES):
                yield PIECE

        return StreamingResponse(pieces())


@pytest.fixture
def open_to_all() -> Iterator[tuple[Open, int]]:
    one = Open()
    with running(one.app) as port:
        yield one, port


def send_head(port: int, head: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n")
    return connection


def test_a_body_that_stops_half_way_is_told_so_and_frees_its_place(open_to_all: tuple[Open, int]) -> None:
    _, port = open_to_all
    with send_head(port, "POST /body HTTP/1.1\nHost: h\nConnection: close\nContent-Length: 100\n") as connection:
        connection.sendall(b"half of it")
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert b"The body did not arrive in time." in answer
    assert ask(port, "/short").status == 200, "the one place is free again"


def test_a_body_that_comes_slowly_but_comes_is_taken(open_to_all: tuple[Open, int]) -> None:
    _, port = open_to_all
    with send_head(port, "POST /body HTTP/1.1\nHost: h\nConnection: close\nContent-Length: 20\n") as connection:
        for _ in range(2):
            connection.sendall(b"ten bytes.")
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert answer.endswith(b"20")


def test_a_reader_that_takes_nothing_more_loses_its_connection_and_frees_its_place(
    open_to_all: tuple[Open, int],
) -> None:
    _, port = open_to_all
    with send_head(port, "GET /long HTTP/1.1\nHost: h\n") as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        deadline = time.monotonic() + 60
        while (answer := ask(port, "/short")).status != 200:
            assert answer.status == 503, "the long answer still has the one place"
            assert time.monotonic() < deadline, "a reader that takes nothing keeps its place"
            time.sleep(0.05)
        received = sum(map(len, iter(lambda: connection.recv(1 << 20), b"")))
    assert received < PIECES * len(PIECE), "what was under way, and then the end"
