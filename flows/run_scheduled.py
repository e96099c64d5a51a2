"""``python -m flows.run_scheduled FLOW [FLOW_RUN_ID]``: one flow of the schedule, as a process of its own.

With a flow run's number it is carried out as that flow run; without one, because Prefect is away, it is carried out all the same.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from contract.errors import ZarrmillError
from infra.children import being_child
from infra.home import Home
from infra.settings import Settings, load_settings
from infra.telemetry import set_up_logging

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

__all__ = ["main"]

log = logging.getLogger("zarrmill.flows.scheduled")


def main(arguments: list[str] | None = None) -> int:
    """Carry the flow out; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m flows.run_scheduled")
    parser.add_argument("flow")
    parser.add_argument("flow_run", nargs="?", type=UUID)
    chosen = parser.parse_args(arguments)
    settings = load_settings()
    import prefect.main  # noqa: F401 - it puts handlers of its own in the place of those it finds

    set_up_logging(verbose=True, json=False, secrets=settings.secret_values(), alone=True)
    with being_child(Home(settings.home), chosen.flow):
        try:
            return _as_flow_run(settings, chosen.flow, chosen.flow_run) if chosen.flow_run else _unrecorded(chosen.flow)
        except ZarrmillError as error:
            log.error("%s: %s %s", chosen.flow, error.sentence, error.detail or "")  # noqa: TRY400 - they say it all
            return error.exit_code


def _unrecorded(name: str) -> int:
    from flows.deployments import flows_by_name

    log.info("%s begins, without Prefect", name)
    flows_by_name()[name].fn()
    return 0


def _as_flow_run(settings: Settings, name: str, flow_run_id: UUID) -> int:
    from prefect.flow_engine import run_flow

    from flows.deployments import flows_by_name
    from flows.prefect_adopted import adopt, asking

    assert settings.prefect_api_url is not None, "the runner tells where Prefect is"
    with asking(settings.prefect_api_url):
        adopted = adopt(flow_run_id, tag=name)
        if adopted is None:
            log.info("%s: its flow run was cancelled", name)
            return 0
        log.info("%s begins", name)
        given = dict(adopted.parameters)
        found = run_flow(flows_by_name()[name], flow_run=adopted, parameters=given, return_type="state")
        state = cast("State[Any]", found)
    log.info("%s ended: %s %s", name, state.name, state.message or "")
    return 0 if state.is_completed() else 1


if __name__ == "__main__":
    sys.exit(main())
