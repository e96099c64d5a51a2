"""What a run has reserved of hosts and workers in the ledger that all commands share, and how much more it may take."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from sqlalchemy import Connection

from contract.errors import LostLease
from db import ledger
from db.contenders import Claim, Contender, Holding, claim_shares, contenders, holdings, withdraw_claims
from db.leases import Owner
from db.ledger import Part
from db.runs import Run
from flows.fair_share import Party, may_take
from flows.fleet import FleetWorker

__all__ = ["HostShares", "Usable"]

_LOG = logging.getLogger("zarrmill.flow")
_MOST_BYTES: Final = 1 << 60  # more than any host has, less than what the column holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """What a run may take now of one worker, besides what it holds."""

    memory_bytes: int
    scratch_bytes: int
    slots: int


@dataclass(kw_only=True)
class HostShares:
    """The shares of one run. ``priority`` is its weight among the runs that want the same workers."""

    owner: Owner
    owner_is_gone: Callable[[Owner], bool]
    run: Run
    priority: int
    _held: dict[UUID, UUID] = field(default_factory=dict)

    def declare(self, c: Connection, workers: Iterable[FleetWorker]) -> None:
        """Say what the hosts of these workers have, and take back what dead commands left."""
        for host, worker in {worker.identity.host: worker for worker in workers}.items():
            whole = Part(
                memory_bytes=worker.identity.host_memory_bytes,
                scratch_bytes=worker.identity.host_scratch_bytes,
                slots=ledger.MANY_SLOTS,
            )
            ledger.declare_host(c, key=host, name=worker.identity.host_name, whole=whole)
            ledger.reap(c, host=host, owner_is_gone=self.owner_is_gone)

    def reserve(self, c: Connection, attempt_id: UUID, worker: FleetWorker, part: Part) -> bool:
        """Whether the host has this much left, which is now reserved for the attempt."""
        reservation = ledger.reserve(
            c, host=worker.identity.host, part=part, owner=self.owner, run_id=self.run.id, worker=worker.name
        )
        if reservation is None:
            return False
        self._held[attempt_id] = reservation
        return True

    def resize(self, c: Connection, attempt_id: UUID, part: Part) -> bool:
        """Whether the attempt has this much now, in place of what was reserved for it."""
        reservation = self._held.get(attempt_id)
        return reservation is not None and ledger.resize(c, reservation=reservation, part=part)

    def give_back(self, c: Connection, attempt_id: UUID) -> None:
        """Give back what an attempt had reserved."""
        reservation = self._held.get(attempt_id)
        if reservation is not None:
            ledger.release(c, reservation=reservation)
            del self._held[attempt_id]

    def give_back_all(self, c: Connection) -> None:
        """Give back everything, and want nothing more."""
        for attempt_id in list(self._held):
            self.give_back(c, attempt_id)
        withdraw_claims(c, run=self.run)

    def renew(self, c: Connection) -> None:
        """Keep all reservations."""
        if not self._held:
            return
        try:
            ledger.renew(c, reservations=self._held.values())
        except LostLease:
            # A laptop that slept: others may have taken what we use. What runs on goes on; nothing new until it is free.
            _LOG.warning("a reservation of this host's memory was taken back; what runs goes on")

    def usable(
        self,
        c: Connection,
        workers: Collection[FleetWorker],
        *,
        waiting_count: int,
        waiting_bytes: int,
        drained: tuple[str, int] | None,
    ) -> dict[str, Usable]:
        """By address, what of each worker this run may take now; what it has waiting is told to the others.

        ``drained``: the address of a worker that is drained for a large recording, and the memory of that one.
        """
        claims = [
            Claim(
                worker=worker.name,
                host=worker.identity.host,
                priority=self.priority,
                waiting_count=waiting_count,
                waiting_bytes=min(waiting_bytes, _MOST_BYTES),
                drained_bytes=drained[1] if drained is not None and drained[0] == worker.address else 0,
            )
            for worker in workers
        ]
        claim_shares(c, run=self.run, claims=claims if waiting_count else ())
        hosts = {worker.identity.host for worker in workers}
        standing, held = contenders(c, hosts=hosts), holdings(c, hosts=hosts)
        free = {host: ledger.free(c, host=host) for host in hosts}
        usable = {}
        for worker in workers:
            part = free[worker.identity.host]
            if part is not None:
                usable[worker.address] = self._of(worker, part, standing, held)
        return usable

    def _of(
        self, worker: FleetWorker, free: Part, standing: Collection[Contender], held: Collection[Holding]
    ) -> Usable:
        host, name = worker.identity.host, worker.name
        slots_held = [one for one in held if one.worker == name]
        of_memory = self._parties(
            [one for one in standing if one.claim.host == host],
            {one.run_id: one.memory_bytes for one in _by_run(held, host)},
            lambda claim: (claim.waiting_bytes, claim.drained_bytes),
        )
        of_slots = self._parties(
            [one for one in standing if one.claim.worker == name],
            {one.run_id: one.slots for one in slots_held},
            lambda claim: (claim.waiting_count, 0),
        )
        slots = worker.capacity.slots
        return Usable(
            memory_bytes=may_take(worker.identity.host_memory_bytes, free.memory_bytes, self.run.id, of_memory),
            scratch_bytes=free.scratch_bytes,
            slots=may_take(slots, slots - sum(one.slots for one in slots_held), self.run.id, of_slots),
        )

    def _parties(
        self,
        standing: Collection[Contender],
        held: dict[UUID, int],
        wants: Callable[[Claim], tuple[int, int]],
    ) -> list[Party]:
        """Who shares one pool, the one that contends longest first; this run is always among them."""
        parties: dict[UUID, Party] = {}
        for one in standing:
            wanted, drained = wants(one.claim)
            before = parties.get(one.run_id)
            parties[one.run_id] = Party(
                name=one.run_id,
                priority=one.claim.priority,
                held=held.get(one.run_id, 0),
                wanted=wanted,
                drained=max(drained, before.drained if before is not None else 0),
            )
        for run_id, amount in held.items():
            parties.setdefault(run_id, Party(name=run_id, priority=1, held=amount, wanted=0))
        parties.setdefault(self.run.id, Party(name=self.run.id, priority=self.priority, held=0, wanted=0))
        return list(parties.values())


def _by_run(held: Collection[Holding], host: str) -> list[Holding]:
    """What each run holds of a host on all of its workers."""
    sums: dict[UUID, int] = {}
    for one in held:
        if one.host == host:
            sums[one.run_id] = sums.get(one.run_id, 0) + one.memory_bytes
    return [Holding(run_id=run, host=host, worker="", memory_bytes=total, slots=0) for run, total in sums.items()]
