"""A proxy before an S3 endpoint that counts requests and spoils those that a table of faults names.

A fault is a row: which requests (method and a pattern over ``key?query``), what happens, and to which of them: the first
``times``, those from number ``at`` on, or a ``share`` drawn by ``seed``.
"""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Kind = Literal[
    "unavailable", "denied", "lost", "reset", "short", "wrong", "delay", "stale", "met", "ignore-conditions", "hold"
]
_NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


@dataclass(kw_only=True)
class Fault:
    """One row of the table.

    ``kind``: ``unavailable`` answers 503 and ``denied`` 403, nothing reaches the server. ``lost``: the server does the work, the
    answer never arrives. ``reset``: the connection is reset before anything reaches the server. ``short``: half the body of the
    answer. ``wrong``: a body of the right length with one byte changed. ``delay``: ``seconds`` before it is passed on. ``stale``: the ETag
    that the key had before. ``met``: 412 whatever stands there. ``ignore-conditions``: the headers of ``conditions`` are not passed on.
    ``hold``: ``held`` is set, and the request, or with ``hold_answer`` its answer, waits for ``go``. ``before`` is called before the request is passed on.
    """

    kind: Kind | None = None
    method: str = "*"
    pattern: str = ""
    times: int | None = None
    at: int = 1
    share: float = 1.0
    seed: int = 0
    seconds: float = 0.0
    conditions: tuple[str, ...] = ("if-match", "if-none-match")
    hold_answer: bool = False
    before: Callable[[], None] | None = None
    held: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)
    seen: int = 0
    struck: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)

    def applies(self, method: str, place: str) -> bool:
        """Whether it strikes this request; each request that it is about counts."""
        if self.method not in ("*", method) or not re.search(self.pattern, place):
            return False
        self.seen += 1
        drawn = self._draw.random() < self.share
        if self.seen < self.at or not drawn or (self.times is not None and self.struck >= self.times):
            return False
        self.struck += 1
        return True


class FaultProxy:
    """The proxy on 127.0.0.1, before the endpoint at ``upstream_port``; bodies of one direction share ``bytes_per_s``.

    Attributes
    ----------
    faults
        The table; change it at any time.
    asked
        Every request in order: ``(word, key)`` with the words PUT, GET, HEAD, DELETE, LIST, POST, COPY.
    answers
        Status of each of them as the client saw it; 0 for none.
    sent_bytes
        Bytes of the bodies that were answered.
    """

    def __init__(self, upstream_port: int, *, bytes_per_s: float | None = None) -> None:
        self.upstream_port = upstream_port
        self._bytes_per_s = bytes_per_s
        self._line_is_free_at = {"there": 0.0, "back": 0.0}
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str]] = []
        self.answers: list[int] = []
        self.sent_bytes = 0
        self.seen_headers: list[dict[str, str]] = []
        self._etags: dict[str, list[str]] = {}
        self.lock = threading.Lock()
        self._idle = threading.Condition()
        self._under_way = 0
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def counts(self) -> Counter[str]:
        """How many requests of each word came since the last ``forget``."""
        return Counter(word for word, _key in self.asked)

    def forget(self) -> None:
        """Begin counting anew, and drop the faults."""
        with self.lock:
            for fault in self.faults:
                fault.go.set()
            self.faults, self.asked, self.answers, self.seen_headers = [], [], [], []
            self.sent_bytes = 0

    def close(self) -> None:
        self.forget()
        self._server.shutdown()
        self._thread.join(20)
        self._server.server_close()

    def strikes(self, method: str, place: str) -> list[Fault]:
        with self.lock:
            return [fault for fault in self.faults if fault.applies(method, place)]

    def settle(self) -> None:
        """Wait until no request is under way."""
        with self._idle:
            assert self._idle.wait_for(lambda: self._under_way == 0, 60), "a request does not end"

    @contextmanager
    def under_way(self) -> Iterator[None]:
        with self._idle:
            self._under_way += 1
        try:
            yield
        finally:
            with self._idle:
                self._under_way -= 1
                self._idle.notify_all()

    def pace(self, direction: str, size_bytes: int) -> None:
        """Wait as long as these bytes take behind all that are on the line already."""
        if self._bytes_per_s is None or not size_bytes:
            return
        with self.lock:
            begun = max(time.monotonic(), self._line_is_free_at[direction])
            self._line_is_free_at[direction] = done = begun + size_bytes / self._bytes_per_s
        threading.Event().wait(max(done - time.monotonic(), 0))

    def note(self, word: str, key: str, status: int, headers: dict[str, str]) -> None:
        with self.lock:
            self.asked.append((word, key))
            self.answers.append(status)
            self.seen_headers.append(headers)

    def former_etag(self, key: str, etag: str) -> str:
        """The etag that the key had before ``etag``, or ``etag``."""
        known = self._etags.setdefault(key, [])
        if not known or known[-1] != etag:
            known.append(etag)
        return known[-2] if len(known) > 1 else etag


class _Handler(BaseHTTPRequestHandler):
    owner: FaultProxy
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        pass

    def _word(self) -> tuple[str, str]:
        path, _, query = self.path.partition("?")
        _, _, key = unquote(path).lstrip("/").partition("/")
        if self.command == "GET" and re.search(r"(^|&)(list-type|versions|uploads|prefix)", query):
            return "LIST", unquote((re.search(r"(?:^|&)prefix=([^&]*)", query) or [None, ""])[1])
        if self.command == "PUT" and "x-amz-copy-source" in {name.lower() for name in self.headers}:
            return "COPY", key
        return self.command, key

    def _handle(self) -> None:
        with self.owner.under_way():
            self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.owner.pace("there", len(body))
        word, key = self._word()
        faults = self.owner.strikes(word, f"{key}?{self.path.partition('?')[2]}")
        kinds = {fault.kind for fault in faults}
        for fault in faults:
            if fault.before is not None:
                fault.before()
            if fault.kind == "hold" and not fault.hold_answer:
                fault.held.set()
                fault.go.wait(120)
                return self._hang_up(word, key)
            if fault.kind == "delay":
                threading.Event().wait(fault.seconds)
        if "reset" in kinds:
            return self._hang_up(word, key, reset=True)
        for kind, status, code in (
            ("unavailable", 503, "SlowDown"),
            ("denied", 403, "AccessDenied"),
            ("met", 412, "PreconditionFailed"),
        ):
            if kind in kinds:
                error = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
                return self._answer(word, key, status, {"Content-Type": "application/xml"}, error)
        try:
            left_out = {name for fault in faults if fault.kind == "ignore-conditions" for name in fault.conditions}
            status, headers, answered = self._pass_on(body, left_out)
        except (OSError, HTTPException):
            return self._hang_up(word, key)
        for fault in faults:
            if fault.kind == "hold" and fault.hold_answer:
                fault.held.set()
                fault.go.wait(120)
        self.owner.pace("back", len(answered))
        etag = next((value for name, value in headers.items() if name.lower() == "etag"), None)
        if etag is not None and status < 300:
            with self.owner.lock:
                former = self.owner.former_etag(key, etag)
            if "stale" in kinds:
                headers = {name: former if name.lower() == "etag" else value for name, value in headers.items()}
        if "lost" in kinds:
            return self._hang_up(word, key)
        if "wrong" in kinds and answered:
            answered = bytes([answered[0] ^ 1]) + answered[1:]
        return self._answer(word, key, status, headers, answered, short="short" in kinds)

    def _pass_on(self, body: bytes, left_out: set[str]) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON | left_out}
        upstream = HTTPConnection("127.0.0.1", self.owner.upstream_port, timeout=60)
        try:
            upstream.request(self.command, self.path, body=body, headers=headers)
            answer = upstream.getresponse()
            data = answer.read()
            named = {name: value for name, value in answer.getheaders() if name.lower() not in _NOT_PASSED_ON}
            if self.command == "HEAD":
                named["Content-Length"] = answer.getheader("Content-Length") or "0"
            return answer.status, named, data
        finally:
            upstream.close()

    def _answer(
        self, word: str, key: str, status: int, headers: dict[str, str], body: bytes, *, short: bool = False
    ) -> None:
        self.owner.note(word, key, status, dict(self.headers.items()))
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with self.owner.lock:
                self.owner.sent_bytes += len(body)
            self.wfile.write(body[: len(body) // 2] if short else body)
        if short:
            self.wfile.flush()
            self._cut()

    def _hang_up(self, word: str, key: str, *, reset: bool = False) -> None:
        self.owner.note(word, key, 0, dict(self.headers.items()))
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._cut()

    def _cut(self) -> None:
        self.close_connection = True

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the client is gone, as some tests have it
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - http.server looks for these names
