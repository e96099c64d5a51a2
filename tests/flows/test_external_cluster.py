"""An external cluster of which something ends at the worst moment, while at least five recordings convert: nobody is charged."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from command import Zarrmill, finish
from distributed import Client
from external import External, external_cluster
from fan_out_bench import FORMAT, MB, ROOT, SUPPORT, Shop, wait_until
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterTags
from prefect.settings import PREFECT_API_URL, temporary_settings
from scene import AT_LEAST, Innocents
from small_dataset import write_recording, write_root
from sqlalchemy import Connection, Engine, text

from db import datasets, recordings
from db.datasets import Dataset
from db.recordings import RecordingHistory
from flows.prefect_left import dataset_tag
from infra.database import engine as make_engine

NAMES = ("i1", "i2", "i3", "i4", "i5", "i6")
THREE_A_WORKER = 200 * MB
FOUR_A_WORKER = 150 * MB


@pytest.fixture(scope="module")
def external(tmp_path_factory: pytest.TempPathFactory) -> Iterator[External]:
    with external_cluster(tmp_path_factory.mktemp("external")) as made:
        yield made


@pytest.fixture(scope="module")
def engine(external: External) -> Iterator[Engine]:
    made = make_engine(external.database_url)
    yield made
    made.dispose()


@pytest.fixture
def client(external: External) -> Iterator[Client]:
    def connected() -> bool:
        try:
            found.append(Client(external.address, set_as_default=False, timeout=60))
        except OSError:
            return False
        return True

    found: list[Client] = []
    wait_until(connected, 120)
    (made,) = found
    made.wait_for_workers(len(external.workers), timeout=240)
    yield made
    made.close(timeout=5)


@pytest.fixture
def innocents(engine: Engine, tmp_path: Path) -> Innocents:
    made = Innocents(Shop.open(engine, tmp_path / "innocent"), tmp_path)
    made.put(*NAMES)
    return made


def at_fault(innocents: Innocents, fault: Callable[[], None], then: Callable[[], bool]) -> Callable[[], str | None]:
    """Do ``fault`` once at least five innocents are converting; open their gate when ``then`` holds."""
    done: list[int] = []

    def watch() -> str | None:
        if not done:
            if innocents.converting() >= AT_LEAST:
                done.append(innocents.converting())
                fault()
        elif not innocents.gate.exists() and then():
            innocents.open_gate()
        return None

    return watch


def workers_of(shop: Shop) -> dict[str, list[str]]:
    """For each recording, the workers of its attempts in order."""
    return {name: [str(attempt.worker) for attempt in shop.attempts(name)] for name in shop.steps}


def assert_all_done(innocents: Innocents, outcomes: set[str]) -> None:
    """Each innocent is served, nothing was counted, and attempts ended in these ways alone."""
    shop = innocents.shop
    innocents.assert_unharmed()
    assert {attempt.outcome for name in NAMES for attempt in shop.attempts(name)} <= outcomes
    assert shop.reserved() == 0


def test_a_worker_that_is_asked_to_end_hands_over_to_one_that_joins(
    external: External, client: Client, innocents: Innocents
) -> None:
    shop = innocents.shop
    leaving = external.workers.pop("one")
    before: set[str] = set()

    def ask() -> None:
        before.update(worker for workers in workers_of(shop).values() for worker in workers)
        leaving.send_signal(signal.SIGTERM)
        external.start_worker("three")

    def handed_over() -> bool:
        now = {workers[-1] for workers in workers_of(shop).values() if workers}
        return leaving.poll() is not None and bool(now - before)

    run = shop.begin()
    watch = at_fault(innocents, ask, handed_over)
    reports = shop.convert(client, run, should_stop=watch, **innocents.orders(permitted_bytes=THREE_A_WORKER))
    assert len(before) == 2
    assert {report.outcome for report in reports.values()} == {"done"}
    # whatever ran there was let go by the worker itself
    assert_all_done(innocents, {"done", "released"})
    shop.end(run)


def test_what_converts_on_a_drained_worker_is_taken_over_by_another(
    external: External, client: Client, innocents: Innocents, tmp_path: Path
) -> None:
    shop = innocents.shop
    zarrmill = Zarrmill(external.folder / "home", tmp_path, {"ZARRMILL_DATABASE_URL": external.database_url})
    drained: list[str] = []

    def drain() -> None:
        workers = [workers[0] for workers in workers_of(shop).values() if workers]
        drained.append(max(workers, key=workers.count))
        zarrmill.run("drain", drained[0], "--grace", "1")

    def taken_over() -> bool:
        moved = [workers for workers in workers_of(shop).values() if workers[0] == drained[0] != workers[-1]]
        return len(moved) >= 2 and innocents.converting() >= 2

    run = shop.begin()
    watch = at_fault(innocents, drain, taken_over)
    reports = shop.convert(client, run, should_stop=watch, **innocents.orders(permitted_bytes=FOUR_A_WORKER))
    zarrmill.run("drain", "--undo")
    assert {report.outcome for report in reports.values()} == {"done"}
    assert_all_done(innocents, {"done", "released"})
    attempts = [attempt for name in NAMES for attempt in shop.attempts(name)]
    assert {attempt.outcome for attempt in attempts if attempt.worker == drained[0]} == {"released"}
    shop.end(run)


def test_a_restart_of_postgres_costs_no_attempt(external: External, client: Client, innocents: Innocents) -> None:
    shop = innocents.shop

    def restart() -> None:
        external.postgres.stop(patience_s=5)
        innocents.open_gate()  # so that conversions end, and stores are noted, while it is away
        time.sleep(1.5)  # how long it is away; nothing waits for that
        external.postgres.start()

    run = shop.begin()
    reports = shop.convert(client, run, should_stop=at_fault(innocents, restart, lambda: True), **innocents.orders())
    assert {report.outcome for report in reports.values()} == {"done"}
    assert_all_done(innocents, {"done"})
    assert {name: len(shop.attempts(name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    shop.end(run)


def test_a_restart_of_the_scheduler_lets_everything_begin_again_side_by_side(
    external: External, client: Client, innocents: Innocents
) -> None:
    shop = innocents.shop
    old = list(external.workers.values())

    def converting_again() -> bool:
        external.look_after_workers()
        moved = [workers for workers in workers_of(shop).values() if len(set(workers)) > 1]
        return all(process.poll() is not None for process in old) and len(moved) >= AT_LEAST

    run = shop.begin()
    watch = at_fault(innocents, external.restart_scheduler, converting_again)
    reports = shop.convert(client, run, should_stop=watch, **innocents.orders())
    assert {report.outcome for report in reports.values()} == {"done"}
    assert_all_done(innocents, {"done", "released"})
    shop.end(run)


def pids(client: Client) -> dict[str, int]:
    """The process of each worker by its address."""
    return {str(address): int(pid) for address, pid in client.run(os.getpid).items()}


def test_a_worker_that_stands_still_when_a_run_begins_keeps_nobody_waiting(
    client: Client, innocents: Innocents
) -> None:
    shop = innocents.shop
    stopped, goes_on = sorted(pids(client).values())
    run = shop.begin()
    os.kill(stopped, signal.SIGSTOP)
    try:
        watch = at_fault(innocents, lambda: None, lambda: True)
        reports = shop.convert(client, run, should_stop=watch, **innocents.orders())
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert {report.outcome for report in reports.values()} == {"done"}
    assert_all_done(innocents, {"done"})
    assert {name.split("/")[1] for workers in workers_of(shop).values() for name in workers} == {str(goes_on)}
    shop.end(run)


async def forget(address: str, dask_scheduler: Any = None) -> None:
    """What the scheduler does five minutes after the last sign of a worker."""
    await dask_scheduler.remove_worker(address, close=False, stimulus_id="test")


def test_what_converts_on_a_worker_that_stands_still_runs_again_on_another_and_costs_nobody_an_attempt(
    external: External, client: Client, engine: Engine, innocents: Innocents
) -> None:
    shop = innocents.shop
    known = pids(client)
    stood_still: list[str] = []

    def stand_still() -> None:
        names = [workers[0] for workers in workers_of(shop).values() if workers]
        stood_still.append(max(names, key=names.count))
        (address,) = [one for one, pid in known.items() if str(pid) == stood_still[0].split("/")[1]]
        os.kill(known[address], signal.SIGSTOP)
        client.run_on_scheduler(forget, address)
        with engine.begin() as c:  # as if the two minutes of their leases had gone by
            c.execute(
                text("UPDATE recordings SET lease_expires_at = zarrmill_now() WHERE worker = :name"),
                {"name": stood_still[0]},
            )

    def given_up() -> bool:
        there = [attempt for name in NAMES for attempt in shop.attempts(name) if attempt.worker == stood_still[0]]
        return {attempt.outcome for attempt in there} == {"expired"}

    run = shop.begin()
    try:
        watch = at_fault(innocents, stand_still, given_up)
        reports = shop.convert(client, run, should_stop=watch, **innocents.orders(permitted_bytes=90 * MB))
    finally:
        for name in stood_still:
            os.kill(int(name.split("/")[1]), signal.SIGKILL)  # its nanny starts another one
    assert {report.outcome for report in reports.values()} == {"done"}
    assert_all_done(innocents, {"done", "expired"})
    client.wait_for_workers(len(external.workers), timeout=240)
    shop.end(run)


def gated_dataset(folder: Path, gate: Path) -> list[Path]:
    """A dataset of six recordings that wait for a gate; the file that each writes when it does."""
    write_root(folder)
    marks = []
    for name in NAMES:
        edf = folder / write_recording(folder, name)
        edf.rename(edf.with_suffix(".flt"))
        marks.append(gate.with_name(f"mark-{name}"))
        steps = [{"do": "wait", "for": str(gate), "mark": str(marks[-1]), "in_child": True}]
        edf.with_suffix(".fault").write_text(json.dumps(steps))
    return marks


def history_of(c: Connection, dataset: Dataset, name: str) -> RecordingHistory:
    """What is known of one recording of ``gated_dataset``, by its store."""
    history = recordings.why(c, dataset=dataset, path=f"sub-{name}/eeg/sub-{name}_task-rest_eeg.zarr")
    assert history is not None, name
    return history


def test_a_command_that_is_killed_goes_on_where_it_was_and_one_that_finds_no_worker_says_so(
    external: External, client: Client, engine: Engine, prefect_url: str, tmp_path: Path
) -> None:
    dataset, gate = tmp_path / "xx000066", tmp_path / "gate"
    marks = gated_dataset(dataset, gate)
    settings = {
        "ZARRMILL_DATABASE_URL": external.database_url,
        "ZARRMILL_DASK_ADDRESS": external.address,
        "PREFECT_API_URL": prefect_url,
        "PYTHONPATH": f"{ROOT}:{SUPPORT}:{FORMAT}",
    }
    zarrmill = Zarrmill(external.folder / "home", tmp_path, settings)

    def count(sql: str) -> int:
        with engine.connect() as c:
            return int(c.scalar(text(sql), {"id": "xx000066"}) or 0)

    of_dataset = "FROM recordings r JOIN datasets d ON d.pk = r.dataset_pk WHERE d.dataset_id = :id"

    zarrmill.run("drain")
    nothing = zarrmill.run("convert", dataset, "--json", code=5)
    assert nothing.summary["pending"] == len(NAMES)
    assert "every worker is drained" in nothing.summary["unserved"]
    assert any(line["event"] == "gave_up" for line in nothing.lines)
    zarrmill.run("drain", "--undo")

    process = zarrmill.start("convert", dataset, "--json")
    try:
        wait_until(lambda: sum(mark.exists() for mark in marks) >= AT_LEAST or process.poll() is not None, 120)
        assert count(f"SELECT count(*) {of_dataset} AND r.due = 'converting'") >= AT_LEAST
    finally:
        process.kill()
        process.communicate()
    gate.touch()
    done = finish(zarrmill.start("convert", dataset, "--json")).summary
    assert (done["stores"], done["pending"], done["failures"]) == (len(NAMES), 0, 0)
    served = tmp_path / "served"
    with engine.begin() as c:
        known = datasets.find(c, dataset_id="xx000066", target=str(served))
        assert known is not None
        histories = {name: history_of(c, known, name) for name in NAMES}
    for name, history in histories.items():
        assert (history.state.due, history.state.attempts) == ("none", 0), name
        assert not any(attempt.counted for attempt in history.attempts), (name, history.attempts)
        *before, last = [attempt.outcome for attempt in history.attempts]
        assert last == "done", (name, history.attempts)
        assert set(before) <= {"released", "expired"}, (name, history.attempts)
    stores = {path.parent for path in served.rglob("*.zarr/zarr.json")}
    assert sorted(store.name.split("_")[0] for store in stores) == [f"sub-{name}" for name in sorted(NAMES)]
    tags = FlowRunFilter(tags=FlowRunFilterTags(all_=[dataset_tag(known)]))
    with temporary_settings({PREFECT_API_URL: prefect_url}), get_client(sync_client=True) as prefect:
        states = sorted(str(run.state_name) for run in prefect.read_flow_runs(flow_run_filter=tags))
    assert states == ["Completed", "Completed", "Crashed"]


def own_worker(command_pid: int) -> dict[int, psutil.Process]:
    """The nanny of a command's own worker and what it started as the worker, by pid."""
    below = psutil.Process(command_pid).children(recursive=True)
    nannies = [one for one in below if "dask worker" in " ".join(one.cmdline()) and one.parent().pid == command_pid]
    (nanny,) = nannies
    family = [nanny, *nanny.children()]
    return {one.pid: one for one in family}


def test_a_command_whose_own_worker_is_killed_with_its_nanny_starts_another_one(
    external: External, engine: Engine, prefect_url: str, tmp_path: Path
) -> None:
    dataset, gate = tmp_path / "xx000067", tmp_path / "gate"
    marks = gated_dataset(dataset, gate)
    settings = {
        "ZARRMILL_DATABASE_URL": external.database_url,
        "PREFECT_API_URL": prefect_url,
        "PYTHONPATH": f"{ROOT}:{SUPPORT}:{FORMAT}",
    }
    zarrmill = Zarrmill(external.folder / "own-home", tmp_path, settings)
    process = zarrmill.start("convert", dataset, "--json", "--workers", "6")
    try:
        wait_until(lambda: sum(mark.exists() for mark in marks) >= AT_LEAST or process.poll() is not None, 240)
        before = own_worker(process.pid)
        assert len(before) > 1, "a nanny and its worker"
        for one in before.values():
            one.kill()
        gate.touch()
        wait_until(lambda: not any(one.is_running() for one in before.values()), 60)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    done = finish(process).summary
    assert (done["stores"], done["pending"], done["failures"]) == (len(NAMES), 0, 0)
    with engine.begin() as c:
        known = datasets.find(c, dataset_id="xx000067", target=str(tmp_path / "served"))
        assert known is not None
        attempts = [attempt for name in NAMES for attempt in history_of(c, known, name).attempts]
    assert not any(attempt.counted for attempt in attempts)
    assert [attempt.outcome for attempt in attempts].count("done") == len(NAMES)
    assert len({attempt.worker for attempt in attempts}) == 2, "the one that was killed, and the one after it"
