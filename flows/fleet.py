"""The workers of a cluster as the flow sees them: who is there and what each has."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flows.ledger import Capacity, places_ahead
from infra.cluster import WorkerIdentity
from infra.host import host_key, process_is_gone
from infra.worker_questions import ANSWER_S, answers, ask_identity, identity_told

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Fleet", "FleetChange", "FleetWorker"]

_LOG = logging.getLogger("zarrmill.flow")
_ANSWER_BESIDE_S: Final = 1.0  # there are others to work with meanwhile
_GONE_AFTER_S: Final = 30.0  # a worker that the scheduler has dropped hears so at its next heartbeat, and closes itself


@dataclass(eq=False, slots=True, kw_only=True)
class FleetWorker:
    """One worker that can take recordings. ``capacity`` follows what the worker says."""

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
        return self.identity.name

    @property
    def is_surely_gone(self) -> bool:
        """Whether the process ran on this host and is gone. False may mean that nobody here can know."""
        # by both names: containers without a limit of their own share the machine's memory, but not its process numbers
        is_here = (self.identity.host, self.identity.host_name) == (host_key(), socket.gethostname())
        return is_here and process_is_gone(self.identity.pid, self.identity.started)


@dataclass(frozen=True, slots=True)
class FleetChange:
    """What ``Fleet.refresh`` found."""

    joined: tuple[FleetWorker, ...] = ()
    left: tuple[FleetWorker, ...] = ()
    changed: tuple[FleetWorker, ...] = ()


class Fleet:
    """The workers that are there now; refreshed from the scheduler.

    A worker has left when its process is gone, or when the scheduler has not known it for half a minute. Until then it is *silent*: it
    takes nothing new, and what it works on is still its own.
    """

    def __init__(
        self, client: Client, *, clock: Callable[[], float] = time.monotonic, answer_s: float = ANSWER_S
    ) -> None:
        self._client = client
        self._answer_s = answer_s
        self._clock = clock
        self.workers: dict[str, FleetWorker] = {}
        self.largest_seen_bytes = 0
        self._silent_since: dict[str, float] = {}
        self._unusable: set[str] = set()
        self._asked: dict[
            str, Future[Any]
        ] = {}  # who those are that the scheduler knows and that have not answered yet

    @property
    def is_reachable(self) -> bool:
        """Whether the client is connected to the scheduler."""
        return self._client.status == "running"

    @property
    def is_closed(self) -> bool:
        """Whether the client has given the scheduler up for good."""
        return self._client.status in {"closing", "closed"}

    def close(self) -> None:
        """Wait for no answer any more."""
        for asked in self._asked.values():
            asked.cancel()
        self._asked.clear()

    def is_silent(self, worker: FleetWorker) -> bool:
        """Whether the scheduler does not know this worker now."""
        return worker.address in self._silent_since

    def refresh(self) -> FleetChange:
        """Ask the scheduler who is there; a new worker is used once it has said that it runs this version, whenever that is.

        Raises
        ------
        Refused
            A worker runs another version.
        OSError
            The scheduler does not answer, or the client is connecting to it anew. Nothing is known of the workers.
        """
        if self.is_closed:
            left = tuple(self.workers.values())
            self.workers.clear()
            self._silent_since.clear()
            return FleetChange(left=left)
        info = self._known_to_the_scheduler()
        there = {address: worker for address, worker in info.items() if worker.get("status") == "running"}
        left = tuple(worker for worker in list(self.workers.values()) if self._has_left(worker, there))
        for worker in left:
            del self.workers[worker.address]
            self._silent_since.pop(worker.address, None)
        self._unusable &= there.keys()
        changed = self._resized(there)
        return FleetChange(self._joined(self._said(there), there), left, changed)

    def _said(self, there: Mapping[str, Mapping[str, Any]]) -> dict[str, WorkerIdentity]:
        """Who the new workers are that have said so by now. One that has just come is given a moment for it."""
        for address in self._asked.keys() - there.keys():
            self._asked.pop(address).cancel()
        new = [one for one in there if one not in self.workers and one not in self._asked]
        usable = [address for address in new if self._can_convert(address, there[address])]
        self._asked |= {address: ask_identity(self._client, address) for address in usable}
        patience_s = min(_ANSWER_BESIDE_S, self._answer_s) if self.workers else self._answer_s
        told = answers(self._asked, patience_s if usable else 0.0)
        for address in told:
            del self._asked[address]
        for address in self._asked.keys() & set(usable):
            _LOG.warning("the worker %s does not say who it is; nothing starts there before it does", address)
        found = {address: identity_told(address, answer) for address, answer in told.items()}
        return {address: identity for address, identity in found.items() if identity is not None}

    def _known_to_the_scheduler(self) -> Mapping[str, Mapping[str, Any]]:
        """Every worker as the scheduler describes it now.

        ``Client.scheduler_info`` cannot be asked: it gives what the client stored last, which the client itself replaces every two seconds by
        an answer without workers, and which stays what it was when the scheduler does not answer. On a busy machine a flow took all
        its workers as gone for that.
        """
        scheduler = self._client.scheduler
        if not self.is_reachable or scheduler is None:
            raise ConnectionError("the connection to the Dask scheduler is being made anew")
        answer: Mapping[str, Any] = self._client.sync(scheduler.identity, n_workers=-1, callback_timeout=self._answer_s)  # type: ignore[no-untyped-call]  # distributed has no types here
        workers: Mapping[str, Mapping[str, Any]] = answer["workers"]
        return workers

    def _has_left(self, worker: FleetWorker, there: Mapping[str, object]) -> bool:
        if worker.address in there:
            self._silent_since.pop(worker.address, None)
            return False
        now = self._clock()
        if worker.address not in self._silent_since:
            _LOG.warning("the scheduler does not know the worker %s now; nothing new starts there", worker.name)
            self._silent_since[worker.address] = now
        return worker.is_surely_gone or now - self._silent_since[worker.address] > _GONE_AFTER_S

    def _joined(
        self, said: Mapping[str, WorkerIdentity], there: Mapping[str, Mapping[str, Any]]
    ) -> tuple[FleetWorker, ...]:
        joined = []
        for address, identity in said.items():
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
        return tuple(joined)

    def _resized(self, there: Mapping[str, Mapping[str, Any]]) -> tuple[FleetWorker, ...]:
        """Workers that say they have more or less than before; the same process at the same address."""
        changed = []
        for address, worker in self.workers.items():
            if address not in there:
                continue
            capacity = _capacity(there[address], worker.capacity.scratch_in_memory)
            if capacity != worker.capacity:
                _LOG.info("the worker %s has %d bytes of memory now", worker.name, capacity.memory_bytes)
                worker.capacity = capacity
                self.largest_seen_bytes = max(self.largest_seen_bytes, capacity.memory_bytes)
                changed.append(worker)
        return tuple(changed)

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
        ahead=places_ahead(slots),
        scratch_in_memory=scratch_in_memory,
    )
