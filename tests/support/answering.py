"""A server of the standard library that answers from a thread of its own for as long as a test needs it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["answering"]


@contextmanager
def answering(server: socketserver.BaseServer) -> Iterator[None]:
    """Answer while inside; every request is over and the socket closed at the end."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
