"""From orders to attempts: places recordings on workers, follows them, and gives back each one's last report.

The ledger is ours (``flows.admission``), enforcement is Dask's (``resources``) and the child's limit. Every placement is claimed in
Postgres together with its share of the host before a worker hears of it, so whatever dies leaves a row that says so. When a
worker dies, what was on it is released uncounted and runs again alone: only what dies alone is blamed.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from contract.codes import PendingReason
from contract.errors import Refused
from db import leases, recordings
from db.leases import Owner
from db.runs import Run
from flows.admission import Admission
from flows.dispatch import Dispatch
from flows.in_flight import CONVERTED, FETCHED, InFlight
from flows.ownership import is_gone
from flows.request import DEFAULT_PRIORITY, GaveUp, ProgressEvent
from flows.shares import HostShares
from flows.unreported import in_transaction, of_history, put_off, release_dead, released_at_stop, too_large, unreported
from tasks.convert.attempt import Outcome
from tasks.convert.leases import LEASE_S
from tasks.convert.order import AttemptReport, ConversionOrder

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["GRACE_S", "fan_out"]

_LOG = logging.getLogger("zarrmill.flow")
_LOOK_S: Final = 2.0  # how often the fleet, the leases and the shares are looked at
_WAIT_S: Final = 0.5
_NO_WORKER_S: Final = 60.0
_NO_ROOM_S: Final = 600.0
_RESULT_S: Final = 30.0
_NOW_S: Final = 10.0  # after "now", what has not ended by then is cancelled
_AGAIN_AT_MOST: Final = 3  # tries in one run of a recording that others than it keep from ending
_DEATHS_AT_MOST: Final = 5  # of its worker, before the next run has to see to it
GRACE_S: Final = 15.0
"""What still converts so long after ``finish`` is let go."""


def fan_out(
    client: Client,
    engine: Engine,
    run: Run,
    orders: Iterable[ConversionOrder],
    *,
    on_progress: Callable[[ProgressEvent], None],
    should_stop: Callable[[], str | None],
    owner: Owner | None = None,
    owner_is_gone: Callable[[Owner], bool] = is_gone,
    largest_worker_bytes: int | None = None,
    admission: Admission | None = None,
    priority: int = DEFAULT_PRIORITY,
    grace_s: float = GRACE_S,
) -> Generator[AttemptReport]:
    """The last report of every recording, as each ends; what was not tried when the run stops gives none: it is still due.

    Parameters
    ----------
    should_stop
        None, ``finish`` (nothing new starts, and what runs has ``grace_s``) or ``now`` (what runs is released); asked twice a second.
    admission
        What decides which recording starts next, and where; as yet without workers and recordings. Default ``flows.admission``'s own.
    owner
        Who reserves shares of hosts; None reserves none, and the workers are this run's alone.
    priority
        Weight of this run among those that want the same workers, 1 to 100.
    largest_worker_bytes
        Memory of the largest machine that ever converts; what needs more by its formula has failed.

    Raises
    ------
    LostLease
        Another run has taken the dataset over. What still runs is stopped and writes nothing more.
    Refused
        A worker runs another version, or is set up wrongly.
    """
    shares = HostShares(owner=owner, owner_is_gone=owner_is_gone, run=run, priority=priority) if owner else None
    policy = Admission() if admission is None else admission  # without recordings it is falsy
    dispatch = Dispatch(client=client, engine=engine, run=run, on_progress=on_progress, shares=shares, admission=policy)
    try:
        for order in orders:
            dispatch.add(order)
        yield from _FanOut(dispatch, largest_worker_bytes or 0, grace_s).go(should_stop)
    finally:
        dispatch.close()


class _FanOut:
    """Follows attempts to their ends and decides what runs again."""

    def __init__(self, dispatch: Dispatch, largest_worker_bytes: int, grace_s: float) -> None:
        self._dispatch = dispatch
        self._engine, self._run = dispatch.engine, dispatch.run
        self._largest_worker_bytes = largest_worker_bytes
        self._grace_s = grace_s
        self._in_flight = dispatch.in_flight
        self._limbo: dict[UUID, InFlight] = {}  # lost with their worker; how they ended is not known yet
        self._second_tries: dict[int, AttemptReport] = {}  # first reports of recordings that are tried with more memory
        self._suspects: set[int] = set()
        self._let_go: Counter[int] = Counter()
        self._deaths: Counter[int] = Counter()
        self._looked_at = float("-inf")
        self._busy_at = time.monotonic()
        self._asked_at: float | None = None  # when the run was first asked to stop
        self._stopped_at: float | None = None  # when what runs was let go

    def go(self, should_stop: Callable[[], str | None]) -> Iterator[AttemptReport]:
        """Reports until nothing waits or runs, or the run stops."""
        while True:
            stop = self._stop_word(should_stop())
            yield from self._look()
            if stop is None:
                self._dispatch.place()
                if self._nothing_can_start():
                    yield from self._give_up_waiting()
            if stop == "now":
                yield from self._stop_now()
            if not self._in_flight and not self._limbo and (stop is not None or not len(self._dispatch.admission)):
                break
            if self._idle_for_long():
                break
            for kind, attempt_id in self._dispatch.stages.wait(_WAIT_S):
                if kind == CONVERTED:
                    self._dispatch.converted(attempt_id)
                elif attempt_id in self._in_flight:
                    follow = self._fetched if kind == FETCHED else self._ended
                    yield from follow(self._in_flight[attempt_id])
        yield from self._second_tries.values()

    def _stop_word(self, asked: str | None) -> str | None:
        """How the run stops now: what may finish may do so for the grace."""
        if asked is None:
            return None
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
        return "now" if now - self._asked_at > self._grace_s else asked

    # what fits nowhere

    def _nothing_can_start(self) -> bool:
        idle = not self._in_flight and not self._limbo
        return idle and bool(self._dispatch.fleet.workers) and len(self._dispatch.admission) > 0

    def _give_up_waiting(self) -> Iterator[AttemptReport]:
        """Nothing runs and something waits: what fits no worker, even an empty one, is put off or has failed."""
        largest = max(self._dispatch.fleet.largest_seen_bytes, self._largest_worker_bytes)
        for order in self._dispatch.misfits():
            earlier = self._second_tries.pop(order.recording_id, None)
            if earlier is not None:
                yield earlier
            elif order.floor_bytes > largest:
                yield too_large(self._engine, self._run, order, largest)
            else:
                yield put_off(self._engine, self._run, order, **self._dispatch.largest())

    # ends

    def _fetched(self, one: InFlight) -> Iterator[AttemptReport]:
        future = one.fetched
        if future is None:
            self._dispatch.fetched(one)
            return
        found = self._result(one, future)
        if isinstance(found, AttemptReport):
            # its files could not be had: it ends here, and needs no memory
            self._dispatch.leave(one, cancel=False)
            yield from self._after(one, found)
        elif found is None:
            self._gone(one, future)
        else:
            self._dispatch.fetched(one)

    def _ended(self, one: InFlight) -> Iterator[AttemptReport]:
        future = one.uploaded
        assert future is not None, "only what was handed over ends"
        report: AttemptReport | None = self._result(one, future)
        if report is None:
            self._gone(one, future)
            return
        self._dispatch.leave(one, cancel=False)
        yield from self._after(one, report)

    def _result(self, one: InFlight, future: Future[Any]) -> Any:
        """What a stage gave; None when that is lost with its worker."""
        if future.status != "finished":
            return None
        try:
            # The result lives on the worker, which may be gone by now: then Dask would wait for it for ever.
            return future.result(timeout=_RESULT_S)
        except (TimeoutError, OSError, CancelledError) as error:
            _LOG.warning("the report of attempt %s was lost: %s", one.attempt_id, type(error).__name__)
            return None

    def _gone(self, one: InFlight, future: Future[Any]) -> None:
        """Put aside an attempt on a worker of which nothing more is heard. How it ended is seen later."""
        if future.status == "cancelled":  # by Dask: we ask nothing of a future that we have cancelled
            one.was_cut_off, one.may_be_guilty = True, False
        if future.status == "error":
            trouble = future.exception()  # type: ignore[no-untyped-call]  # distributed has no types here
            if isinstance(trouble, Refused):
                raise trouble
            if type(trouble).__name__ != "KilledWorker":
                _LOG.error("attempt %s ended outside its edges: %r", one.attempt_id, trouble)
        self._to_limbo(one)
        self._looked_at = float("-inf")

    def _to_limbo(self, one: InFlight) -> None:
        one.lost_at = time.monotonic()
        self._dispatch.leave(one, cancel=True)
        self._limbo[one.attempt_id] = one

    def _after(self, one: InFlight, report: AttemptReport) -> Iterator[AttemptReport]:
        order = one.assignment.order
        ran_out = report.reason is PendingReason.MEMORY_BUDGET and report.outcome == Outcome.PENDING
        if ran_out and not one.assignment.memory_counts:
            self._second_tries[order.recording_id] = report
            more = self._dispatch.largest_capacity()
            if one.worker.capacity.scratch_in_memory:
                more -= order.scratch_bytes
            again = replace(order, attempt_id=uuid4(), permitted_bytes=max(more, order.permitted_bytes))
            self._dispatch.add(again, alone=True, is_second_try=True)
            return
        if report.again and self._tries_again(one):
            return
        self._second_tries.pop(order.recording_id, None)
        if report.outcome == Outcome.LOST:
            # A run that was taken over must not go on. Else the database says how it ended, or that its lease ran out.
            in_transaction(self._engine, lambda c: leases.renew(c, run=self._run))
            one.lost_at = time.monotonic()
            self._limbo[one.attempt_id] = one
            self._looked_at = float("-inf")
            return
        yield report

    def _tries_again(self, one: InFlight) -> bool:
        """Let a recording wait again that was let go for something it had no part in; whether it does."""
        if self._asked_at is not None:
            return False
        order = one.assignment.order
        self._dispatch.withhold()  # its worker may have been drained this moment
        alone = one.request.alone
        if not self._dispatch.is_drained(one.worker) and not one.was_cut_off:
            # Perhaps one of its neighbours takes the others along: then it does not do so here.
            alone = True
            self._let_go[order.recording_id] += 1
        if self._let_go[order.recording_id] > _AGAIN_AT_MOST:
            return False
        self._dispatch.add(replace(order, attempt_id=uuid4()), alone=alone)
        return True

    # workers that leave

    def _look(self) -> Iterator[AttemptReport]:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        for one in self._dispatch.refresh():
            self._to_limbo(one)
        self._dispatch.let_go_drained()
        try:
            with self._engine.begin() as c:
                if self._dispatch.shares:
                    self._dispatch.shares.renew(c)
                expired = {ended.attempt_id: ended for ended in recordings.expire(c, run=self._run)}
                ends = recordings.ends(c, attempt_ids=self._limbo) if self._limbo else {}
        except DBAPIError as error:
            _LOG.warning("Postgres does not answer: %s", type(error).__name__)
            return
        for attempt_id, one in list(self._limbo.items()):
            end = ends.get(attempt_id)
            if attempt_id in expired or (end is not None and end.outcome == "expired"):
                del self._limbo[attempt_id]
                yield from self._died(one, counted=end is not None and end.counted)
            elif end is not None:
                del self._limbo[attempt_id]
                yield from self._after(one, of_history(one.assignment.order, end))
            elif one.worker.is_surely_gone:
                del self._limbo[attempt_id]
                blamed = one.request.alone and one.assignment.order.recording_id in self._suspects
                counted = release_dead(self._engine, one.assignment.order, blamed=blamed)
                yield from self._died(one, counted=counted)
            elif one.lost_at is not None and now - one.lost_at > 2 * LEASE_S:
                # Nobody knows what became of it; the lease is over for long.
                del self._limbo[attempt_id]
                yield unreported(one.assignment.order, Outcome.LOST)

    def _died(self, one: InFlight, *, counted: bool) -> Iterator[AttemptReport]:
        """Let a recording that was lost with its worker run again alone; one that was blamed has had its attempt."""
        order = one.assignment.order
        self._deaths[order.recording_id] += 1
        if not counted and self._asked_at is None and self._deaths[order.recording_id] <= _DEATHS_AT_MOST:
            if one.may_be_guilty:
                self._suspects.add(order.recording_id)
            self._dispatch.add(replace(order, attempt_id=uuid4()), alone=one.may_be_guilty or one.request.alone)
            return
        self._second_tries.pop(order.recording_id, None)
        outcome = Outcome.PENDING if counted else Outcome.RELEASED
        yield unreported(order, outcome, reason=PendingReason.INFRA_FAILURE, counted=counted)

    def _idle_for_long(self) -> bool:
        """Whether nothing has run for so long that what waits had better stay due: no worker, or others hold the hosts."""
        now = time.monotonic()
        closed = self._dispatch.fleet.is_closed
        if self._in_flight or self._limbo:
            self._busy_at = now
            if not closed:
                return False
        patience_s = _NO_WORKER_S if self._dispatch.takes_nothing else _NO_ROOM_S
        if not closed and not self._dispatch.is_all_drained and now - self._busy_at < patience_s:
            return False
        left = len(self._dispatch.admission) + len(self._in_flight) + len(self._limbo)
        why = self._dispatch.why_nothing_starts
        _LOG.error("%s; %d recordings stay due", why, left)
        self._dispatch.on_progress(GaveUp(sentence=f"{why}; what waits stays due: {left}"))
        return True

    # stopping

    def _stop_now(self) -> Iterator[AttemptReport]:
        now = time.monotonic()
        if self._stopped_at is None:
            self._stopped_at = now
            self._dispatch.stages.stop_all(list(self._in_flight.values()))
        elif now - self._stopped_at > _NOW_S:
            for one in list(self._in_flight.values()):
                self._to_limbo(one)
            for one in self._limbo.values():
                yield released_at_stop(self._engine, one.assignment.order)
            self._limbo.clear()
