"""What upkeep does about runs that were killed: their leases end, and exactly one word is told of each that nobody follows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from counting import kept
from sqlalchemy import Engine, text
from state_bench import VERSIONS, Bench, planned

from db import datasets, leases, requests, retention, runs
from db.catalog import catalog_rows
from db.counts import Coverage
from db.leases import Owner
from db.listing import find_listed
from db.runs import Run
from db.tallies import WATCHED, marked_at
from flows.ownership import owning
from flows.upkeep import KILLED, keep_up
from infra.home import Home
from infra.settings import load_settings
from tasks.callback import enqueue, enqueue_converting, refused_body


@pytest.fixture
def bench(engine: Engine, home: Path, tmp_path: Path) -> Bench:
    made = Bench(engine, target=str(tmp_path / "served"))
    made.now = datetime.now(UTC)  # upkeep reads the server's own clock
    return made


def killed(bench: Bench, *, ran_out: bool = True, owner: Owner | None = None) -> Run:
    """A run that said it converts and was never heard of again."""
    run = bench.start(owner_is_gone=True) if owner is None else _owned(bench, owner)
    with bench.begin() as c:
        enqueue_converting(c, run=run, dataset=bench.dataset)
        datasets.note_converting(c, run=run)
    if ran_out:
        run_out(bench, "11 minutes")
    return run


def run_out(bench: Bench, ago: str) -> None:
    with bench.begin() as c:
        c.execute(text("UPDATE dataset_leases SET expires_at = zarrmill_now() - CAST(:ago AS interval)"), {"ago": ago})


def _owned(bench: Bench, owner: Owner) -> Run:
    with bench.begin() as c:
        return leases.acquire(
            c, dataset=bench.dataset, owner=owner, mode="auto", versions=VERSIONS, owner_is_gone=lambda _owner: True
        )


def told(bench: Bench) -> list[tuple[str, bytes | None]]:
    with bench.begin() as c:
        return [(row.status, row.body) for row in c.execute(text("SELECT status, body FROM callbacks ORDER BY pk"))]


def test_a_killed_run_is_told_as_failed_once_and_what_it_converted_is_due_again(bench: Bench) -> None:
    run = killed(bench, ran_out=False)
    bench.apply(run, planned("01"))
    bench.claim(run, "01")
    run_out(bench, "11 minutes")
    settings = load_settings(callback_url="http://127.0.0.1:9/nobody")
    first, second = keep_up(settings, bench.engine), keep_up(settings, bench.engine)
    assert (first.leases_ended, first.words_sent) == (1, 1)
    assert (second.leases_ended, second.words_sent) == (0, 0)
    [(status, body)] = told(bench)
    assert body is not None
    said: dict[str, Any] = json.loads(body)
    assert (status, said["status"], said["error"]) == ("failed", "failed", KILLED)
    assert (said["converted"], said["removed"], said["store_count"]) == ([], [], 0)
    with bench.begin() as c:
        dataset = datasets.by_pk(c, pk=bench.dataset.pk)
        [record] = runs.last_runs(c, dataset=bench.dataset)
    assert dataset is not None
    assert (dataset.status, dataset.converting, dataset.error, record.state) == ("failed", False, KILLED, "lost")
    assert bench.state("01").due == "pending"
    with bench.begin() as c:
        assert c.scalar(text("SELECT count(*) FROM tally_changes")) == 0, "what each dataset has is folded"
        assert kept(c, bench.dataset.pk)["due"] == 1
        assert marked_at(c, WATCHED) is not None, "the dashboard knows that somebody looks for alarms"


def test_what_is_served_stays_in_the_catalog_when_a_run_is_killed_or_publishes_nothing(bench: Bench) -> None:
    run = bench.start()
    counts = Coverage(discovered=1, stores=1, failures=0, pending=0)
    with bench.begin() as c:
        datasets.note_published(
            c, run=run, source_commit="a" * 40, index_etag="e1", counts=counts, duration_s=60.0, errors=0
        )
        runs.finish(c, run=run, state="completed")
    bench.end(run)
    with bench.begin() as c:
        before = catalog_rows(c, target=bench.dataset.target)
    killed(bench, ran_out=False)
    run_out(bench, "11 minutes")
    keep_up(load_settings(callback_url="http://127.0.0.1:9/nobody"), bench.engine)
    with bench.begin() as c:
        dataset = datasets.by_pk(c, pk=bench.dataset.pk)
        after = catalog_rows(c, target=bench.dataset.target)
        listed = find_listed(c, target=bench.dataset.target, dataset_id=bench.dataset.dataset_id)
    assert dataset is not None
    assert listed is not None
    assert (dataset.status, dataset.error, listed.error) == ("ready", KILLED, KILLED)
    assert [row for row, _body in told(bench)] == ["failed"]
    assert len(before) == 1
    assert after == before


def test_a_run_that_another_follows_owes_no_word_of_its_own(bench: Bench) -> None:
    killed(bench)
    with bench.begin() as c:
        requests.ask(c, dataset_pk=bench.dataset.pk, mode="auto", asked_by="test")
    kept = keep_up(load_settings(), bench.engine)
    assert (kept.leases_ended, kept.words_sent) == (1, 0)
    follower = killed(bench, ran_out=False)
    with bench.begin() as c:
        enqueue(c, run=follower, body=refused_body(bench.dataset, ValueError("x")))
        runs.finish(c, run=follower, state="failed")
        leases.release(c, run=follower)
        c.execute(text("DELETE FROM requests"))
    assert keep_up(load_settings(), bench.engine).words_sent == 0


def test_a_run_that_lives_is_left_alone_even_when_its_lease_ran_out(bench: Bench, home: Path) -> None:
    with owning(Home(home)) as held:
        killed(bench, owner=held.owner)
        run_out(bench, "2 minutes")
        assert keep_up(load_settings(), bench.engine).leases_ended == 0, "it may have slept"
    run_out(bench, "-1 minutes")
    assert keep_up(load_settings(), bench.engine).leases_ended == 0, "it is not over yet"


def test_scratch_of_dead_workers_goes_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    left, other = scratch / f"worker-{uuid4()}", scratch / "somebody-elses"
    for folder in (left / "attempt", other):
        folder.mkdir(parents=True)
    settings = load_settings(scratch=scratch)
    assert keep_up(settings, bench.engine).scratch_removed == 1
    assert [path.name for path in scratch.iterdir()] == ["somebody-elses"]


def test_old_history_of_the_service_goes_and_every_dataset_comes_once_a_day(bench: Bench) -> None:
    with bench.begin() as c:
        asked = requests.ask(c, dataset_pk=bench.dataset.pk, mode="auto", asked_by="test")
        requests.start(c, pk=asked.request.pk)
        requests.end(c, pk=asked.request.pk)
    bench.wait(days=9)
    with bench.begin() as c:
        assert retention.trim_service(c, keep_days=10) == 0
        assert retention.trim_service(c, keep_days=8) == 1
    passes = []
    for _ in range(288):
        bench.wait(minutes=5)
        with bench.begin() as c:
            passes += retention.due_for_trimming(c)
    assert passes == [bench.dataset.pk]
