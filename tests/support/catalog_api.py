"""A catalog API over real HTTP, with pages and single datasets, whose trouble a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["CatalogApi", "catalog_api"]


class CatalogApi:
    """``rows`` are what it lists; ``lies`` is merged into every page; ``status`` other than 200 is all that it answers."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.lies: dict[str, Any] = {}
        self.status = 200
        self.raw: bytes | None = None
        self.asked: list[str] = []
        self.url = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if self.raw is not None or self.status != 200:
            return self.status, self.raw or b"{}"
        parts = urlsplit(path)
        if parts.path == "/datasets":
            query = parse_qs(parts.query)
            limit, offset = int(query["limit"][0]), int(query["offset"][0])
            page = {"datasets": self.rows[offset : offset + limit], "total_count": len(self.rows)}
            return 200, json.dumps(page | self.lies).encode()
        found = [row for row in self.rows if parts.path == f"/datasets/{row['dataset_id']}"]
        return (200, json.dumps({"dataset": found[0]}).encode()) if found else (404, b'{"error": "Dataset not found"}')


@contextmanager
def catalog_api() -> Iterator[CatalogApi]:
    api = CatalogApi()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = api.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
