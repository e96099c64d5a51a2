"""Headers of what is to be converted: read where they lie, or asked of a service side by side and remembered."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Final

from contract.errors import NotNow
from db.headers import known_headers, note_headers
from tasks.formats import load
from tasks.plan.header import HEADER_TROUBLE, header_at_source, header_by_starts
from tasks.plan.packed_header import header_key, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Engine

    from tasks.bids.recording import DiscoveredRecording
    from tasks.formats.protocol import Header
    from tasks.sources.protocol import Source

__all__ = ["headers"]

log = logging.getLogger("zarrmill.flows.headers")

_BATCH: Final = 256
_SIDE_BY_SIDE: Final = 16
_ENOUGH_FAILURES: Final = 16
"""As many in a row: the service is in trouble. Each costs its tries and waits, and 25,000 of them would cost hours."""


def headers(
    engine: Engine,
    source: Source,
    recordings: Iterable[DiscoveredRecording],
    *,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[DiscoveredRecording, Header | None]]:
    """Each recording with its header, in order; None where there is none to be had cheaply, so that its size must do.

    Of a source that asks a service, a header costs a request or two the first time and none after that: it is kept by the
    content of the recording. Once ``enough`` says so, or the service is in trouble, no more are asked for.
    """
    if not source.asks_a_service:
        for recording in recordings:
            yield recording, header_at_source(source, load()[recording.format], recording)
        return
    rest, asker = iter(recordings), _Asker(source, enough)
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="zarrmill-headers") as pool:
        while batch := list(islice(rest, _BATCH)):
            yield from zip(batch, _batch(engine, asker, batch, pool), strict=True)


def _batch(
    engine: Engine, asker: _Asker, batch: Sequence[DiscoveredRecording], pool: ThreadPoolExecutor
) -> list[Header | None]:
    """The headers of a batch; those that are not known are asked for by the pool, and noted."""
    tree = asker.source.tree()
    keys = [header_key(recording, tree) for recording in batch]
    with engine.connect() as c:
        found = {key: unpacked(kept) for key, kept in known_headers(c, keys=set(keys)).items()}
    wanted = {key: recording for key, recording in zip(keys, batch, strict=True) if key not in found}
    asked = zip(wanted, pool.map(asker.ask, wanted.values()), strict=True)
    new = {key: header for key, header in asked if header is not None}
    if new:
        with engine.begin() as c:
            note_headers(c, headers={key: packed(header) for key, header in new.items()})
    return [new.get(key) or found.get(key) for key in keys]


class _Asker:
    """Asks a source for headers from several threads, until it is in trouble or asked to stop."""

    def __init__(self, source: Source, enough: Callable[[], bool]) -> None:
        self.source = source
        self._enough = enough
        self._failures = 0
        self._lock = threading.Lock()

    def ask(self, recording: DiscoveredRecording) -> Header | None:
        """The header; None where it is not to be had."""
        if self._failures >= _ENOUGH_FAILURES or self._enough():
            return None
        one = load()[recording.format]
        # of some sources a part of the files is here
        header = header_at_source(self.source, one, recording)
        if header is not None:
            return header
        try:
            header = header_by_starts(self.source, one, recording)
        except NotNow as error:
            self._failed(error)
            return None
        except HEADER_TROUBLE:
            return None
        self._failures = 0
        return header

    def _failed(self, error: NotNow) -> None:
        with self._lock:
            self._failures += 1
            if self._failures == _ENOUGH_FAILURES:
                log.warning(
                    "headers cannot be read at %s, so recordings are projected by their size: %s",
                    self.source.url,
                    error.detail,
                )
