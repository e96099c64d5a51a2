"""What Prefect has as deployments is what ``infra/prefect.yaml`` says, and parameters are refused before anything starts."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.orchestration import get_client
from prefect.client.schemas.schedules import CronSchedule
from prefect.deployments import run_deployment
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL, temporary_settings
from product import ROOT

from contract.errors import Refused
from flows.deployments import DEPLOYMENT, deployments, flows_by_name, interval_s, register


def test_the_file_names_flows_that_are_there_by_their_place() -> None:
    flows = flows_by_name()
    listed = deployments()
    assert {one.flow_name for one in listed} == set(flows)
    for one in listed:
        place, _, name = one.entrypoint.partition(":")
        assert (ROOT / place).is_file(), one
        assert Path(inspect.getfile(flows[one.flow_name].fn)) == ROOT / place
        assert name == flows[one.flow_name].fn.__name__
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    assert [one.flow_name for one in listed if f"`{one.flow_name}/{DEPLOYMENT}`" not in page] == []


@pytest.mark.parametrize(
    ("cron", "seconds"),
    [("*/5 * * * *", 300), ("0 * * * *", 3600), ("15 2 * * *", 86400), ("0 6 * * 1", 604800)],
)
def test_the_runner_knows_how_often_each_schedule_comes(cron: str, seconds: int) -> None:
    assert interval_s(cron) == seconds


@pytest.mark.parametrize("cron", ["0 6 1 * *", "0 6 * * 1-5", "0-10 * * * *"])
def test_a_schedule_of_another_kind_is_refused(cron: str) -> None:
    with pytest.raises(Refused, match="none of"):
        interval_s(cron)


def test_every_schedule_of_the_file_is_of_a_known_kind() -> None:
    assert all(interval_s(cron) >= 300 for one in deployments() for cron in one.crons)


@pytest.mark.parametrize("text", ["", "deployments: 7", "deployments: [{name: other}]", "- a"])
def test_a_file_that_is_no_list_of_deployments_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "prefect.yaml").write_text(text)
    with pytest.raises(Refused, match=r"prefect\.yaml"):
        deployments(tmp_path / "prefect.yaml")


def test_the_file_is_also_what_prefects_own_command_reads() -> None:
    given = yaml.safe_load((ROOT / "infra" / "prefect.yaml").read_text())
    assert {one["name"] for one in given["deployments"]} == {DEPLOYMENT}


def standing(client: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in deployments():
        read = client.read_deployment_by_name(f"{one.flow_name}/{DEPLOYMENT}")
        found[one.flow_name] = [schedule.schedule.cron for schedule in read.schedules if schedule.active]
    return found


def test_registering_makes_prefect_equal_to_the_file_and_parameters_are_checked(prefect_url: str, home: Path) -> None:
    wanted = {one.flow_name: list(one.crons) for one in deployments()}
    with temporary_settings({PREFECT_API_URL: prefect_url}), get_client(sync_client=True) as client:
        first = register()
        assert standing(client) == wanted
        # somebody adds a schedule by hand, and an older version had another one
        upkeep = next(key for key, name in first.items() if name == "upkeep")
        client.create_deployment_schedules(upkeep, [(CronSchedule(cron="7 7 * * *", timezone="UTC"), True)])
        assert register() == first
        assert standing(client) == wanted
        for wrong in ({"dataset_id": "on1"}, {"dataset_id": "on000001", "mode": "quickly"}, {"mode": "auto"}):
            with pytest.raises(PrefectHTTPStatusError, match="409"):
                run_deployment("reconvert_dataset/zarrmill", parameters=wrong, timeout=0, as_subflow=False)
