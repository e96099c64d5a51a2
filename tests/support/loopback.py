"""A real web server on a loopback port for one test, and raw requests that no client library tidies up."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI


@contextmanager
def running(app: FastAPI) -> Iterator[int]:
    """Serve ``app`` on 127.0.0.1 from a thread; the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", proxy_headers=False)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        deadline = time.monotonic() + 90
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.005)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(90)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def ask(port: int, path: str, *, method: str = "GET", **headers: str) -> Answer:
    """One request with the path sent byte for byte; header names take underscores for dashes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    pairs = (field.split(": ", 1) for field in fields)
    return Answer(int(status.split()[1]), {name.lower(): value for name, value in pairs}, body)
