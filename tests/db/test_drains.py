"""Drains: who takes nothing new, and for how long what runs there may go on."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from db import drains
from db.drains import EVERY_WORKER

WORKER = "node7/4711/99"


def drained(engine: Engine, worker: str) -> bool:
    with engine.begin() as c:
        return any(drain.covers(worker) for drain in drains.current(c))


@pytest.mark.parametrize("named", [EVERY_WORKER, "node7", "node7/4711", WORKER])
def test_a_worker_is_drained_by_its_name_its_host_or_with_all(engine: Engine, named: str) -> None:
    with engine.begin() as c:
        drains.ask(c, worker=named, grace_s=60)
    assert drained(engine, WORKER)
    assert drained(engine, "node70/4711/99") == (named == EVERY_WORKER)
    assert drained(engine, "node7/471/99") == (named in {EVERY_WORKER, "node7"})


def test_its_grace_runs_from_the_first_time_and_never_grows(engine: Engine) -> None:
    with engine.begin() as c:
        drains.ask(c, worker="a", grace_s=100)
        drains.ask(c, worker="a", grace_s=500)
        (drain,) = drains.current(c)
        assert (drain.grace_s, drain.is_overdue) == (100, False)
        drains.ask(c, worker="a", grace_s=0)
    with engine.begin() as c:
        (drain,) = drains.current(c)
    assert drain.is_overdue


def test_a_drain_ends_when_it_is_undone(engine: Engine) -> None:
    with engine.begin() as c:
        for worker in ("a", "b", EVERY_WORKER):
            drains.ask(c, worker=worker, grace_s=1)
        assert drains.undo(c, worker="a") == 1
        assert drains.undo(c, worker="a") == 0
        assert {drain.worker for drain in drains.current(c)} == {"b", EVERY_WORKER}
        assert drains.undo(c) == 2
        assert drains.current(c) == []


def test_drains_of_processes_are_forgotten_and_those_of_hosts_are_not(engine: Engine) -> None:
    with engine.begin() as c:
        for worker in (WORKER, "node7", EVERY_WORKER):
            drains.ask(c, worker=worker, grace_s=1)
        c.execute(text("UPDATE drains SET asked_at = asked_at - interval '2 days'"))
        drains.ask(c, worker="other", grace_s=1)
        assert {drain.worker for drain in drains.current(c)} == {"node7", EVERY_WORKER, "other"}


def test_a_name_that_nobody_ever_had_is_told_from_one_that_was_seen(engine: Engine) -> None:
    with engine.begin() as c:
        assert not drains.seen(c, worker="node7")
        c.execute(
            text("""
                INSERT INTO hosts (key, name, memory_bytes, scratch_bytes, slots, free_memory_bytes, free_scratch_bytes, free_slots)
                VALUES ('k', 'node7', 1, 1, 1, 1, 1, 1)
            """)
        )
        assert drains.seen(c, worker="node7")
        assert not drains.seen(c, worker="node70")
