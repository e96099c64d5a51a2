"""Publications while a long run goes on, beside it: what converts does not wait for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from contract.errors import ZarrmillError
from contract.redact import error_line

__all__ = ["InterimPublisher"]

_LOG = logging.getLogger("zarrmill.flows.conversion")


class InterimPublisher:
    """Publishes every ``every_s`` seconds while stores change, one publication at a time.

    One that fails is logged, and the next is tried at its time: the last publication of the run says what cannot be published.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._thread: threading.Thread | None = None
        self._began_at = time.monotonic()
        self._published_count = 0

    def consider(self, store_count: int, prepare: Callable[[], Callable[[], None]]) -> None:
        """Begin a publication if it is time for one and there are more stores than in the last; returns at once.

        ``prepare`` is called now, and what it gives is called beside the run.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        if time.monotonic() - self._began_at <= self._every_s or store_count <= self._published_count:
            return
        self._began_at = time.monotonic()
        self._thread = threading.Thread(
            target=self._publish, args=(prepare(), store_count), name="zarrmill-interim", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait until none is under way: two publications of one dataset must not meet."""
        if self._thread is not None:
            self._thread.join()

    def _publish(self, publish: Callable[[], None], store_count: int) -> None:
        try:
            publish()
        except (OSError, SQLAlchemyError, ZarrmillError) as error:
            _LOG.warning("an interim publication failed and will be tried again: %s", error_line(error))
        else:
            self._published_count = store_count
