"""A worker has left when that is known, and not because the scheduler has not told of it for a moment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import dask
import pytest
from distributed import Client
from fan_out_bench import wait_until

from flows.fleet import Fleet


@pytest.fixture
def client(small_client: Client) -> Iterator[Client]:
    # the client asks for itself as often as it can: what was one answer in thousands is one in ten
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        made = Client(small_client.scheduler.address, set_as_default=False)
    made.wait_for_workers(1, timeout=60)
    yield made
    made.close()


class Clock:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_the_client_asks_for_itself_takes_no_worker_away(client: Client) -> None:
    fleet = Fleet(client)
    assert len(fleet.refresh().joined) == 1
    for _ in range(500):
        change = fleet.refresh()
        assert (change.joined, change.left, change.changed) == ((), (), ())
        assert not any(fleet.is_silent(worker) for worker in fleet.workers.values())


async def forget(address: str, dask_scheduler: Any = None) -> None:
    """Let the scheduler drop a worker, without a word to it."""
    await dask_scheduler.remove_worker(address, close=False, stimulus_id="test")


def test_a_dropped_worker_is_silent_and_has_left_after_half_a_minute_or_with_its_process(client: Client) -> None:
    clock, clock_of_killed = Clock(), Clock()
    fleet, fleet_of_killed = Fleet(client, clock=clock), Fleet(client, clock=clock_of_killed)
    for each in (fleet, fleet_of_killed):
        each.refresh()
    (dropped,) = fleet.workers.values()
    os.kill(dropped.identity.pid, signal.SIGSTOP)
    try:
        client.run_on_scheduler(forget, dropped.address)
        for each in (fleet, fleet_of_killed):
            assert each.refresh().left == ()
        assert fleet.is_silent(dropped)
        clock.now += 29.0
        assert fleet.refresh().left == ()
        clock.now += 2.0
        assert fleet.refresh().left == (dropped,)
        assert dropped.address not in fleet.workers
    finally:
        os.kill(dropped.identity.pid, signal.SIGKILL)  # its nanny starts another one
    wait_until(lambda: dropped.is_surely_gone, 60)
    assert [worker.name for worker in fleet_of_killed.refresh().left] == [dropped.name], "its clock stood still"
    client.wait_for_workers(1, timeout=120)


def test_a_scheduler_that_does_not_answer_says_nothing_of_its_workers(small_client: Client) -> None:
    fleet = Fleet(small_client, answer_s=0.3)
    (worker,) = fleet.refresh().joined
    scheduler = small_client.run_on_scheduler(os.getpid)
    os.kill(scheduler, signal.SIGSTOP)
    try:
        with pytest.raises(OSError):  # noqa: PT011 - any of them: that is what the callers catch
            fleet.refresh()
        assert list(fleet.workers.values()) == [worker]
        assert not fleet.is_silent(worker)
    finally:
        os.kill(scheduler, signal.SIGCONT)
    wait_until(lambda: answers(fleet), 60)
    assert list(fleet.workers.values()) == [worker]


def test_a_worker_that_is_stopped_when_it_joins_is_not_waited_for_and_joins_when_it_goes_on(
    small_client: Client,
) -> None:
    fleet = Fleet(small_client, answer_s=0.5)
    ((_address, pid),) = small_client.run(os.getpid).items()
    os.kill(pid, signal.SIGSTOP)
    try:
        assert fleet.refresh().joined == ()
        assert fleet.workers == {}
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: len(fleet.refresh().joined) == 1, 120)
    fleet.close()


def answers(fleet: Fleet) -> bool:
    """Whether the scheduler answers; nobody may have joined or left."""
    try:
        change = fleet.refresh()
    except OSError:
        return False
    assert (change.joined, change.left) == ((), ())
    return True
