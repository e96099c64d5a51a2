"""The service's deployments: read from ``infra/prefect.yaml``, registered with Prefect, asked for by name."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import infra
from contract.errors import Refused

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.flows import Flow

__all__ = ["CONVERSION", "DEPLOYMENT", "EXPORT", "Deployed", "deployments", "flows_by_name", "interval_s", "register"]

log = logging.getLogger("zarrmill.flows.deployments")

DEPLOYMENT: Final = "zarrmill"
"""The name of every deployment of ours: ``run_deployment("upkeep/zarrmill")``."""
CONVERSION: Final = "reconvert_dataset"
EXPORT: Final = "export_window"
"""Its flow runs differ in their parameters, so none stands for another: one after the other, oldest first."""
_FILE: Final = Path(infra.__file__).with_name("prefect.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One deployment: the flow that it runs and, in UTC, when it runs by itself."""

    flow_name: str
    entrypoint: str
    description: str
    crons: tuple[str, ...]


def deployments(file: Path = _FILE) -> tuple[Deployed, ...]:
    """What the file says.

    Raises
    ------
    Refused
        The file is not what it should be.
    """
    import yaml

    try:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))["deployments"]
        found = tuple(_deployed(one) for one in given)
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise Refused(f"{file} cannot be read as a list of deployments", detail=repr(error)) from error
    return found


def _deployed(one: dict[str, Any]) -> Deployed:
    if one["name"] != DEPLOYMENT or any(schedule.get("timezone") != "UTC" for schedule in one["schedules"]):
        raise Refused(f"{_FILE.name}: the deployment of {one['flow_name']} must be called {DEPLOYMENT}, in UTC")
    return Deployed(
        flow_name=one["flow_name"],
        entrypoint=one["entrypoint"],
        description=one["description"],
        crons=tuple(schedule["cron"] for schedule in one["schedules"]),
    )


def interval_s(cron: str) -> int:
    """Seconds between two times of a schedule of the kinds that the file uses: every so many minutes, hourly, daily, weekly.

    Raises
    ------
    Refused
        It is of another kind.
    """
    minute, hour, day, month, weekday = cron.split()
    if (hour, day, month, weekday) == ("*", "*", "*", "*"):
        if minute.startswith("*/"):
            return int(minute.removeprefix("*/")) * 60
        if minute.isdecimal():
            return 3600
    elif minute.isdecimal() and hour.isdecimal() and (day, month) == ("*", "*"):
        if weekday == "*":
            return 86400
        if weekday.isdecimal():
            return 7 * 86400
    raise Refused(f"{_FILE.name}: {cron!r} is none of: every N minutes, hourly, daily, weekly")


def flows_by_name() -> dict[str, Flow[..., Any]]:
    """The flows that the deployments run."""
    from flows import scheduled
    from flows.export_deployed import export_window
    from flows.prefect_run import reconvert_dataset

    ours: list[Flow[..., Any]] = [reconvert_dataset, export_window, *scheduled.FLOWS]
    return {flow.name: flow for flow in ours}


def register() -> dict[UUID, str]:
    """Bring Prefect's deployments to what the file says; the name of the flow by deployment.

    Uses the Prefect API of the settings in effect. Old schedules of ours are replaced.
    """
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.deployments.runner import RunnerDeployment

    found: dict[UUID, str] = {}
    flows = flows_by_name()
    for one in deployments():
        made = RunnerDeployment.from_flow(
            flows[one.flow_name],
            name=DEPLOYMENT,
            description=one.description,
            schedules=[CronSchedule(cron=cron, timezone="UTC") for cron in one.crons],
            tags=["zarrmill"],
            version=None,
        )
        # apply_sync by its type may be awaited too; called from outside an event loop it never is
        found[cast("UUID", made.apply())] = one.flow_name
    log.info("%d deployments are registered", len(found))
    return found
