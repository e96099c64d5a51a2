"""Old flow runs of a Prefect server of our own are removed."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Completed

from flows.prefect_run import forget_old_flow_runs


def test_flow_runs_that_ended_before_are_removed_and_the_others_stay(prefect_url: str) -> None:
    with temporary_settings({PREFECT_API_URL: prefect_url}), get_client(sync_client=True) as client:
        flow_id = client.create_flow_from_name("of-a-test-of-retention")

        def ended() -> str:
            made = httpx.post(f"{prefect_url}/flow_runs/", json={"flow_id": str(flow_id)}).raise_for_status().json()
            client.set_flow_run_state(made["id"], Completed(), force=True)
            return str(made["id"])

        old = [ended(), ended()]
        moment = datetime.now(UTC)
        young = ended()
        assert forget_old_flow_runs(moment, most=1) == 1
        assert forget_old_flow_runs(moment) >= 1
        left = [
            one for one in (*old, young) if httpx.get(f"{prefect_url}/flow_runs/{one}").status_code == httpx.codes.OK
        ]
        assert left == [young]
        assert forget_old_flow_runs(moment) == 0
