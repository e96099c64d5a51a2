"""A real web server that is told of conversions, answers what it is told to, and remembers what it was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from answering import answering

__all__ = ["HookReceiver", "hook_receiver"]


class HookReceiver:
    """``answers`` are the status codes of the next answers; after those, 200."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.received: list[tuple[dict[str, str], Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.received.append((headers, json.loads(body)))
                status = receiver.answers.pop(0) if receiver.answers else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self.server.server_port}/webhooks/zarr-ready"

    def bodies(self, dataset_id: str | None = None) -> list[Any]:
        return [body for _headers, body in list(self.received) if dataset_id in {None, body.get("dataset_id")}]

    def statuses(self, dataset_id: str | None = None) -> list[str]:
        return [body["status"] for body in self.bodies(dataset_id)]

    def terminal(self, dataset_id: str) -> list[Any]:
        """What was told of the ends of a dataset's runs, each once however often it arrived."""
        return [body for body in self.bodies(dataset_id) if body["status"] != "converting"]


@contextmanager
def hook_receiver() -> Iterator[HookReceiver]:
    made = HookReceiver()
    with answering(made.server):
        yield made
