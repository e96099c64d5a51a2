"""The attempts that are with the cluster now, as futures, and what happens to them as events."""

from __future__ import annotations

import logging
import queue
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from flows.fleet import FleetWorker
from flows.ledger import Request
from tasks.convert import attempt
from tasks.convert.attempt import Assignment
from tasks.convert.worker_room import stage_key

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["CONVERTED", "ENDED", "InFlight", "Stages"]

_LOG = logging.getLogger("zarrmill.flow")
CONVERTED: Final = "converted"
ENDED: Final = "ended"


@dataclass(slots=True, kw_only=True)
class InFlight:
    """One attempt that is placed on a worker."""

    assignment: Assignment
    request: Request
    worker: FleetWorker
    futures: tuple[Future[Any], Future[Any]] | None = None
    has_converted: bool = False
    lost_at: float | None = None

    @property
    def attempt_id(self) -> UUID:
        """Its attempt."""
        return self.assignment.order.attempt_id

    def let_go(self, *, cancel: bool) -> None:
        """Give the futures back, so that the scheduler forgets them."""
        futures, self.futures = self.futures, None
        for future in futures or ():
            if cancel and future.client.status == "running":
                future.cancel()  # type: ignore[no-untyped-call]  # distributed has no types here
            future.release()  # type: ignore[no-untyped-call]  # distributed has no types here


@dataclass(slots=True)
class Stages:
    """Submits the three stages of attempts and tells what became of them."""

    client: Client
    events: queue.SimpleQueue[tuple[str, UUID]] = field(default_factory=queue.SimpleQueue)

    def submit(self, one: InFlight, memory_bytes: int) -> None:
        """Hand an attempt to its worker. Only the middle stage holds memory and a slot."""
        pinned: dict[str, Any] = {"workers": [one.worker.address], "allow_other_workers": False, "pure": False}
        identity = one.attempt_id
        fetched = self.client.submit(attempt.fetch, one.assignment, key=stage_key("fetch", identity), **pinned)
        converted = self.client.submit(
            attempt.convert,
            fetched,
            key=stage_key("convert", identity),
            resources=one.worker.resources(memory_bytes),
            **pinned,
        )
        uploaded = self.client.submit(attempt.upload, converted, key=stage_key("upload", identity), **pinned)
        fetched.release()  # type: ignore[no-untyped-call]  # distributed has no types here
        one.futures = (converted, uploaded)
        for future, kind in ((converted, CONVERTED), (uploaded, ENDED)):
            told = partial(self._tell, kind, identity)
            future.add_done_callback(told)  # type: ignore[no-untyped-call]  # distributed has no types here

    def _tell(self, kind: str, attempt_id: UUID, _future: Future[Any]) -> None:
        self.events.put((kind, attempt_id))

    def wait(self, timeout_s: float) -> list[tuple[str, UUID]]:
        """What happened, waiting for the first of it."""
        try:
            happened = [self.events.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        while not self.events.empty():
            happened.append(self.events.get_nowait())
        return happened

    def stop_all(self, in_flight: list[InFlight]) -> None:
        """Ask the workers to end these attempts as released."""
        if self.client.status != "running":
            return
        by_worker: dict[str, list[UUID]] = {}
        for one in in_flight:
            by_worker.setdefault(one.worker.address, []).append(one.attempt_id)
        for address, attempt_ids in by_worker.items():
            try:
                self.client.run(attempt.abandon, attempt_ids, workers=[address], on_error="ignore")
            except OSError as error:
                # The scheduler went this moment; with it every worker closes itself.
                _LOG.warning("the worker %s could not be asked to stop: %s", address, error)
