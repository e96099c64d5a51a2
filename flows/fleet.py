"""The workers of a cluster as the flow sees them: who is there, what each has, and what of its host others hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from sqlalchemy import Connection

from contract.errors import LostLease
from db import ledger
from db.leases import Owner
from db.ledger import Part
from flows.ledger import Capacity
from infra.cluster import WorkerIdentity, identify
from infra.host import host_key, process_is_gone

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Fleet", "FleetChange", "FleetWorker", "HostShares"]

_LOG = logging.getLogger("zarrmill.flow")
_MANY_SLOTS: Final = 1 << 20  # slots are a worker's own affair; only memory and scratch are shared by a host


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWorker:
    """One worker that can take recordings."""

    address: str
    identity: WorkerIdentity
    capacity: Capacity
    has_slots: bool

    def resources(self, memory_bytes: int) -> dict[str, int]:
        """What a conversion holds here while it runs."""
        return {"MEMORY": memory_bytes, **({"SLOT": 1} if self.has_slots else {})}

    @property
    def name(self) -> str:
        """A name of this process, never of the one that a nanny starts at the same address after it."""
        return f"{self.identity.host_name}/{self.identity.pid}/{self.identity.started}"

    @property
    def is_surely_gone(self) -> bool:
        """Whether the process ran on this host and is gone. False may mean that nobody here can know."""
        return self.identity.host == host_key() and process_is_gone(self.identity.pid, self.identity.started)


@dataclass(frozen=True, slots=True)
class FleetChange:
    """What ``Fleet.refresh`` found."""

    joined: tuple[FleetWorker, ...]
    left: tuple[FleetWorker, ...]


class Fleet:
    """The workers that are there now; refreshed from the scheduler."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.workers: dict[str, FleetWorker] = {}
        self.largest_seen_bytes = 0
        self._unusable: set[str] = set()

    @property
    def is_reachable(self) -> bool:
        """Whether the client is connected to the scheduler."""
        return self._client.status == "running"

    @property
    def is_closed(self) -> bool:
        """Whether the client has given the scheduler up for good."""
        return self._client.status in {"closing", "closed"}

    def refresh(self) -> FleetChange:
        """Ask the scheduler who is there; a new worker is used once it has said that it runs this version.

        Raises
        ------
        Refused
            A worker runs another version.
        OSError
            The scheduler does not answer.
        """
        if not self.is_reachable:
            # Its workers close themselves, and every future of ours is cancelled. A call would wait for it.
            left = tuple(self.workers.values())
            self.workers.clear()
            return FleetChange((), left)
        info: Mapping[str, Mapping[str, Any]] = self._client.scheduler_info(n_workers=-1).get("workers", {})
        there = {address: worker for address, worker in info.items() if worker.get("status") == "running"}
        left = tuple(self.workers.pop(address) for address in list(self.workers) if address not in there)
        self._unusable &= there.keys()
        new = [
            address for address in there if address not in self.workers and self._can_convert(address, there[address])
        ]
        joined = []
        for address, identity in (identify(self._client, new) if new else {}).items():
            worker = FleetWorker(
                address=address,
                identity=identity,
                capacity=_capacity(there[address], identity.scratch_in_memory),
                has_slots="SLOT" in there[address]["resources"],
            )
            self.workers[address] = worker
            # what a command gives to its workers says nothing about what the machine could give
            machine_bytes = max(identity.memory_limit_bytes, worker.capacity.memory_bytes)
            self.largest_seen_bytes = max(self.largest_seen_bytes, machine_bytes)
            joined.append(worker)
        return FleetChange(tuple(joined), left)

    def _can_convert(self, address: str, worker: Mapping[str, Any]) -> bool:
        if "MEMORY" in worker["resources"]:
            return True
        if address not in self._unusable:
            self._unusable.add(address)
            _LOG.warning(
                "the worker %s declares no MEMORY and takes no recordings; start it with `zarrmill worker`", address
            )
        return False


def _capacity(worker: Mapping[str, Any], scratch_in_memory: bool) -> Capacity:
    resources = worker["resources"]
    slots = int(resources.get("SLOT", max(worker["nthreads"] // 2, 1)))
    return Capacity(
        memory_bytes=int(resources["MEMORY"]),
        scratch_bytes=int(resources.get("SCRATCH", 0)),
        slots=slots,
        ahead=max(slots // 2, 1),
        scratch_in_memory=scratch_in_memory,
    )


class HostShares:
    """What this command has reserved of each host in the ledger that all commands share."""

    def __init__(self, owner: Owner, owner_is_gone: Callable[[Owner], bool]) -> None:
        self._owner = owner
        self._owner_is_gone = owner_is_gone
        self._held: dict[UUID, UUID] = {}

    def declare(self, c: Connection, workers: Iterable[FleetWorker]) -> None:
        """Say what the hosts of these workers have, and take back what dead commands left."""
        for host, worker in {worker.identity.host: worker for worker in workers}.items():
            whole = Part(
                memory_bytes=worker.identity.host_memory_bytes,
                scratch_bytes=worker.identity.host_scratch_bytes,
                slots=_MANY_SLOTS,
            )
            ledger.declare_host(c, key=host, name=worker.identity.host_name, whole=whole)
            ledger.reap(c, host=host, owner_is_gone=self._owner_is_gone)

    def reserve(
        self, c: Connection, attempt_id: UUID, worker: FleetWorker, memory_bytes: int, scratch_bytes: int
    ) -> bool:
        """Whether the host has this much left, which is now reserved for the attempt."""
        part = Part(memory_bytes=memory_bytes, scratch_bytes=scratch_bytes, slots=1)
        reservation = ledger.reserve(c, host=worker.identity.host, part=part, owner=self._owner)
        if reservation is None:
            return False
        self._held[attempt_id] = reservation
        return True

    def give_back(self, c: Connection, attempt_id: UUID) -> None:
        """Give back what an attempt had reserved."""
        reservation = self._held.get(attempt_id)
        if reservation is not None:
            ledger.release(c, reservation=reservation)
            del self._held[attempt_id]

    def give_back_all(self, c: Connection) -> None:
        """Give back everything."""
        for attempt_id in list(self._held):
            self.give_back(c, attempt_id)

    def renew(self, c: Connection) -> None:
        """Keep all reservations."""
        if not self._held:
            return
        try:
            ledger.renew(c, reservations=self._held.values())
        except LostLease:
            # A laptop that slept: others may have taken what we use. What runs on goes on; nothing new until it is free.
            _LOG.warning("a reservation of this host's memory was taken back; what runs goes on")

    def free(self, c: Connection, host: str) -> Part | None:
        """What nobody has reserved of a host."""
        return ledger.free(c, host=host)
