"""Small contents that were fetched, kept for the next recording that they apply to."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SMALL_BYTES", "SmallContents"]

SMALL_BYTES = 1 << 20
"""What is longer is no inherited sidecar, and is not kept."""

_KEPT_BYTES = 64 << 20


class SmallContents:
    """Contents by name, each fetched once however many threads want it; the ones least lately used go first."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()
        self._fetching: dict[str, tuple[threading.Lock, int]] = {}

    def get(self, name: str, fetch: Callable[[], bytes]) -> bytes:
        """The content, fetched unless it is kept. Raises what ``fetch`` raises."""
        with self._one_at_a_time(name):
            with self._lock:
                if name in self._contents:
                    self._contents.move_to_end(name)
                    return self._contents[name]
            content = fetch()
            with self._lock:
                self._keep(name, content)
            return content

    def _keep(self, name: str, content: bytes) -> None:
        if len(content) > SMALL_BYTES:
            return
        self._contents[name] = content
        self._size += len(content)
        while self._size > self._kept_bytes:
            _, gone = self._contents.popitem(last=False)
            self._size -= len(gone)

    @contextmanager
    def _one_at_a_time(self, name: str) -> Iterator[None]:
        with self._lock:
            lock, waiting = self._fetching.get(name, (threading.Lock(), 0))
            self._fetching[name] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._fetching[name]
                if waiting == 1:
                    del self._fetching[name]
                else:
                    self._fetching[name] = lock, waiting - 1
