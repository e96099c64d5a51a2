"""The ledger and the policy: what holds for every mix of recordings, workers, ends and arrivals."""

from __future__ import annotations

import heapq
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from flows.admission import Admission
from flows.ledger import Capacity, Ledger, OverCommitError, Request

sizes = st.integers(0, 40)
capacities = st.builds(
    Capacity,
    memory_bytes=st.integers(1, 60),
    scratch_bytes=st.integers(0, 60),
    slots=st.integers(1, 4),
    ahead=st.integers(0, 2),
    scratch_in_memory=st.booleans(),
)


def run(
    admission: Admission, requests: list[Request], durations: list[int]
) -> tuple[dict[object, float], float, list[object]]:
    """Simulate to the end: when each started, how long it took, and what was never placed."""
    for request in requests:
        admission.add(request)
    took = {request.key: duration for request, duration in zip(requests, durations, strict=True)}
    started: dict[object, float] = {}
    ends: list[tuple[float, int, object]] = []
    now = 0.0
    while True:
        for placement in admission.place(now):
            admission.fetched(placement.request.key)
            if placement.ahead:
                continue
            started[placement.request.key] = now
            heapq.heappush(ends, (now + took[placement.request.key], len(started), placement.request.key))
        if not ends:
            return started, now, [request.key for request in admission.waiting()]
        now, _order, key = heapq.heappop(ends)
        admission.release(key)


NAMES = tuple(f"w{number:02}" for number in range(64))


class Machine(RuleBasedStateMachine):
    """Recordings and workers come and go in any order; a second set of books is kept beside the ledger's."""

    def __init__(self) -> None:
        super().__init__()
        self.admission = Admission(age_s=5)
        self.now = 0.0
        self.next_key = 0
        self.capacities: dict[str, Capacity] = {}
        self.ahead: dict[int, tuple[Request, str]] = {}
        self.placed: dict[int, tuple[Request, str, bool]] = {}
        self.waiting: set[int] = set()
        self.shrunk: set[str] = set()

    @rule(memory=sizes, scratch=sizes, remote=st.booleans(), alone=st.booleans())
    def arrive(self, memory: int, scratch: int, remote: bool, alone: bool) -> None:
        self.admission.add(
            Request(
                key=self.next_key,
                memory_bytes=memory,
                scratch_bytes=scratch,
                seconds=float(memory % 7 + 1),
                is_remote=remote,
                alone=alone,
            )
        )
        self.waiting.add(self.next_key)
        self.next_key += 1

    @rule(requests=st.lists(st.tuples(sizes, sizes), max_size=100))
    def arrive_together(self, requests: list[tuple[int, int]]) -> None:
        for memory, scratch in requests:
            self.arrive(memory, scratch, remote=False, alone=False)

    @rule(name=st.sampled_from(NAMES), capacity=capacities)
    def join(self, name: str, capacity: Capacity) -> None:
        if name not in self.capacities:
            self.admission.set_worker(name, capacity)
            self.capacities[name] = capacity

    @rule(joining=st.lists(capacities, min_size=1, max_size=len(NAMES)))
    def join_together(self, joining: list[Capacity]) -> None:
        for name, capacity in zip(NAMES, joining, strict=False):
            self.join(name, capacity)

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        lost = set(self.admission.remove_worker(name))
        self.capacities.pop(name, None)
        converting = {key for key, (_request, worker, _done) in self.placed.items() if worker == name}
        fetched = {key for key, (_request, worker) in self.ahead.items() if worker == name}
        assert lost == converting | fetched
        for key in converting:
            del self.placed[key]
        for key in fetched:
            del self.ahead[key]
            self.waiting.remove(key)

    @precondition(lambda self: self.capacities)
    @rule(pick=st.randoms(), capacity=capacities)
    def grow_or_shrink(self, pick: Random, capacity: Capacity) -> None:
        name = pick.choice(sorted(self.capacities))
        capacity = replace(capacity, scratch_in_memory=self.capacities[name].scratch_in_memory)
        self.admission.set_worker(name, capacity)
        self.capacities[name] = capacity
        self.shrunk.add(name)

    @rule(seconds=st.integers(0, 10))
    def place(self, seconds: int) -> None:
        self.now += seconds
        for placement in self.admission.place(self.now):
            key = placement.request.key
            assert isinstance(key, int)
            if placement.ahead:
                assert placement.request.is_remote
                self.ahead[key] = (placement.request, placement.worker)
                continue
            self.ahead.pop(key, None)
            self.waiting.remove(key)
            self.placed[key] = (placement.request, placement.worker, False)
        for name, capacity in self.capacities.items():
            if (
                self.free_memory(name) >= 0
                and self.free_scratch(name) >= 0
                and self.free_slots(name) >= -capacity.ahead
            ):
                self.shrunk.discard(name)

    @precondition(lambda self: self.ahead)
    @rule(pick=st.randoms(), gives_up=st.booleans())
    def fetch(self, pick: Random, gives_up: bool) -> None:
        key = pick.choice(sorted(self.ahead))
        if gives_up:
            self.admission.release(key)
            del self.ahead[key]
            self.waiting.remove(key)
        else:
            self.admission.fetched(key)

    @precondition(lambda self: self.placed)
    @rule(pick=st.randoms())
    def convert(self, pick: Random) -> None:
        key = pick.choice(sorted(self.placed))
        request, worker, _done = self.placed[key]
        self.admission.converted(key)
        self.placed[key] = (request, worker, True)

    @precondition(lambda self: self.placed)
    @rule(pick=st.randoms())
    def end(self, pick: Random) -> None:
        key = pick.choice(sorted(self.placed))
        self.admission.release(key)
        del self.placed[key]

    def here(self, name: str) -> list[tuple[Request, int]]:
        """What is on a worker: with 2 when it converts, 1 when it was converted, 0 when it is fetched ahead."""
        return [(request, 2 - done) for request, worker, done in self.placed.values() if worker == name] + [
            (request, 0) for request, worker in self.ahead.values() if worker == name
        ]

    def memory(self, name: str) -> int:
        in_memory = self.capacities[name].scratch_in_memory
        return sum(
            (request.memory_bytes if stage == 2 else 0) + (request.scratch_bytes if in_memory else 0)
            for request, stage in self.here(name)
        )

    def free_memory(self, name: str) -> int:
        return self.capacities[name].memory_bytes - self.memory(name)

    def free_scratch(self, name: str) -> int:
        return self.capacities[name].scratch_bytes - sum(request.scratch_bytes for request, _stage in self.here(name))

    def free_slots(self, name: str) -> int:
        return self.capacities[name].slots - sum(stage == 2 for _request, stage in self.here(name))

    @invariant()
    def nothing_is_over_committed(self) -> None:
        for name, capacity in self.capacities.items():
            ledger = self.admission.ledger(name)
            assert ledger.in_use_bytes == self.memory(name)
            assert ledger.free_scratch_bytes == self.free_scratch(name)
            if name not in self.shrunk:
                assert self.free_memory(name) >= 0
                assert self.free_scratch(name) >= 0
                assert self.free_slots(name) >= -capacity.ahead
            if any(request.alone and stage for request, stage in self.here(name)):
                assert len(self.here(name)) == 1

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert len(self.admission) == len(self.waiting)
        assert {request.key for request in self.admission.waiting()} == self.waiting
        assert self.ahead.keys() <= self.waiting
        assert not self.waiting & self.placed.keys()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)


@given(
    st.lists(st.tuples(sizes, sizes, st.booleans(), st.integers(1, 9)), max_size=30),
    st.lists(capacities, min_size=1, max_size=4),
)
def test_every_recording_that_fits_some_worker_starts_and_every_other_is_named(
    recordings: list[tuple[int, int, bool, int]], workers: list[Capacity]
) -> None:
    admission = Admission(age_s=20)
    for number, capacity in enumerate(workers):
        admission.set_worker(f"w{number}", capacity)
    requests = [
        Request(key=number, memory_bytes=memory, scratch_bytes=scratch, is_remote=number % 2 > 0, alone=alone)
        for number, (memory, scratch, alone, _duration) in enumerate(recordings)
    ]
    fits = {r.key for r in requests if any(Ledger(capacity).could_ever_fit(r) for capacity in workers)}
    started, _end, waiting = run(admission, requests, [duration for *_rest, duration in recordings])
    assert set(started) == fits
    assert {request.key for request in admission.misfits()} == {request.key for request in requests} - fits
    assert set(waiting) == {request.key for request in requests} - set(started)


@given(st.integers(1, 30), st.integers(20, 60), st.integers(2, 9))
def test_a_giant_that_small_ones_keep_out_starts_within_its_age_and_one_round(
    small_bytes: int, age_s: int, duration: int
) -> None:
    admission = Admission(age_s=age_s)
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=0, slots=8))
    ends: list[tuple[float, int]] = []
    key = 0
    giant_started = None
    for now in range(400):
        if now == 3:
            admission.add(Request(key="giant", memory_bytes=100))
        while ends and ends[0][0] <= now:
            admission.release(heapq.heappop(ends)[1])
        for _ in range(10):
            admission.add(Request(key=key, memory_bytes=small_bytes))
            key += 1
        for placement in admission.place(float(now)):
            if placement.request.key == "giant":
                giant_started = now
            else:
                assert isinstance(placement.request.key, int)
                # Staggered, so that the worker is never empty by chance.
                heapq.heappush(ends, (now + duration + placement.request.key % 3, placement.request.key))
        if giant_started is not None:
            break
    assert giant_started is not None
    assert giant_started <= 3 + age_s + duration + 4


def test_the_largest_goes_first_and_to_the_worker_where_it_fits_most_tightly() -> None:
    admission = Admission()
    admission.set_worker("wide", Capacity(memory_bytes=100, scratch_bytes=0, slots=4))
    admission.set_worker("tight", Capacity(memory_bytes=40, scratch_bytes=0, slots=4))
    for key, memory in (("a", 10), ("b", 90), ("c", 35)):
        admission.add(Request(key=key, memory_bytes=memory))
    assert [(one.request.key, one.worker) for one in admission.place(0)] == [
        ("b", "wide"),
        ("c", "tight"),
        ("a", "wide"),
    ]


def test_scratch_holds_back_the_large_and_lets_the_small_go() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=1000, scratch_bytes=10, slots=50))
    for key in range(40):
        admission.add(Request(key=key, memory_bytes=10, scratch_bytes=8))
    admission.add(Request(key="small", memory_bytes=1, scratch_bytes=2))
    assert {one.request.key for one in admission.place(0)} - {*range(40)} == {"small"}


def test_what_others_hold_of_a_host_is_left_alone() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=100, slots=9))
    admission.withhold("w", free_memory_bytes=30, free_scratch_bytes=100, free_slots=9)
    for key in range(5):
        admission.add(Request(key=key, memory_bytes=20))
    assert len(admission.place(0)) == 1
    admission.withhold("w", free_memory_bytes=100, free_scratch_bytes=100, free_slots=9)
    assert len(admission.place(1)) == 4


def test_a_worker_that_shrinks_takes_nothing_new_until_it_has_paid_back() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=0, slots=9))
    for key in range(5):
        admission.add(Request(key=key, memory_bytes=40))
    first = admission.place(0)
    assert len(first) == 2
    admission.set_worker("w", Capacity(memory_bytes=60, scratch_bytes=0, slots=9))
    assert admission.place(1) == []
    admission.release(first[0].request.key)
    assert admission.place(2) == []
    admission.release(first[1].request.key)
    assert len(admission.place(3)) == 1


def test_a_charge_beyond_the_ledger_is_refused() -> None:
    ledger = Ledger(Capacity(memory_bytes=10, scratch_bytes=10, slots=1))
    with pytest.raises(OverCommitError):
        ledger.take(Request(key=1, memory_bytes=11))
    ledger.take(Request(key=1, memory_bytes=5))
    with pytest.raises(OverCommitError):
        ledger.take(Request(key=2, memory_bytes=5))


def test_a_key_waits_once() -> None:
    admission = Admission()
    admission.add(Request(key=1, memory_bytes=1))
    with pytest.raises(ValueError, match="waits already"):
        admission.add(Request(key=1, memory_bytes=2))


def test_a_large_one_starts_only_where_small_ones_can_fill_the_other_slots_when_slots_are_scarce() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=0, slots=4))
    for key in range(4):
        admission.add(Request(key=f"large{key}", memory_bytes=50))
    for key in range(20):
        admission.add(Request(key=f"small{key}", memory_bytes=15))
    # two large ones would fill the memory and leave two slots idle
    assert sorted(str(one.request.key)[:5] for one in admission.place(0)) == ["large", "small", "small", "small"]


def test_large_ones_fill_the_memory_when_memory_is_scarce() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=100, scratch_bytes=0, slots=4))
    for key in range(20):
        admission.add(Request(key=f"large{key}", memory_bytes=50))
    for key in range(4):
        admission.add(Request(key=f"small{key}", memory_bytes=15))
    assert [str(one.request.key)[:5] for one in admission.place(0)] == ["large", "large"]


def test_of_equal_size_the_longest_starts_first() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=10, scratch_bytes=0, slots=1))
    for key, seconds in enumerate((3.0, 9.0, 1.0, 7.0)):
        admission.add(Request(key=key, memory_bytes=5, seconds=seconds))
    order = []
    for now in range(4):
        (placement,) = admission.place(now)
        order.append(placement.request.key)
        admission.release(placement.request.key)
    assert order == [1, 3, 0, 2]


def test_where_memory_abounds_the_next_ones_stand_in_line_for_a_slot() -> None:
    admission = Admission()
    admission.set_worker("w", Capacity(memory_bytes=1000, scratch_bytes=0, slots=2, ahead=1))
    for key in range(8):
        admission.add(Request(key=key, memory_bytes=10))
    assert len(admission.place(0)) == 3
    admission.release(0)
    assert len(admission.place(1)) == 1
