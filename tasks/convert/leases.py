"""The leases of the attempts that one worker process works on: renewed together, and asked before every write.

A process that was paused cannot be stopped by SQL. So each attempt has a deadline on this process's own monotonic clock, well
before its lease ends in the database, and whoever writes to the target asks ``may_write`` first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from contract.errors import LostLease
from db.recordings import renew_attempts

__all__ = ["LEASE_S", "WRITE_MARGIN_S", "HeldAttempt", "LeaseKeeper"]

_LOG = logging.getLogger("zarrmill.worker")

LEASE_S: Final = 120.0
WRITE_MARGIN_S: Final = 30.0
"""No write starts this close to the end of a lease; a single PUT times out in less."""
RESTING_PATIENCE_S: Final = 3.0
"""For so long the next stage of an attempt may be on its way from the scheduler."""
_RETRY_S: Final = 5.0


@dataclass(eq=False)
class HeldAttempt:
    """One attempt that this process holds."""

    attempt_id: UUID
    run_number: int
    deadline: float = 0.0
    lost: bool = False
    stop_asked: threading.Event = field(default_factory=threading.Event)
    is_working: bool = True
    has_begun: bool = False
    unwanted_since: float | None = None

    def may_write(self) -> None:
        """Return if a write may start now.

        Raises
        ------
        LostLease
            The attempt was superseded, stopped, or has not been renewed for too long.
        """
        if self.stop_asked.is_set():
            raise LostLease("the attempt was stopped from outside")
        if self.lost or time.monotonic() >= self.deadline:
            raise LostLease("the attempt's lease is over")

    @property
    def must_stop(self) -> bool:
        """Whether work on it is of no use any more."""
        return self.lost or self.stop_asked.is_set()


class LeaseKeeper:
    """Holds attempts and renews them all in one statement every third of a lease.

    ``is_wanted`` says whether anybody still means to go on with an attempt that rests between two stages; ``let_go`` is called
    for one that nobody did for ``patience_s``. ``in_line`` names attempts that have come to this process and wait for their first stage:
    they are renewed too, for as long as they wait.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        is_wanted: Callable[[UUID], bool],
        let_go: Callable[[HeldAttempt], None],
        in_line: Callable[[], Collection[UUID]] = tuple,
        lease_s: float = LEASE_S,
        patience_s: float = RESTING_PATIENCE_S,
    ) -> None:
        self._engine = engine
        self._is_wanted = is_wanted
        self._let_go = let_go
        self._in_line = in_line
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._held: dict[UUID, HeldAttempt] = {}
        self._stopped_early: dict[UUID, float] = {}
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def hold(self, attempt_id: UUID, run_number: int) -> HeldAttempt:
        """Hold an attempt that the flow has claimed; it is renewed at once.

        Raises
        ------
        LostLease
            It is not ours any more.
        """
        with self._lock:
            known = self._held.get(attempt_id)
        if known is not None:
            return known
        held = HeldAttempt(attempt_id, run_number)
        self._renew_patiently(held)
        if held.lost:
            raise LostLease("the attempt's lease was over before its work began")
        with self._lock:
            self._held[attempt_id] = held
            if self._stopped_early.pop(attempt_id, None) is not None:
                held.stop_asked.set()
        self.start()
        return held

    def start(self) -> None:
        """Begin to renew, if that has not begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="zarrmill-leases", daemon=True)
                self._thread.start()

    def get(self, attempt_id: UUID) -> HeldAttempt | None:
        """The attempt if this process holds it."""
        with self._lock:
            return self._held.get(attempt_id)

    @property
    def count(self) -> int:
        """How many attempts this process holds."""
        with self._lock:
            return len(self._held)

    def drop(self, attempt_id: UUID) -> None:
        """Stop renewing an attempt."""
        with self._lock:
            self._held.pop(attempt_id, None)

    def stop(self, attempt_ids: Collection[UUID] | None = None, *, unbegun_only: bool = False) -> None:
        """Ask the work on these attempts, or on all, to end; one that has not begun ends when it does.

        ``unbegun_only`` leaves alone those whose conversion has begun.
        """
        with self._lock:
            for attempt_id in self._held.keys() if attempt_ids is None else attempt_ids:
                held = self._held.get(attempt_id)
                if held is None:
                    self._stopped_early[attempt_id] = time.monotonic()
                elif not (unbegun_only and held.has_begun):
                    held.stop_asked.set()

    def _renew_patiently(self, held: HeldAttempt) -> None:
        """Renew one attempt, again while Postgres restarts: the lease that its claim began bounds it."""
        give_up = time.monotonic() + self._lease_s / 2
        while True:
            try:
                self._renew([held])
            except OperationalError:
                if time.monotonic() >= give_up:
                    raise
                time.sleep(0.5)
            else:
                return

    def look_after_resting(self) -> None:
        """Let go of attempts whose flow is gone: between two stages nobody but us would ever end them. Cheap, asks no database."""
        now = time.monotonic()
        with self._lock:
            held = list(self._held.values())
            for attempt_id in [one for one, asked in self._stopped_early.items() if now - asked > self._lease_s]:
                del self._stopped_early[attempt_id]  # it had ended before it was stopped
        for one in held:
            if one.is_working or self._is_wanted(one.attempt_id):
                one.unwanted_since = None
            elif one.unwanted_since is None:
                one.unwanted_since = now
            elif now - one.unwanted_since > self._patience_s:
                self._let_go(one)

    def close(self) -> None:
        """End the renewals."""
        self._closed.set()

    def _keep(self) -> None:
        pause = self._lease_s / 3
        while not self._closed.wait(pause):
            pause = self._lease_s / 3
            with self._lock:
                held = [one for one in self._held.values() if not one.lost]
            waiting = self._in_line()
            if not held and not waiting:
                continue
            try:
                self._renew(held, waiting)
            except SQLAlchemyError as error:
                # Postgres restarts; the deadlines stand, and nobody writes past them.
                count = len(held) + len(waiting)
                _LOG.warning("%d attempts could not be renewed: %s", count, type(error).__name__)
                pause = min(_RETRY_S, self._lease_s / 10)

    def _renew(self, held: list[HeldAttempt], waiting: Collection[UUID] = ()) -> None:
        asked = (
            time.monotonic()
        )  # before the statement: the lease in the database ends later than we think, never earlier
        with self._engine.begin() as c:
            ids = {*waiting, *(one.attempt_id for one in held)}
            still = renew_attempts(c, attempt_ids=ids, lease_s=self._lease_s)
        for one in held:
            if one.attempt_id in still:
                one.deadline = asked + self._lease_s - min(WRITE_MARGIN_S, self._lease_s / 4)
            else:
                one.lost = True
