"""init and doctor against a real Postgres, a real Dask and an S3 endpoint that refuses what unsigned requests may not do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from command import Zarrmill
from distributed import Client, LocalCluster
from s3_server import KEY_ID, SECRET, S3Server, s3_server_process
from sqlalchemy import Engine, text
from state_bench import Bench

from contract.errors import Refused
from db import outbox
from db.migrate import HEAD
from flows.doctor.examine import examine
from flows.doctor.findings import Finding, alarm, exit_code, healthy, unknown
from flows.doctor.machine import space, unmet_requirements
from flows.doctor.services import examine_dask, examine_prefect, examine_state, tables
from flows.doctor.standing import examine_services
from flows.doctor.target import examine_target, openness_finding
from flows.initialise import initialise
from infra.home import Home
from infra.locks import holding
from infra.settings import Settings
from infra.standing import PartState, Standing, standing_files
from infra.storage.openness import Openness, look

STANDS = {"database": False, "bucket": False, "policy": False, "cors": False, "target": False, "unsigned": False}


@pytest.fixture(scope="module")
def guarded() -> Iterator[S3Server]:
    with s3_server_process(guarded=True) as server:
        yield server


@dataclass(frozen=True)
class Place:
    """A bucket name of one test, at a server, with settings that reach it."""

    server: S3Server
    name: str
    settings: Settings

    @property
    def url(self) -> str:
        return f"s3://{self.name}/served"

    def init(self, *, public: bool) -> dict[str, bool]:
        return {step.name: step.done for step in initialise(self.settings, self.url, public=public)}

    def target_findings(self, *, said_open: bool | None = None) -> dict[str, Finding]:
        return {one.name: one for one in examine_target(self.settings, self.url, said_open=said_open)}


@pytest.fixture
def place(guarded: S3Server, database_url: str) -> Place:
    return place_at(guarded.url, guarded, database_url)


def place_at(endpoint: str, server: S3Server, database_url: str, **more: Any) -> Place:
    settings = Settings(
        database_url=database_url,
        s3_endpoint=endpoint,
        s3_region="us-east-2",
        s3_access_key_id=KEY_ID,
        s3_secret_access_key=SECRET,
        s3_tries=1,
        **more,
    )
    return Place(server, f"bucket-{uuid4().hex[:12]}", settings)


@contextmanager
def worker_of(scheduler: str, **resources: int) -> Iterator[None]:
    """A plain Dask worker that declares these resources, whatever its machine has, once the scheduler knows it."""
    declared = ",".join(f"{name}={amount}" for name, amount in resources.items())
    command = [sys.executable, "-P", "-m", "dask", "worker", scheduler, "--no-nanny", "--resources", declared]
    options = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0", "--memory-limit", "0"]
    with subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL) as process:
        try:
            with Client(scheduler, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            yield
        finally:
            process.terminate()


def policy_of(place: Place) -> list[dict[str, Any]]:
    answer = place.server.plain_client.get_bucket_policy(Bucket=place.name)
    statements: list[dict[str, Any]] = json.loads(answer["Policy"])["Statement"]
    return statements


def test_init_makes_what_is_missing_once_and_keeps_the_rights_of_others(place: Place) -> None:
    assert place.init(public=True) == {**STANDS, "bucket": True, "policy": True, "cors": True}
    assert place.init(public=True) == STANDS
    (statement,) = policy_of(place)
    below = f"arn:aws:s3:::{place.name}/served/"
    assert statement["Resource"] == [
        f"{below}{what}" for what in ("*/zarr/*", "zarr-catalog.json", ".zarrmill/probe-*")
    ]
    theirs = {**statement, "Sid": "Theirs", "Resource": [f"arn:aws:s3:::{place.name}/other/*"]}
    place.server.plain_client.put_bucket_policy(
        Bucket=place.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [theirs]})
    )
    assert place.init(public=True) == {**STANDS, "policy": True}
    assert [one["Sid"] for one in policy_of(place)] == ["Theirs", statement["Sid"]]
    # what is not below the prefix was never opened
    for key in ("served/x/zarr/a", "served/_runs/x/a", "private/a"):
        place.server.plain_client.put_object(Bucket=place.name, Key=key, Body=b"x")
    base = f"{place.server.url}/{place.name}/"
    assert look(base, "served/x/zarr/a", unwritten="served/x/zarr/b").is_as_published
    assert look(base, "served/_runs/x/a", unwritten="served/_runs/x/b").may_read is False
    assert look(base, "private/a", unwritten="private/b").may_read is False


def test_init_without_public_opens_nothing(place: Place) -> None:
    assert place.init(public=False) == {"database": False, "bucket": True, "target": False, "unsigned": False}
    findings = place.target_findings()
    assert "read: no, list: no, write: no" in findings["unsigned calls"].told
    assert findings["unsigned calls"].health == "healthy", "a closed bucket is as good as an open one"


def test_init_refuses_a_service_that_lets_anybody_list(s3_server: S3Server, database_url: str) -> None:
    place = place_at(s3_server.url, s3_server, database_url)
    with pytest.raises(Refused, match="list: yes"):
        place.init(public=True)
    assert place.target_findings()["unsigned calls"].health == "alarm"


def test_init_of_an_empty_database_makes_the_tables(postgres_server: Any, tmp_path: Path) -> None:
    name = f"empty_{uuid4().hex[:12]}"
    postgres_server.create_database(name)
    url = postgres_server.url(name)
    assert tables(url).health == "alarm"
    settings = Settings(database_url=url)
    steps = {step.name: step for step in initialise(settings, str(tmp_path / "served"), public=False)}
    assert (steps["database"].done, HEAD in steps["database"].sentence) == (True, True)
    assert (tmp_path / "served").is_dir()
    assert tables(url).health == "healthy"
    again = {step.name: step.done for step in initialise(settings, str(tmp_path / "served"), public=False)}
    assert again == {"database": False, "target": False}
    with pytest.raises(Refused, match="--public"):
        list(initialise(settings, str(tmp_path / "served"), public=True))


def test_the_doctor_sees_by_unsigned_calls_what_was_changed_behind_its_back(place: Place) -> None:
    place.init(public=True)
    fine = place.target_findings(said_open=True)
    assert {name: one.health for name, one in fine.items()} == dict.fromkeys(
        ("target", "conditional PUT", "unsigned calls"), "healthy"
    )
    place.server.plain_client.delete_bucket_cors(Bucket=place.name)
    assert "CORS" in place.target_findings()["unsigned calls"].told
    assert place.target_findings()["unsigned calls"].health == "alarm"
    place.server.plain_client.delete_bucket_policy(Bucket=place.name)
    assert place.target_findings()["unsigned calls"].health == "healthy"
    closed = place.target_findings(said_open=True)["unsigned calls"]
    assert (closed.health, "documents say" in closed.told) == ("alarm", True)


def test_a_service_that_does_not_answer_is_unknown_and_a_bucket_that_is_not_there_an_alarm(
    guarded: S3Server, database_url: str
) -> None:
    nobody = place_at("http://127.0.0.1:1", guarded, database_url)
    assert {one.health for one in nobody.target_findings().values()} == {"unknown"}
    assert {one.health for one in place_at(guarded.url, guarded, database_url).target_findings().values()} == {"alarm"}
    seen = look("http://127.0.0.1:1/b/", "k", unwritten="u")
    assert seen == Openness(may_read=None, may_list=None, may_write=None, cors=None)


@pytest.mark.parametrize(
    ("may_read", "may_list", "may_write", "cors", "said_open", "health"),
    [
        (True, False, False, True, True, "healthy"),
        (True, False, False, True, None, "healthy"),
        (False, False, False, False, False, "healthy"),
        (False, False, False, False, True, "alarm"),
        (True, True, False, True, True, "alarm"),
        (True, False, True, True, True, "alarm"),
        (True, False, False, False, True, "alarm"),
        (True, None, True, None, None, "alarm"),
        (True, False, False, None, True, "unknown"),
        (None, None, None, None, None, "unknown"),
        (None, False, False, None, True, "unknown"),
    ],
)
def test_what_unsigned_calls_saw_has_one_word(
    *,
    may_read: bool | None,
    may_list: bool | None,
    may_write: bool | None,
    cors: bool | None,
    said_open: bool | None,
    health: str,
) -> None:
    seen = Openness(may_read=may_read, may_list=may_list, may_write=may_write, cors=cors)
    assert openness_finding(seen, said_open=said_open).health == health


def folder_findings(root: Path) -> dict[str, str]:
    return {one.name: one.health for one in examine_target(Settings(), str(root), said_open=None)}


def test_a_folder_is_seen_to_take_something_new_or_not(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    for root in (tmp_path / "served", tmp_path / "not" / "yet"):
        assert folder_findings(root)["target"] == "healthy"
    assert [path.name for path in tmp_path.rglob("*")] == ["served"], "nothing is left, and nothing made"
    assert folder_findings(Path("/proc/x/served")) == {"target": "alarm"}, "there nobody makes a folder, root neither"


def test_of_a_service_that_stands_every_part_is_looked_at(tmp_path: Path, database_url: str) -> None:
    settings = Settings(home=tmp_path / "home", database_url=database_url)
    assert [one.name for one in examine_services(settings)] == ["prefect", "workers"]
    files = standing_files(Home(settings.home))
    with (
        holding(files.lock),
        LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1", protocol="tcp://") as cluster,
        worker_of(cluster.scheduler_address, MEMORY=1 << 60, SLOT=1),
    ):
        assert [(one.name, one.health) for one in examine_services(settings)] == [("service", "unknown")]
        nobody = "http://127.0.0.1:1"
        log, since = "worker-1.log", "2026-01-01T00:00:00Z"
        Standing(
            keeper_pid=1,
            target=str(tmp_path),
            addresses={"prefect": f"{nobody}/api", "api": nobody, "dask": cluster.scheduler_address},
            parts=(PartState(name="worker-1", pid=None, restarts=3, since_utc=since, log=log, last_exit="killed"),),
        ).write(files.state)
        found = {one.name: one for one in examine_services(settings)}
    health = {name: one.health for name, one in found.items()}
    assert {name: health[name] for name in ("postgres", "prefect", "dask-scheduler", "api", "runner", "worker-1")} == {
        "postgres": "healthy",
        "prefect": "alarm",
        "dask-scheduler": "healthy",
        "api": "alarm",
        "runner": "alarm",
        "worker-1": "alarm",
    }
    assert "killed" in found["worker-1"].told
    [worker] = [one for name, one in found.items() if name.startswith("worker tcp://")]
    assert (worker.health, "more than it has" in worker.told) == ("alarm", True)


def test_clocks_and_callbacks(engine: Engine) -> None:
    bench = Bench(engine)
    with engine.connect() as c:
        assert {one.health for one in examine_state(c)} == {"healthy"}
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="failed", body=b"{}")
        (taken,) = outbox.due_deliveries(c, endpoint="https://a.example.org#1")
        outbox.failed_delivery(c, pk=taken.pk, endpoint="https://a.example.org#1", error="it answers 500")
    bench.wait(minutes=59)
    with bench.begin() as c:
        assert {one.name: one.health for one in examine_state(c)} == {"clocks": "alarm", "callbacks": "healthy"}
    bench.wait(minutes=2)
    with bench.begin() as c:
        found = {one.name: one for one in examine_state(c)}
    assert found["callbacks"].health == "alarm"
    assert "it answers 500" in found["callbacks"].told
    assert "zarrmill_now()" in found["clocks"].told, "the bench's clock stands in another year"


def test_a_worker_that_promises_more_than_its_machine_has_is_an_alarm(home: Path) -> None:
    (home / "scratch").mkdir()
    with (
        LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1", protocol="tcp://") as local,
        worker_of(local.scheduler_address, MEMORY=1 << 50, SLOT=1),
    ):
        settings = Settings(database_url="postgresql://u@127.0.0.1:1/d", dask_address=local.scheduler_address)
        found = list(examine_dask(settings))
        assert [one.health for one in found] == ["healthy", "alarm"]
        assert "promises more" in found[1].told
        assert "loopback" in found[0].told
    assert [(one.name, one.health) for one in examine_dask(settings)] == [("scheduler", "alarm")]


def test_a_scheduler_without_workers_is_an_alarm(home: Path) -> None:
    with LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1", protocol="tcp://") as local:
        settings = Settings(database_url="postgresql://u@127.0.0.1:1/d", dask_address=local.scheduler_address)
        ((name, health, told),) = [(one.name, one.health, one.told) for one in examine_dask(settings)]
    assert (name, health, "zarrmill worker" in told) == ("scheduler", "alarm", True)


def test_a_prefect_that_does_not_answer_is_an_alarm() -> None:
    assert examine_prefect(Settings(prefect_api_url="http://127.0.0.1:1/api")).health == "alarm"
    assert examine_prefect(Settings()).health == "healthy"


def test_requirements_of_extras_are_looked_at_too() -> None:
    assert unmet_requirements() == []
    # its extra dev asks for schemathesis and is not installed by name: asked of the distribution alone, nothing is unmet
    assert unmet_requirements("pytest") == []


def test_space_is_that_of_the_first_folder_there_is(tmp_path: Path) -> None:
    found = space("space", tmp_path / "a" / "b")
    assert str(tmp_path) in found.told
    assert found.health in ("healthy", "alarm")


def test_the_worst_line_is_the_exit_code() -> None:
    assert exit_code([]) == 0
    assert exit_code([healthy("a", "")]) == 0
    assert exit_code([healthy("a", ""), unknown("b", "")]) == 3
    assert exit_code([unknown("b", ""), alarm("c", "")]) == 1


def test_the_commands(place: Place, tmp_path: Path) -> None:
    made = place.init(public=True)
    assert made["bucket"]
    environment = {
        "ZARRMILL_DATABASE_URL": place.settings.database_url.get_secret_value() if place.settings.database_url else "",
        "AWS_ENDPOINT_URL": place.server.url,
        "AWS_DEFAULT_REGION": "us-east-2",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    zarrmill = Zarrmill(tmp_path / "home", tmp_path, environment)
    again = zarrmill.run("init", "--to", place.url, "--public", "--json")
    assert {line["name"]: line["done"] for line in again.lines} == STANDS
    looked = zarrmill.run("doctor", "--to", place.url, "--json", code=None).summary
    wrong = [one for one in looked["findings"] if one["health"] != "healthy" and "space" not in one["name"]]
    assert wrong == []
    place.server.plain_client.delete_bucket_cors(Bucket=place.name)
    told = zarrmill.run("doctor", "--to", place.url, code=1)
    assert "alarm    unsigned calls" in told.stdout
    assert SECRET not in told.stdout + told.stderr + again.stdout


def test_a_database_that_cannot_be_reached_is_an_alarm_and_the_rest_is_looked_at(home: Path, tmp_path: Path) -> None:
    settings = Settings(database_url="postgresql://u:hidden-word@127.0.0.1:1/d")
    found = {one.name: one for one in examine(settings, str(tmp_path / "served"), has_state=True)}
    assert found["database"].health == "alarm"
    assert "hidden-word" not in str(found)
    assert "target" in found


def test_a_database_of_another_version_is_an_alarm(engine: Engine, database_url: str) -> None:
    with engine.begin() as c:
        c.execute(text("UPDATE alembic_version SET version_num = 'other'"))
    assert "zarrmill init" in tables(database_url).told
