"""A process of the service ends by itself when its database has been gone for longer than a lease lasts."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from contract.redact import error_line
from db.leases import LEASE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

__all__ = ["ending_without_database"]

log = logging.getLogger("zarrmill.flows.database_gone")

_LOOK_S: Final = 5.0


@contextmanager
def ending_without_database(engine: Engine, *, patience_s: float = LEASE_S, look_s: float = _LOOK_S) -> Iterator[None]:
    """For the length of the block, kill this process once no database has answered for ``patience_s``.

    By then its lease has run out and its dataset is anybody's; nothing that it could still write would count. A kill, because
    whatever else it waits for may never answer; the next process takes the request up as after any other kill.
    """
    left = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(engine, left, patience_s, look_s), name="zarrmill-database", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        left.set()


def _watch(engine: Engine, left: threading.Event, patience_s: float, look_s: float) -> None:
    answered_at = time.monotonic()
    while not left.wait(look_s):
        try:
            with engine.connect() as c:
                c.execute(text("SELECT 1"))
        except DBAPIError as error:
            if time.monotonic() - answered_at > patience_s:
                log.error("no database for %d s (%s); this process ends", patience_s, error_line(error))  # noqa: TRY400 - one line says it all
                os.kill(os.getpid(), signal.SIGKILL)
        else:
            answered_at = time.monotonic()
