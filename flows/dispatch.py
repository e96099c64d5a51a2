"""The cluster as one place where recordings are put: claims, shares of hosts, ledgers and futures kept in step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from db import recordings
from db.runs import Run
from flows.admission import Admission, Placement
from flows.fleet import Fleet, FleetWorker, HostShares
from flows.in_flight import InFlight, Stages
from flows.ledger import Request
from flows.request import MemoryInUse, ProgressEvent, RecordingStarted
from flows.unreported import in_transaction
from tasks.convert.attempt import Assignment
from tasks.convert.leases import LEASE_S
from tasks.convert.order import ConversionOrder

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Dispatch"]

_LOG = logging.getLogger("zarrmill.flow")
_MORE_MEMORY: Final = 1.25  # less than a quarter more is not worth another try


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
        """Start what fits now."""
        placements = self.admission.place(time.monotonic())
        for at, placement in enumerate(placements):
            if not self._claim(placement):
                # The host is shared, and others were quicker: look again, and let everything not yet claimed wait.
                for put_back in placements[at:]:
                    self.admission.release(put_back.request.key)
                    self.admission.add(put_back.request)
                self.withhold()
                break
        if placements:
            self.tell_memory()

    def _claim(self, placement: Placement) -> bool:
        request, worker = placement.request, self.fleet.workers[placement.worker]
        order = self._orders[_attempt(request)]
        memory = self.admission.ledger(worker.address).charge(request)

        def claim(c: Connection) -> bool:
            if self.shares and not self.shares.reserve(c, order.attempt_id, worker, memory, order.scratch_bytes):
                return False
            self._claim_row(c, order, worker)
            return True

        if not in_transaction(self.engine, claim):
            return False
        one = InFlight(
            assignment=Assignment(order=order, memory_counts=not self._has_more_memory(order)),
            request=request,
            worker=worker,
        )
        del self._orders[order.attempt_id]
        self.in_flight[order.attempt_id] = one
        self.stages.submit(one, memory)
        self.on_progress(
            RecordingStarted(
                path=order.recording.path, bytes=order.recording.size_bytes, permitted_bytes=order.permitted_bytes
            )
        )
        return True

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
        if one is None or one.has_converted or one.futures is None or one.futures[0].status != "finished":
            return
        one.has_converted = True
        self.admission.converted(attempt_id)
        self.tell_memory()

    def leave(self, one: InFlight, *, cancel: bool) -> None:
        """Take an attempt off the cluster and out of the ledgers."""
        one.let_go(cancel=cancel)
        del self.in_flight[one.attempt_id]
        self.admission.release(one.attempt_id)
        if self.shares:
            shares = self.shares
            in_transaction(self.engine, lambda c: shares.give_back(c, one.attempt_id))
        self.tell_memory()

    def refresh(self) -> list[InFlight]:
        """See who is there; the attempts on workers that left, which are still in flight."""
        try:
            change = self.fleet.refresh()
        except OSError as error:
            _LOG.warning("the Dask scheduler does not answer: %s", error)
            return []
        lost: list[InFlight] = []
        for worker in change.left:
            self.admission.remove_worker(worker.address)
            on_it = [one for one in self.in_flight.values() if one.worker is worker]
            _LOG.warning("the worker %s left; %d recordings on it run again alone", worker.name, len(on_it))
            lost += on_it
        for worker in change.joined:
            self.admission.set_worker(worker.address, worker.capacity)
        if change.joined and self.shares:
            shares = self.shares
            in_transaction(self.engine, lambda c: shares.declare(c, change.joined))
        self.withhold()
        return lost

    def withhold(self) -> None:
        """Leave alone what other commands have reserved of the hosts."""
        workers, shares = self.fleet.workers.values(), self.shares
        if shares is None or not workers:
            return
        hosts = {worker.identity.host for worker in workers}
        free = in_transaction(self.engine, lambda c: {host: shares.free(c, host) for host in hosts})
        for worker in workers:
            part = free[worker.identity.host]
            if part is not None:
                self.admission.withhold(
                    worker.address,
                    free_memory_bytes=part.memory_bytes,
                    free_scratch_bytes=part.scratch_bytes,
                    free_slots=worker.capacity.slots,
                )

    def close(self) -> None:
        """Leave nothing behind on the cluster or in the ledger."""
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
    assert isinstance(request.key, UUID)
    return request.key
