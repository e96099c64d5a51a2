"""What Prefect asks of us: due flow runs of our deployments become requests in Postgres, or are answered at once.

Prefect is asked, never waited for: when it is away nothing of what runs stops, and what is due waits there.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import httpx
from prefect.exceptions import ParameterBindError, ParameterTypeError, SignatureMismatchError
from prefect.states import Cancelled, Completed, Failed, Pending

from contract.errors import ZarrmillError
from db import flow_runs
from flows.asking import ask_for_conversion
from flows.deployments import CONVERSION, EXPORT, flows_by_name, register
from flows.prefect_adopted import asking, end_flow_run

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import State
    from prefect.client.schemas.responses import FlowRunResponse
    from sqlalchemy import Engine

    from infra.settings import Settings

__all__ = ["DueFlow", "Inbox"]

log = logging.getLogger("zarrmill.flows.inbox")

_AT_MOST: Final = 200
_AGAIN_S: Final = 10.0
"""How long a Prefect that did not answer is left alone."""
_REGISTER_AGAIN_S: Final = 600.0
"""How often deployments are registered anew: somebody may have emptied Prefect's database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFlow:
    """A flow of the schedule that is to be run now, as this flow run."""

    name: str
    flow_run_id: UUID


class Inbox:
    """Asks one Prefect server for what is due."""

    def __init__(self, settings: Settings, engine: Engine, api_url: str) -> None:
        self._settings = settings
        self._engine = engine
        self._api_url = api_url
        self._deployments: dict[UUID, str] = {}
        self._registered_at = float("-inf")
        self._not_before = float("-inf")
        self.away_since: float | None = None

    def turn(self, running: set[str]) -> list[DueFlow]:
        """Answer what can be answered; the scheduled flows that are to be started. ``running`` are those that run."""
        now = time.monotonic()
        if now < self._not_before:
            return []
        try:
            with asking(self._api_url) as client:
                found = self._turn(client, running, now)
        except (httpx.HTTPError, RuntimeError) as error:
            # a RuntimeError is how Prefect's client says that it did not reach its server
            log.info("Prefect does not answer: %s", type(error).__name__)
            self._not_before = now + _AGAIN_S
            self._registered_at = float("-inf")
            self.away_since = self.away_since or now
            return []
        self.away_since = None
        return found

    def _turn(self, client: SyncPrefectClient, running: set[str], now: float) -> list[DueFlow]:
        if now - self._registered_at > _REGISTER_AGAIN_S:
            self._deployments = register()
            self._registered_at = now
        due = client.get_scheduled_flow_runs_for_deployments(
            list(self._deployments), scheduled_before=datetime.now(UTC), limit=_AT_MOST
        )
        by_flow: dict[str, list[FlowRunResponse]] = {}
        for one in due:
            name = self._deployments.get(one.deployment_id) if one.deployment_id else None
            if name is not None:
                by_flow.setdefault(name, []).append(one)
        for one in by_flow.pop(CONVERSION, []):
            self._take_in(client, one)
        self._close(client)
        exports = by_flow.pop(EXPORT, [])
        found = [_oldest(client, EXPORT, exports)] if exports and EXPORT not in running else []
        scheduled = [_newest(client, name, waiting, running) for name, waiting in by_flow.items()]
        return found + [one for one in scheduled if one is not None]

    def _take_in(self, client: SyncPrefectClient, one: FlowRunResponse) -> None:
        """Make a request of a flow run, or end it with the reason why not."""
        answer: State[Any]
        try:
            given = flows_by_name()[CONVERSION].validate_parameters(dict(one.parameters))
            asked = ask_for_conversion(
                self._engine,
                given["dataset_id"],
                mode=given.get("mode", "auto"),
                commit=given.get("commit"),
                target=given.get("target"),
                asked_by=f"prefect {one.name}",
            )
            if asked.stands_alone:
                with self._engine.begin() as c:
                    flow_runs.note(c, flow_run_id=one.id, request_pk=asked.request_pk)
        except (ParameterTypeError, ParameterBindError, SignatureMismatchError) as error:
            answer = Failed(name="Refused", message=f"the parameters cannot be used: {error}")
        except ZarrmillError as error:
            answer = Failed(name="Refused", message=error.sentence)
        else:
            answer = (
                Pending(message=asked.sentence)
                if asked.stands_alone
                else Completed(name="Coalesced", message=asked.sentence)
            )
        client.set_flow_run_state(one.id, answer, force=True)

    def _close(self, client: SyncPrefectClient) -> None:
        """End in Prefect the flow runs whose request has ended without them."""
        with self._engine.connect() as c:
            over = flow_runs.unclosed(c)
        for one in over:
            state: State[Any] = Completed(message=one.told) if one.went_well else Failed(message=one.told)
            if end_flow_run(client, one.flow_run_id, state):
                with self._engine.begin() as c:
                    flow_runs.close(c, flow_run_id=one.flow_run_id)


def _oldest(client: SyncPrefectClient, name: str, waiting: list[FlowRunResponse]) -> DueFlow:
    """The flow run to start of those that each ask for something else; the others stay due."""
    first = min(waiting, key=_due)
    client.set_flow_run_state(first.id, Pending(message="its process begins"), force=True)
    return DueFlow(name=name, flow_run_id=first.id)


def _due(one: FlowRunResponse) -> tuple[datetime, UUID]:
    return one.expected_start_time or datetime.min.replace(tzinfo=UTC), one.id


def _newest(client: SyncPrefectClient, name: str, waiting: list[FlowRunResponse], running: set[str]) -> DueFlow | None:
    """The flow run of a schedule to start. Of several that have become due, the newest stands for all."""
    *older, newest = sorted(waiting, key=_due)
    for one in older:
        client.set_flow_run_state(one.id, Cancelled(name="Superseded", message="a later one stands for it"), force=True)
    if name in running:
        told: State[Any] = Cancelled(name="Coalesced", message="the one before it still runs")
        client.set_flow_run_state(newest.id, told, force=True)
        return None
    client.set_flow_run_state(newest.id, Pending(message="its process begins"), force=True)
    return DueFlow(name=name, flow_run_id=newest.id)
