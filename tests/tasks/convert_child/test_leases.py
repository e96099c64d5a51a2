"""Leases as a worker keeps them: renewed together, lost in time, and let go when nobody goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from fan_out_bench import Shop, wait_until
from sqlalchemy import Engine, text

from contract.errors import LostLease
from db import recordings
from db.runs import Run
from tasks.convert.leases import WRITE_MARGIN_S, HeldAttempt, LeaseKeeper

LEASE_S = 6.0  # a loaded machine stalls for seconds


class Desk:
    """One dataset with one recording that can be claimed, and a keeper with short leases."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.shop = Shop.open(engine, folder)
        self.shop.put("01")
        self.run: Run = self.shop.begin()
        self.wanted = True
        self.let_go: list[HeldAttempt] = []
        self.keeper = LeaseKeeper(
            engine, is_wanted=lambda _id: self.wanted, let_go=self.let_go.append, lease_s=LEASE_S, patience_s=0.2
        )

    def lease_ends(self) -> datetime:
        with self.engine.begin() as c:
            ends = c.scalar(text("SELECT lease_expires_at FROM recordings"))
        assert isinstance(ends, datetime)
        return ends

    def claim(self) -> UUID:
        attempt_id = uuid4()
        with self.engine.begin() as c:
            recordings.claim(
                c,
                run=self.run,
                recording_id=self.shop.state("01").id,
                attempt_id=attempt_id,
                worker="w",
                route="streamed",
                projected_bytes=1,
                permitted_bytes=1,
                lease_s=LEASE_S,
            )
        return attempt_id


@pytest.fixture
def desk(engine: Engine, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(engine, tmp_path / "dataset")
    yield desk
    desk.keeper.close()


def test_an_attempt_that_is_kept_outlives_its_first_lease(desk: Desk) -> None:
    held = desk.keeper.hold(desk.claim(), desk.run.number)
    first_end = desk.lease_ends()
    wait_until(lambda: desk.lease_ends() > first_end + timedelta(seconds=LEASE_S), 120)
    held.may_write()
    with desk.engine.begin() as c:
        assert recordings.expire(c, run=desk.run) == []


def test_an_attempt_in_line_at_its_worker_outlives_its_first_lease(desk: Desk) -> None:
    waiting = desk.claim()
    keeper = LeaseKeeper(
        desk.engine,
        is_wanted=lambda _id: True,
        let_go=lambda _held: None,
        in_line=lambda: {waiting} - ({waiting} if keeper.get(waiting) else set()),
        lease_s=LEASE_S,
    )
    try:
        keeper.start()
        first_end = desk.lease_ends()
        wait_until(lambda: desk.lease_ends() > first_end + timedelta(seconds=LEASE_S), 120)
        keeper.hold(waiting, desk.run.number).may_write()
    finally:
        keeper.close()


def test_a_write_is_refused_well_before_the_lease_ends_in_the_database(desk: Desk) -> None:
    keeper = LeaseKeeper(desk.engine, is_wanted=lambda _id: True, let_go=lambda _held: None, lease_s=600.0)
    held = keeper.hold(desk.claim(), desk.run.number)
    held.may_write()
    ours_s = held.deadline - time.monotonic()
    with desk.engine.begin() as c:
        theirs_s = c.scalar(text("SELECT extract(epoch FROM lease_expires_at - zarrmill_now()) FROM recordings"))
    assert theirs_s is not None
    assert float(theirs_s) - ours_s >= WRITE_MARGIN_S - 1, "one PUT fits between our last write and the end"
    held.deadline = time.monotonic()
    with pytest.raises(LostLease):
        held.may_write()
    keeper.close()


def test_an_attempt_that_was_released_elsewhere_is_lost(desk: Desk) -> None:
    attempt_id = desk.claim()
    held = desk.keeper.hold(attempt_id, desk.run.number)
    with desk.engine.begin() as c:
        recordings.release(c, attempt_id=attempt_id, run_number=desk.run.number, why="elsewhere")
    wait_until(lambda: held.lost, 60)
    assert held.must_stop
    with pytest.raises(LostLease):
        held.may_write()


def test_an_attempt_that_is_not_ours_is_never_held(desk: Desk) -> None:
    with pytest.raises(LostLease):
        desk.keeper.hold(uuid4(), desk.run.number)
    assert desk.keeper.get(uuid4()) is None


def test_a_stop_reaches_an_attempt_that_has_not_begun(desk: Desk) -> None:
    attempt_id = desk.claim()
    desk.keeper.stop([attempt_id])
    assert desk.keeper.hold(attempt_id, desk.run.number).must_stop


def test_an_attempt_that_rests_and_that_nobody_wants_is_let_go(desk: Desk) -> None:
    held = desk.keeper.hold(desk.claim(), desk.run.number)
    held.is_working = False

    def is_let_go() -> bool:
        desk.keeper.look_after_resting()
        return held in desk.let_go

    assert not is_let_go()
    time.sleep(0.5)
    assert not is_let_go(), "somebody goes on with it"
    desk.wanted = False
    assert not is_let_go(), "the next stage may be on its way"
    wait_until(is_let_go, 60)


def test_an_attempt_that_rests_and_was_lost_is_let_go_too(desk: Desk) -> None:
    attempt_id = desk.claim()
    held = desk.keeper.hold(attempt_id, desk.run.number)
    held.is_working, desk.wanted = False, False
    with desk.engine.begin() as c:
        recordings.release(c, attempt_id=attempt_id, run_number=desk.run.number, why="elsewhere")
    wait_until(lambda: held.lost, 60)
    desk.keeper.look_after_resting()
    wait_until(lambda: desk.keeper.look_after_resting() or held in desk.let_go, 60)


def test_an_attempt_at_work_is_never_let_go(desk: Desk) -> None:
    desk.wanted = False
    desk.keeper.hold(desk.claim(), desk.run.number)
    desk.keeper.look_after_resting()
    time.sleep(0.5)
    desk.keeper.look_after_resting()
    assert desk.let_go == []
