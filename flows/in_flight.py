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
from infra.worker_questions import ANSWER_S, answers, ask
from tasks.convert import attempt
from tasks.convert.attempt import Assignment
from tasks.convert.worker_room import stage_key

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["CONVERTED", "ENDED", "FETCHED", "InFlight", "Stages"]

_LOG = logging.getLogger("zarrmill.flow")
FETCHED: Final = "fetched"
CONVERTED: Final = "converted"
ENDED: Final = "ended"


@dataclass(slots=True, kw_only=True, eq=False)
class InFlight:
    """One attempt that is on a worker.

    ``may_be_guilty``: its conversion was handed to the worker, so that it may be what the worker died of. ``is_charged``: the ledger has memory and a slot for it; until then its files are fetched and no more.
    ``was_cut_off``: the connection to the scheduler broke, and everything that ran with it; no recording has a part in that.
    """

    assignment: Assignment
    request: Request
    worker: FleetWorker
    is_charged: bool
    fetched: Future[Any] | None = None
    converted: Future[Any] | None = None
    uploaded: Future[Any] | None = None
    has_converted: bool = False
    may_be_guilty: bool = False
    lost_at: float | None = None
    was_let_go: bool = False
    was_cut_off: bool = False

    @property
    def attempt_id(self) -> UUID:
        """Its attempt."""
        return self.assignment.order.attempt_id

    @property
    def is_near(self) -> bool:
        """Whether its files are read where they lie."""
        return not self.request.is_remote

    @property
    def has_begun(self) -> bool:
        """Whether its conversion was handed to the worker."""
        return self.converted is not None

    @property
    def is_fetched(self) -> bool:
        """Whether its files are on the worker, or what stopped them from getting there is known."""
        return self.fetched is not None and self.fetched.status == "finished"

    def let_go(self, *, cancel: bool) -> None:
        """Give the futures back, so that the scheduler forgets them."""
        futures = (self.fetched, self.converted, self.uploaded)
        self.fetched = self.converted = self.uploaded = None
        for future in futures:
            if future is None:
                continue
            if cancel and future.client.status == "running":
                future.cancel()  # type: ignore[no-untyped-call]  # distributed has no types here
            future.release()  # type: ignore[no-untyped-call]  # distributed has no types here


@dataclass(slots=True)
class Stages:
    """Submits the three stages of attempts and tells what became of them."""

    client: Client
    events: queue.SimpleQueue[tuple[str, UUID]] = field(default_factory=queue.SimpleQueue)

    def fetch(self, one: InFlight) -> None:
        """Let the worker bring the files of an attempt from afar to its scratch. Holds neither memory nor a slot."""
        one.fetched = self.client.submit(
            attempt.fetch, one.assignment, key=stage_key("fetch", one.attempt_id), **_pinned(one)
        )
        self._follow(one.fetched, FETCHED, one.attempt_id)

    def convert(self, one: InFlight, memory_bytes: int) -> None:
        """Hand an attempt to its worker whose files are there or near. Only this stage holds memory and a slot."""
        fetched = one.fetched
        one.converted = self.client.submit(
            attempt.convert,
            fetched or one.assignment,
            key=stage_key("convert", one.attempt_id),
            resources=one.worker.resources(memory_bytes),
            **_pinned(one),
        )
        one.uploaded = self.client.submit(
            attempt.upload, one.converted, key=stage_key("upload", one.attempt_id), **_pinned(one)
        )
        one.fetched, one.may_be_guilty = None, True
        if fetched is not None:
            fetched.release()  # type: ignore[no-untyped-call]  # distributed has no types here
        self._follow(one.converted, CONVERTED, one.attempt_id)
        self._follow(one.uploaded, ENDED, one.attempt_id)

    def _follow(self, future: Future[Any], kind: str, attempt_id: UUID) -> None:
        told = partial(self._tell, kind, attempt_id)
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

    def stop_all(self, in_flight: list[InFlight], *, unbegun_only: bool = False) -> None:
        """Ask the workers to end these attempts as released, or those alone whose conversion has not begun."""
        if self.client.status != "running":
            return
        by_worker: dict[str, list[UUID]] = {}
        for one in in_flight:
            by_worker.setdefault(one.worker.address, []).append(one.attempt_id)
        try:
            asked = {
                address: ask(self.client, attempt.abandon, attempt_ids, unbegun_only=unbegun_only, address=address)
                for address, attempt_ids in by_worker.items()
            }
        except ConnectionError as error:
            # The scheduler went this moment; with it every worker closes itself.
            _LOG.warning("the workers could not be asked to stop: %s", error)
            return
        heard = answers(asked, ANSWER_S)
        for address in asked.keys() - heard.keys():
            # its attempts end with their leases, and nobody waits for that
            _LOG.warning("the worker %s does not say that it stops", address)


def _pinned(one: InFlight) -> dict[str, Any]:
    return {"workers": [one.worker.address], "allow_other_workers": False, "pure": False}
