"""What runs want and hold of machines that they share: claims, holdings, parts that grow and shrink, and how long conversions took."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from state_bench import Bench, planned, store_row

from db import contenders, ledger, recordings
from db.contenders import CONTENDS_S, Claim, Holding
from db.durations import recent_durations
from db.leases import Owner
from db.ledger import Part
from db.recordings import Measured
from db.runs import Run

pytestmark = pytest.mark.postgres_versions

ME = Owner(host="here", pid=1, lock_path="/lock")
WHOLE = Part(memory_bytes=100, scratch_bytes=1000, slots=4)


@pytest.fixture
def host(bench: Bench) -> str:
    """A machine that only this test knows."""
    name = f"boot:{uuid4().hex[:12]}"
    with bench.begin() as c:
        ledger.declare_host(c, key=name, name="here", whole=WHOLE)
    return name


@pytest.fixture
def run(bench: Bench) -> Run:
    return bench.start()


def claim(host: str, worker: str = "w", **more: int) -> Claim:
    values = {"priority": 10, "waiting_count": 3, "waiting_bytes": 30}
    return Claim(worker=worker, host=host, **(values | more))


def test_a_claim_replaces_what_the_run_said_before_and_lapses_in_half_a_minute(
    bench: Bench, run: Run, host: str
) -> None:
    with bench.begin() as c:
        contenders.claim_shares(c, run=run, claims=[claim(host, "a"), claim(host, "b")])
        contenders.claim_shares(c, run=run, claims=[claim(host, "b", waiting_count=1, priority=40)])
        (one,) = contenders.contenders(c, hosts=[host])
        assert (one.run_id, one.claim) == (run.id, claim(host, "b", waiting_count=1, priority=40))
        assert contenders.contenders(c, hosts=["boot:other"]) == ()
    bench.wait(seconds=CONTENDS_S + 1)
    with bench.begin() as c:
        assert contenders.contenders(c, hosts=[host]) == ()
        contenders.claim_shares(c, run=run, claims=[claim(host)])
        assert len(contenders.contenders(c, hosts=[host])) == 1
        contenders.withdraw_claims(c, run=run)
        assert contenders.contenders(c, hosts=[host]) == ()


def test_since_when_a_run_contends_is_kept_until_it_begins_or_ends_to_drain_the_worker(
    bench: Bench, run: Run, host: str
) -> None:
    def since(**more: int) -> object:
        bench.wait(seconds=1)
        with bench.begin() as c:
            contenders.claim_shares(c, run=run, claims=[claim(host, **more)])
            return contenders.contenders(c, hosts=[host])[0].since

    first = since()
    assert since(waiting_count=2) == first
    drains = since(drained_bytes=50)
    assert drains != first
    assert since(drained_bytes=60) == drains
    assert since() not in (first, drains)


def test_a_claim_to_a_worker_of_an_unknown_machine_is_left_out(bench: Bench, run: Run, host: str) -> None:
    with bench.begin() as c:
        contenders.claim_shares(c, run=run, claims=[claim(host, "a"), claim("boot:unknown", "b")])
        found = contenders.contenders(c, hosts=[host, "boot:unknown"])
    assert [one.claim.worker for one in found] == ["a"]


def test_what_a_run_holds_is_added_up_by_worker_and_what_no_run_holds_is_left_out(
    bench: Bench, run: Run, host: str
) -> None:
    part = Part(memory_bytes=10, scratch_bytes=1, slots=1)
    with bench.begin() as c:
        for worker in ("a", "a", "b"):
            assert ledger.reserve(c, host=host, part=part, owner=ME, run_id=run.id, worker=worker)
        assert ledger.reserve(c, host=host, part=part, owner=ME)
        found = contenders.holdings(c, hosts=[host])
    assert found == (
        Holding(run_id=run.id, host=host, worker="a", memory_bytes=20, slots=2),
        Holding(run_id=run.id, host=host, worker="b", memory_bytes=10, slots=1),
    )


PARTS = st.builds(Part, memory_bytes=st.integers(0, 120), scratch_bytes=st.integers(0, 1200), slots=st.integers(0, 5))


def test_parts_grow_and_shrink_within_what_the_machine_has(bench: Bench, postgres_version: int) -> None:
    def fits(part: Part, others: list[Part]) -> bool:
        return all(
            getattr(part, name) + sum(getattr(other, name) for other in others) <= getattr(WHOLE, name)
            for name in ("memory_bytes", "scratch_bytes", "slots")
        )

    @given(st.lists(st.tuples(st.integers(0, 2), PARTS), max_size=12))
    def check(moves: list[tuple[int, Part]]) -> None:
        key = f"boot:{uuid4().hex[:12]}"
        nothing = Part(memory_bytes=0, scratch_bytes=0, slots=0)
        with bench.begin() as c:
            ledger.declare_host(c, key=key, name="here", whole=WHOLE)
            held = [ledger.reserve(c, host=key, part=nothing, owner=ME) for _ in range(3)]
            parts = [nothing] * 3
            for at, part in moves:
                reservation = held[at]
                assert reservation is not None
                expected = fits(part, [other for index, other in enumerate(parts) if index != at])
                assert ledger.resize(c, reservation=reservation, part=part) == expected
                parts[at] = part if expected else parts[at]
                free = ledger.free(c, host=key)
                assert free == Part(
                    memory_bytes=WHOLE.memory_bytes - sum(one.memory_bytes for one in parts),
                    scratch_bytes=WHOLE.scratch_bytes - sum(one.scratch_bytes for one in parts),
                    slots=WHOLE.slots - sum(one.slots for one in parts),
                )

    check()


def test_what_was_given_back_can_not_grow(bench: Bench, host: str) -> None:
    part = Part(memory_bytes=10, scratch_bytes=0, slots=1)
    with bench.begin() as c:
        reservation = ledger.reserve(c, host=host, part=part, owner=ME)
        assert reservation is not None
        ledger.release(c, reservation=reservation)
        assert not ledger.resize(c, reservation=reservation, part=part)
        assert ledger.free(c, host=host) == WHOLE


def test_durations_are_those_of_the_newest_conversions_that_ended_in_a_store(bench: Bench, run: Run) -> None:
    kind = f"kind{uuid4().hex[:8]}"
    names = [f"{number:02}" for number in range(5)]
    bench.apply(run, *(planned(name, format=kind, size_bytes=1000) for name in names))
    for at, name in enumerate(names):
        attempt = bench.claim(run, name)
        bench.wait(seconds=1)
        report = Measured(measured_bytes=None if at == 3 else 1, stage_seconds={"child": float(at)})
        with bench.begin() as c:
            recordings.done(c, attempt_id=attempt, run_number=run.number, store=store_row(name), report=report)
    with bench.begin() as c:
        (route,) = c.scalars(text("SELECT DISTINCT route FROM attempts WHERE format = :kind"), {"kind": kind})
        kinds = [(kind, route), (kind, "none")]
        found = recent_durations(c, kinds=kinds)
        newest = recent_durations(c, kinds=kinds, limit=2)
    assert set(found) == {(kind, route)}, "a kind without conversions is left out"
    every, two = found[kind, route], newest[kind, route]
    assert (every.attempts, every.seconds, every.size_bytes) == (4, 7.0, 4000), (
        "a child that was not measured says nothing"
    )
    assert (two.attempts, two.seconds) == (2, 6.0)
