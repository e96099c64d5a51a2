"""The whole service as processes of their own: ten datasets are asked for through Prefect while one part after the other is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from command import Zarrmill
from hook_receiver import HookReceiver, hook_receiver
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings
from small_dataset import write_recording, write_root
from sqlalchemy import Engine, text

from contract.layout import CATALOG_KEY
from db import datasets
from infra.database import engine as make_engine
from infra.home import Home
from infra.prefect_server import answers
from infra.processes import is_running, wait_gone
from infra.services import our_postgres
from infra.standing import Standing, is_up, read_standing

pytestmark = pytest.mark.timeout(1500)

IDS = [f"on{number:06d}" for number in range(1, 11)]
RECORDINGS = {dataset_id: 2 if dataset_id == IDS[0] else 1 for dataset_id in IDS}
PARTS = ["worker-1", "dask-scheduler", "runner", "prefect"]
PATIENCE_S = 400.0


def eventually(holds: Callable[[], bool], what: str, told: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}; {told()}"
        time.sleep(0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Service:
    """What was brought up, seen from outside."""

    zarrmill: Zarrmill
    home: Home
    target: Path
    receiver: HookReceiver
    engine: Engine
    flow_runs: dict[str, UUID] = field(default_factory=dict)
    killed_dataset: str = ""
    killed: dict[str, tuple[int, int]] = field(default_factory=dict)
    at_kill: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def standing(self) -> Standing:
        found = read_standing(self.home)
        assert found is not None, "it is up"
        return found

    def pid(self, name: str) -> int | None:
        part = self.standing.part(name)
        assert part is not None
        return part.pid

    def counts(self) -> dict[str, int]:
        """Requests by state."""
        with self.engine.connect() as c:
            return {row.state: row.n for row in c.execute(text("SELECT state, count(*) AS n FROM requests GROUP BY 1"))}

    def outstanding(self) -> int:
        counts = self.counts()
        return counts.get("waiting", 0) + counts.get("running", 0)

    def states(self) -> list[tuple[Any, ...]]:
        with self.engine.connect() as c:
            rows = c.execute(text("SELECT dataset_id, status, store_count, pending_count FROM datasets ORDER BY 1"))
            return [tuple(row) for row in rows]

    def ask(self, deployment: str, **parameters: object) -> UUID:
        with temporary_settings({PREFECT_API_URL: self.standing.addresses["prefect"]}):
            made: Any = run_deployment(deployment, parameters=parameters, timeout=0, as_subflow=False)
        return UUID(str(made.id))

    def flow_state(self, flow_run_id: UUID) -> tuple[str, str]:
        url = self.standing.addresses["prefect"]
        with temporary_settings({PREFECT_API_URL: url}), get_client(sync_client=True) as client:
            state = client.read_flow_run(flow_run_id).state
        assert state is not None
        return state.name or "", state.message or ""

    def ended_as(self, flow_run_id: UUID) -> str:
        """The name of the state in which a flow run ends."""
        ends = {"Completed", "Coalesced", "Superseded", "Failed", "Crashed"}
        eventually(lambda: self.flow_state(flow_run_id)[0] in ends, "it ends", lambda: self.flow_state(flow_run_id))
        return self.flow_state(flow_run_id)[0]

    def kill_one_dataset(self) -> None:
        """Kill the process of one dataset that is at work; the others, and the runner, are not touched."""
        with self.engine.connect() as c:
            at_work = c.execute(
                text(
                    "SELECT d.dataset_id, l.owner_pid FROM dataset_leases l JOIN datasets d ON d.pk = l.dataset_pk LIMIT 1"
                )
            ).one()
        self.killed_dataset = at_work.dataset_id
        os.kill(at_work.owner_pid, signal.SIGKILL)

    def kill(self, name: str) -> None:
        """Kill a part by its number and wait until another process stands in its place."""
        former = self.pid(name)
        assert former is not None
        self.at_kill[name] = self.counts()
        os.kill(former, signal.SIGKILL)
        eventually(lambda: self.pid(name) not in {None, former}, f"{name} is started again")
        now = self.pid(name)
        assert now is not None
        self.killed[name] = (former, now)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The topology after everything: brought up, asked, killed part by part, and through."""
    folder = tmp_path_factory.mktemp("service")
    home = Home(folder / "home")
    for dataset_id, count in RECORDINGS.items():
        write_root(folder / "sources" / dataset_id)
        for subject in range(count):
            write_recording(folder / "sources" / dataset_id, f"{subject + 1:02d}")
    with hook_receiver() as receiver:
        settings = {
            "ZARRMILL_CALLBACK_URL": receiver.url,
            "ZARRMILL_CALLBACK_TOKEN": "the-token-of-this-test",
            "ZARRMILL_STOP_GRACE_S": "5",
        }
        zarrmill = Zarrmill(home=home.path, cwd=folder, settings=settings)
        try:
            up = ["up", "--to", folder / "served", "--workers", "2x1GiB", "--slots", "1", "--datasets", "3"]
            zarrmill.run(*up, "--port", str(free_port()), "--json", timeout_s=PATIENCE_S)
            _pid, url = our_postgres(home)
            assert url is not None
            made = make_engine(url.replace("postgresql://", "postgresql+psycopg://"))
            one = Service(zarrmill, home, folder / "served", receiver, made)
            try:
                go(one, folder / "sources")
                yield one
            finally:
                made.dispose()
        finally:
            zarrmill.run("down", code=None, timeout_s=PATIENCE_S)
            left = [part.pid for part in (read_standing(home) or Standing(keeper_pid=0, target="")).parts]
            for pid in filter(None, left):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def go(service: Service, sources: Path) -> None:
    with service.engine.begin() as c:
        for dataset_id in IDS:
            place = str(sources / dataset_id)
            datasets.register(c, dataset_id=dataset_id, target=str(service.target), source=place)
    for dataset_id in IDS:
        service.flow_runs[dataset_id] = service.ask("reconvert_dataset/zarrmill", dataset_id=dataset_id)
    eventually(lambda: service.counts().get("running", 0) > 0, "a run is at work", service.counts)
    service.kill_one_dataset()
    for name in PARTS:
        service.kill(name)
    eventually(lambda: answers(service.standing.addresses["prefect"]) is None, "Prefect answers again")
    eventually(lambda: service.outstanding() == 0, "every request has ended", service.counts)
    # what was left undelivered by a process that was killed is delivered by upkeep
    while service.ended_as(service.ask("upkeep/zarrmill")) != "Completed":
        pass  # the one of the schedule ran just then and stood for it


def test_each_part_was_killed_and_stands_again_while_there_was_work(service: Service) -> None:
    assert list(service.killed) == PARTS
    for name, (former, now) in service.killed.items():
        assert not is_running(former)
        assert is_running(now), name
        assert service.at_kill[name].get("done", 0) < len(IDS), f"{name} was killed when there was nothing left to do"


def test_every_dataset_is_ready_and_whole(service: Service) -> None:
    assert service.states() == [(dataset_id, "ready", RECORDINGS[dataset_id], 0) for dataset_id in IDS]


def test_exactly_one_terminal_callback_arrived_for_each(service: Service) -> None:
    for dataset_id in IDS:
        [told] = service.receiver.terminal(dataset_id)
        assert (told["status"], told["store_count"]) == ("ready", RECORDINGS[dataset_id])
        assert "converting" in service.receiver.statuses(dataset_id)
        assert service.receiver.statuses(dataset_id)[-1] == "ready"
    assert {headers["x-webhook-token"] for headers, _body in service.receiver.received} == {"the-token-of-this-test"}


def test_the_run_of_a_killed_process_was_taken_up_by_another(service: Service) -> None:
    with service.engine.connect() as c:
        rows = c.execute(
            text("""
                SELECT u.state FROM runs u JOIN datasets d ON d.pk = u.dataset_pk WHERE d.dataset_id = :id ORDER BY u.number
            """),
            {"id": service.killed_dataset},
        )
        states = [row.state for row in rows]
    assert states == ["lost", "completed"]


def test_the_catalog_lists_all_ten(service: Service) -> None:
    api = service.standing.addresses["api"]
    with urllib.request.urlopen(f"{api}/catalog.json", timeout=60) as answer:
        served = json.load(answer)
    assert served == json.loads((service.target / CATALOG_KEY).read_text())
    assert {row["dataset_id"]: row["store_count"] for row in served["datasets"]} == RECORDINGS
    index = served["datasets"][0]["index_url"]
    with urllib.request.urlopen(index, timeout=60) as answer:
        assert len(json.load(answer)["stores"]) == RECORDINGS[served["datasets"][0]["dataset_id"]]


def test_the_filters_give_the_same_ten(service: Service) -> None:
    api = service.standing.addresses["api"]
    for asked, ids in (("has_zarr=1", IDS), ("has_zarr=1&has_zarr_verified=1", []), ("zarr_status=failed", [])):
        with urllib.request.urlopen(f"{api}/datasets?{asked}&limit=200", timeout=60) as answer:
            told = json.load(answer)
        assert sorted(row["dataset_id"] for row in told["datasets"]) == ids, asked
        assert told["total_count"] == len(ids)


def test_prefect_knows_how_each_flow_run_ended(service: Service) -> None:
    for dataset_id, flow_run_id in service.flow_runs.items():
        eventually(
            lambda at=flow_run_id: service.flow_state(at)[0] == "Completed",  # type: ignore[misc]  # bound at once
            f"the flow run of {dataset_id} ends",
            lambda at=flow_run_id: service.flow_state(at),  # type: ignore[misc]  # as above
        )


def test_a_dataset_that_is_not_known_is_refused_in_its_flow_run(service: Service) -> None:
    asked = service.ask("reconvert_dataset/zarrmill", dataset_id="on000404")
    eventually(lambda: service.flow_state(asked)[0] == "Refused", "it is refused", lambda: service.flow_state(asked))
    assert "is not registered" in service.flow_state(asked)[1]
    assert len(service.counts()) == 1, "no request was made"


def test_a_source_that_cannot_be_read_ends_with_one_failed_callback(service: Service) -> None:
    gone = "on000011"
    with service.engine.begin() as c:
        datasets.register(c, dataset_id=gone, target=str(service.target), source="/nowhere/at/all")
    asked = service.ask("reconvert_dataset/zarrmill", dataset_id=gone)
    assert service.ended_as(asked) == "Failed"
    assert "/nowhere/at/all" in service.flow_state(asked)[1]
    eventually(lambda: bool(service.receiver.terminal(gone)), "it is told")
    [told] = service.receiver.terminal(gone)
    assert (told["status"], told["store_count"], told["converted"]) == ("failed", 0, [])
    assert "/nowhere" not in told["error"], "no local path leaves the machine"


def test_what_stands_is_shown_with_its_health_and_its_logs(service: Service) -> None:
    shown = service.zarrmill.run("status", "--system", "--json").summary
    health = {part["name"]: part["health"] for part in shown["parts"]}
    assert set(health) == {"postgres", "prefect", "dask-scheduler", "api", "runner", "worker-1", "worker-2"}
    assert set(health.values()) == {"healthy"}, shown["parts"]
    assert "runner begins" in service.zarrmill.run("logs", "runner", "-n", "500").stdout
    assert "runner" in service.zarrmill.run("logs").stdout.split()
    nothing = service.zarrmill.run("logs", "no-such-part", code=2)
    assert "there are:" in nothing.stderr


def test_down_ends_what_up_started_and_nothing_else(service: Service) -> None:
    standing = service.standing
    pids = [part.pid for part in standing.parts if part.pid is not None]
    stranger = service.zarrmill.start("worker", "--scheduler", standing.addresses["dask"])
    try:
        service.zarrmill.run("down", timeout_s=PATIENCE_S)
        assert not is_up(service.home)
        assert [pid for pid in [*pids, standing.keeper_pid] if not wait_gone(pid, 60)] == []
    finally:
        stranger.kill()
        stranger.communicate()
    assert "nothing is up" in service.zarrmill.run("down").stdout
    for dataset_id in IDS:
        assert len(service.receiver.terminal(dataset_id)) == 1
