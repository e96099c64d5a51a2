"""The cluster as one place where recordings are put: claims, shares of hosts, ledgers and futures kept in step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from contract.errors import LostLease
from db import drains, recordings
from db.drains import EVERY_WORKER, Drain
from db.ledger import Part
from db.runs import Run
from flows.admission import Admission, Placement
from flows.fleet import Fleet, FleetWorker
from flows.in_flight import InFlight, Stages
from flows.ledger import Request
from flows.request import MemoryInUse, ProgressEvent, RecordingStarted
from flows.shares import HostShares, Usable
from flows.unreported import in_transaction
from infra.worker_questions import conversions_in_line
from tasks.convert.attempt import Assignment
from tasks.convert.leases import LEASE_S
from tasks.convert.order import ConversionOrder
from tasks.convert.worker_room import stage_key

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Dispatch"]

_LOG = logging.getLogger("zarrmill.flow")
_MORE_MEMORY: Final = 1.25  # less than a quarter more is not worth another try

_NOTHING: Final = Usable(memory_bytes=0, scratch_bytes=0, slots=0)


@dataclass(kw_only=True)
class Dispatch:
    """What waits, what is placed, and where. ``shares`` is None when the workers are this run's alone."""

    client: Client
    engine: Engine
    run: Run
    on_progress: Callable[[ProgressEvent], None]
    shares: HostShares | None
    admission: Admission
    in_flight: dict[UUID, InFlight] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fleet = Fleet(self.client)
        self.stages = Stages(self.client)
        self._orders: dict[UUID, ConversionOrder] = {}
        self._no_more: set[int] = set()
        self._fetched: dict[UUID, None] = {}  # whose files have come and that has not begun, in that order
        self._drains: list[Drain] = []
        self._fleet_is_known = False

    def add(self, order: ConversionOrder, *, alone: bool = False, is_second_try: bool = False) -> None:
        """Let a recording wait. Running out of memory counts against it on its second try, or when there is no more to be had."""
        if is_second_try:
            self._no_more.add(order.recording_id)
        self._orders[order.attempt_id] = order
        self.admission.add(
            Request(
                key=order.attempt_id,
                memory_bytes=order.permitted_bytes,
                scratch_bytes=order.scratch_bytes,
                seconds=order.expected_s,
                is_remote=order.fetched_bytes > 0,
                alone=alone,
            )
        )

    def misfits(self) -> list[ConversionOrder]:
        """Take out of the wait what no worker could take even when empty."""
        found = []
        for request in self.admission.misfits():
            self.admission.withdraw(request)
            found.append(self._orders.pop(_attempt(request)))
        return found

    def largest_capacity(self) -> int:
        """Memory of the largest worker that is here, in bytes."""
        return max((worker.capacity.memory_bytes for worker in self.fleet.workers.values()), default=0)

    def largest(self) -> dict[str, int]:
        """Most memory, and most scratch, that any worker that is here has."""
        capacities = [worker.capacity for worker in self.fleet.workers.values()]
        return {
            "memory_bytes": max((one.memory_bytes for one in capacities), default=0),
            "scratch_bytes": max((one.scratch_bytes for one in capacities), default=0),
        }

    def place(self) -> None:
        """Start what fits now, and fetch what will be next; nothing while nobody knows which workers are there."""
        if not self._fleet_is_known or not self.fleet.is_reachable:
            return
        self._begin_fetched()
        placements = self.admission.place(time.monotonic())
        for at, placement in enumerate(placements):
            there = self.in_flight.get(_attempt(placement.request))
            if there is not None and there.worker.address == placement.worker:
                there.is_charged = True
            elif there is not None:
                self._begin_anew(there, "it can start on another worker")
            elif not self._claim(placement):
                # The host is shared, and others were quicker: look again, and let everything not yet claimed wait.
                for put_back in placements[at:]:
                    if _attempt(put_back.request) not in self.in_flight:
                        self.admission.release(put_back.request.key)
                        self.admission.add(put_back.request)
                self.withhold()
                break
        if placements:
            self._begin_fetched()
            self.tell_memory()

    def _claim(self, placement: Placement) -> bool:
        """Take a recording for an attempt together with its share of the host, and hand it to its worker."""
        request, worker = placement.request, self.fleet.workers[placement.worker]
        order = self._orders[_attempt(request)]
        one = InFlight(
            assignment=Assignment(order=order, memory_counts=not self._has_more_memory(order)),
            request=request,
            worker=worker,
            is_charged=not placement.ahead,
        )
        begins = one.is_charged and one.is_near
        part = self._part(one, converts=begins)

        def claim(c: Connection) -> bool:
            if self.shares and not self.shares.reserve(c, order.attempt_id, worker, part):
                return False
            self._claim_row(c, order, worker)
            return True

        if not in_transaction(self.engine, claim):
            return False
        del self._orders[order.attempt_id]
        self.in_flight[order.attempt_id] = one
        if begins:
            self._begin(one)
        else:
            self.stages.fetch(one)
        return True

    def _part(self, one: InFlight, *, converts: bool) -> Part:
        """What an attempt holds of its host: while it converts, or before and after that."""
        in_memory = one.worker.capacity.scratch_in_memory
        scratch = one.request.scratch_bytes
        memory = (one.request.memory_bytes if converts else 0) + (scratch if in_memory else 0)
        return Part(memory_bytes=memory, scratch_bytes=scratch, slots=int(converts))

    def _begin_fetched(self) -> None:
        """Begin what the ledger has room for and whose files have come, as far as its share of the host is free."""
        for one in self._waits_for_share:
            if one.attempt_id in self.in_flight and one.is_charged and not one.has_begun and one.is_fetched:
                shares, part = self.shares, self._part(one, converts=True)
                if shares is None or in_transaction(
                    self.engine, partial(shares.resize, attempt_id=one.attempt_id, part=part)
                ):
                    self._begin(one)

    @property
    def _waits_for_share(self) -> list[InFlight]:
        return [self.in_flight[attempt_id] for attempt_id in list(self._fetched) if attempt_id in self.in_flight]

    def _begin(self, one: InFlight) -> None:
        order = one.assignment.order
        self._fetched.pop(order.attempt_id, None)
        self.stages.convert(one, self._part(one, converts=True).memory_bytes)
        self.on_progress(
            RecordingStarted(
                path=order.recording.path, bytes=order.recording.size_bytes, permitted_bytes=order.permitted_bytes
            )
        )

    def fetched(self, one: InFlight) -> None:
        """Note that the files of an attempt have come."""
        self.admission.fetched(one.attempt_id)
        if not one.has_begun:
            self._fetched[one.attempt_id] = None

    def _begin_anew(self, one: InFlight, why: str) -> None:
        """Give up an attempt whose conversion has not begun, uncounted, and let its recording wait again."""
        order = one.assignment.order
        self.leave(one, cancel=True)
        try:
            in_transaction(
                self.engine,
                lambda c: recordings.release(c, attempt_id=order.attempt_id, run_number=order.run_number, why=why),
            )
        except LostLease:
            # its worker has ended it meanwhile, and says how; or the lease runs out
            _LOG.info("attempt %s was not given up: it has ended", order.attempt_id)
            return
        self.add(replace(order, attempt_id=uuid4()), alone=one.request.alone)

    def _claim_row(self, c: Connection, order: ConversionOrder, worker: FleetWorker) -> None:
        recordings.claim(
            c,
            run=self.run,
            recording_id=order.recording_id,
            attempt_id=order.attempt_id,
            worker=worker.name,
            route=order.route.value,
            projected_bytes=order.projected_bytes,
            permitted_bytes=order.permitted_bytes,
            scratch_bytes=order.scratch_bytes,
            floor_bytes=order.floor_bytes,
            lease_s=LEASE_S,
        )

    def _has_more_memory(self, order: ConversionOrder) -> bool:
        more = self.largest_capacity() >= order.permitted_bytes * _MORE_MEMORY
        return more and order.recording_id not in self._no_more

    def converted(self, attempt_id: UUID) -> None:
        """Give back the memory and slot of an attempt whose conversion is over."""
        one = self.in_flight.get(attempt_id)
        if one is None or one.has_converted or one.converted is None or one.converted.status != "finished":
            return
        one.has_converted = True
        self.admission.converted(attempt_id)
        if self.shares:
            part = self._part(one, converts=False)
            in_transaction(self.engine, partial(self.shares.resize, attempt_id=attempt_id, part=part))
        self.tell_memory()

    def leave(self, one: InFlight, *, cancel: bool) -> None:
        """Take an attempt off the cluster and out of the ledgers."""
        one.let_go(cancel=cancel)
        del self.in_flight[one.attempt_id]
        self._fetched.pop(one.attempt_id, None)
        self.admission.release(one.attempt_id)
        if self.shares:
            shares = self.shares
            in_transaction(self.engine, lambda c: shares.give_back(c, one.attempt_id))
        self.tell_memory()

    def refresh(self) -> list[InFlight]:
        """See who is there; the attempts on workers that left, which are still in flight."""
        self._fleet_is_known = False
        try:
            change = self.fleet.refresh()
        except OSError as error:
            _LOG.warning("the Dask scheduler does not answer: %s", str(error) or type(error).__name__)
            return []
        self._fleet_is_known = True
        lost: list[InFlight] = []
        for worker in change.left:
            self.admission.remove_worker(worker.address)
            on_it = [one for one in self.in_flight.values() if one.worker is worker]
            _LOG.warning("the worker %s left; %d recordings on it run again alone", worker.name, len(on_it))
            lost += on_it
        here = (*change.joined, *change.changed)
        for worker in here:
            self.admission.set_worker(worker.address, worker.capacity)
        if here and self.shares:
            shares = self.shares
            in_transaction(self.engine, lambda c: shares.declare(c, here))
        if change.changed:
            self._free_the_stuck(change.changed)
        self.withhold()
        return lost

    def _free_the_stuck(self, shrunk: Iterable[FleetWorker]) -> None:
        """Let wait again what a worker that has shrunk could not begin even when empty."""
        stuck = {self.in_flight[_uuid(key)] for key in self.admission.stranded() if key in self.in_flight}
        for worker in shrunk:
            begun = [one for one in self.in_flight.values() if one.worker is worker and one.has_begun]
            too_large = [one for one in begun if not self.admission.ledger(worker.address).could_ever_fit(one.request)]
            if too_large:
                in_line = conversions_in_line(self.client, worker.address)
                stuck |= {one for one in too_large if stage_key("convert", one.attempt_id) in in_line}
        for one in stuck:
            self._begin_anew(one, "its worker has less memory than when it was placed there")

    def withhold(self) -> None:
        """Leave alone what others have reserved of the hosts and workers, what they are owed, and workers that are drained."""
        workers, shares = list(self.fleet.workers.values()), self.shares
        if not workers:
            return
        waiting = len(self.admission)

        def look(c: Connection) -> tuple[list[Drain], Mapping[str, Usable]]:
            usable: Mapping[str, Usable] = {}
            if shares is not None:
                usable = shares.usable(
                    c,
                    workers,
                    waiting_count=waiting,
                    waiting_bytes=self.admission.waiting_bytes,
                    drained=self.admission.draining,
                )
            return drains.current(c), usable

        self._drains, usable = in_transaction(self.engine, look)
        for worker in workers:
            whole = Usable(
                memory_bytes=worker.capacity.memory_bytes,
                scratch_bytes=worker.capacity.scratch_bytes,
                slots=worker.capacity.slots,
            )
            part = _NOTHING if self._is_closed_to_new(worker) else usable.get(worker.address, whole)
            self.admission.withhold(
                worker.address,
                free_memory_bytes=part.memory_bytes,
                free_scratch_bytes=part.scratch_bytes,
                free_slots=part.slots,
            )

    def is_drained(self, worker: FleetWorker) -> bool:
        """Whether a worker takes nothing new."""
        return any(drain.covers(worker.name) for drain in self._drains)

    def _is_closed_to_new(self, worker: FleetWorker) -> bool:
        return self.is_drained(worker) or self.fleet.is_silent(worker)

    @property
    def takes_nothing(self) -> bool:
        """Whether every worker that is here is drained or silent, or there is none."""
        return all(self._is_closed_to_new(worker) for worker in self.fleet.workers.values())

    @property
    def is_all_drained(self) -> bool:
        """Whether no worker takes anything, not even one that would join now."""
        return any(drain.worker == EVERY_WORKER for drain in self._drains)

    @property
    def why_nothing_starts(self) -> str:
        """What keeps everything that waits from starting, as the beginning of a sentence."""
        workers = self.fleet.workers.values()
        if self.fleet.is_closed:
            return "the Dask scheduler does not answer any more"
        if not workers:
            return "there is no worker"
        if all(self.is_drained(worker) for worker in workers):
            return "every worker is drained (zarrmill drain --undo ends that)"
        if self.takes_nothing:
            return "no worker answers the Dask scheduler"
        return "other commands hold this host's memory"

    def let_go_drained(self) -> None:
        """Stop what has not begun on drained workers, and everything there once their grace is over."""
        unbegun: list[InFlight] = []
        overdue: list[InFlight] = []
        for one in self.in_flight.values():
            over = [drain.is_overdue for drain in self._drains if drain.covers(one.worker.name)]
            if any(over):
                overdue.append(one)
            elif over and not one.was_let_go:
                unbegun.append(one)
                one.was_let_go = True
        if unbegun:
            self.stages.stop_all(unbegun, unbegun_only=True)
        if overdue:
            self.stages.stop_all(overdue)

    def close(self) -> None:
        """Leave nothing behind on the cluster or in the ledger."""
        self.fleet.close()
        for one in self.in_flight.values():
            one.let_go(cancel=True)
        self.in_flight.clear()
        if self.shares:
            try:
                with self.engine.begin() as c:
                    self.shares.give_back_all(c)
            except DBAPIError as error:
                # They run out by themselves.
                _LOG.warning("shares of hosts were not given back: %s", type(error).__name__)

    def tell_memory(self) -> None:
        """Report the memory in use."""
        capacities = self.admission.workers()
        self.on_progress(
            MemoryInUse(
                in_use_bytes=sum(self.admission.ledger(worker).in_use_bytes for worker in capacities),
                allowed_bytes=sum(capacity.memory_bytes for capacity in capacities.values()),
            )
        )


def _attempt(request: Request) -> UUID:
    return _uuid(request.key)


def _uuid(key: Hashable) -> UUID:
    assert isinstance(key, UUID)
    return key
