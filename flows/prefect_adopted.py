"""Flow runs that Prefect made for a deployment, carried out by processes of ours; and whether Prefect answers at all."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from prefect.states import Pending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun, State

__all__ = ["adopt", "asking", "end_flow_run"]

log = logging.getLogger("zarrmill.flows.prefect")


@contextmanager
def asking(api_url: str) -> Iterator[SyncPrefectClient]:
    """A client of this Prefect API, which is also the one that flows started inside are recorded at."""
    settings: dict[Any, Any] = {PREFECT_API_URL: api_url, PREFECT_LOGGING_TO_API_ENABLED: False}
    with temporary_settings(settings), get_client(sync_client=True) as client:
        yield client


def adopt(flow_run_id: UUID, *, tag: str) -> FlowRun | None:
    """The flow run, ready to be run by this process; None when it is gone, or was cancelled.

    One that an earlier process of the same request left behind is taken up again.
    """
    with get_client(sync_client=True) as client:
        try:
            found = client.read_flow_run(flow_run_id)
        except ObjectNotFound:
            return None
        if found.state is not None and (found.state.is_cancelled() or found.state.is_cancelling()):
            return None
        client.set_flow_run_state(flow_run_id, Pending(message="its process has begun"), force=True)
        client.update_flow_run(flow_run_id, tags=sorted({*found.tags, tag}))
        return client.read_flow_run(flow_run_id)


def end_flow_run(client: SyncPrefectClient, flow_run_id: UUID, state: State[Any]) -> bool:
    """Put a flow run that has no end yet into this one; False when Prefect did not answer."""
    try:
        found = client.read_flow_run(flow_run_id)
        if found.state is None or not found.state.is_final():
            client.set_flow_run_state(flow_run_id, state, force=True)
    except ObjectNotFound:
        return True
    except (httpx.HTTPError, RuntimeError) as error:
        log.info("the end of flow run %s was not noted in Prefect: %s", flow_run_id, type(error).__name__)
        return False
    return True
