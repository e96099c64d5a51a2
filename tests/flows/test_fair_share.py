"""Shares of a pool between runs: what holds for every number of runs, every priority and everything they hold and want."""

from __future__ import annotations

import heapq

from hypothesis import given, settings
from hypothesis import strategies as st

from flows.fair_share import Party, entitlements, may_take

parties = st.lists(st.tuples(st.integers(1, 100), st.integers(0, 40), st.integers(0, 200)), min_size=1, max_size=6).map(
    lambda rows: [Party(name=name, priority=p, held=held, wanted=wanted) for name, (p, held, wanted) in enumerate(rows)]
)


@given(parties, st.integers(0, 100))
def test_entitlements_use_the_whole_and_no_more_and_give_nobody_more_than_it_wants(
    who: list[Party], spare: int
) -> None:
    total = sum(party.held for party in who) + spare
    entitled = entitlements(total, who)
    asked = sum(party.held + party.wanted for party in who)
    assert sum(entitled.values()) <= min(total, asked) + 1e-6
    assert abs(sum(entitled.values()) - min(total, asked)) < 1e-6
    assert all(entitled.get(party.name, 0) <= party.held + party.wanted + 1e-6 for party in who)


@given(parties, st.integers(0, 100))
def test_somebody_may_always_take_all_that_is_free_and_nobody_more(who: list[Party], free: int) -> None:
    total = sum(party.held for party in who) + free
    takes = [may_take(total, free, party.name, who) for party in who if party.wanted]
    assert all(take <= free for take in takes)
    if takes:
        assert max(takes) == free


def test_shares_follow_the_priority() -> None:
    who = [Party(name="a", priority=30, held=0, wanted=1000), Party(name="b", priority=10, held=0, wanted=1000)]
    assert entitlements(100, who) == {"a": 75.0, "b": 25.0}


def test_what_one_cannot_use_goes_to_the_others() -> None:
    who = [Party(name="a", priority=10, held=0, wanted=10), Party(name="b", priority=10, held=0, wanted=1000)]
    assert entitlements(100, who) == {"a": 10.0, "b": 90.0}


def test_a_run_that_has_everything_leaves_the_next_that_ends_to_one_that_has_nothing() -> None:
    who = [Party(name="long", priority=10, held=100, wanted=1000), Party(name="short", priority=10, held=0, wanted=80)]
    # entitled to 55 and still without anything: that much of what ends is left to it
    assert may_take(110, 10, "long", who) == 10 - 55
    assert may_take(110, 10, "short", who) == 10


def test_a_drained_worker_is_left_to_the_run_that_drains_it() -> None:
    who = [
        Party(name="giant", priority=1, held=0, wanted=90, drained=90),
        Party(name="small", priority=100, held=10, wanted=500),
    ]
    assert may_take(100, 90, "small", who) <= 0
    assert may_take(100, 90, "giant", who) == 90


def test_of_two_that_drain_the_first_goes_first() -> None:
    who = [
        Party(name="first", priority=1, held=0, wanted=90, drained=90),
        Party(name="second", priority=1, held=0, wanted=80, drained=80),
    ]
    assert (may_take(100, 100, "first", who), may_take(100, 100, "second", who)) == (100, 10)


AGE, LENGTH = 30, 7


@settings(max_examples=30)
@given(
    st.integers(2, 4),
    st.lists(st.integers(1, 100), min_size=4, max_size=4),
    st.lists(st.integers(1, 100), min_size=4, max_size=4),
)
def test_runs_that_always_have_something_waiting_all_go_on_and_never_hold_more_than_there_is(
    runs: int, priorities: list[int], sizes: list[int]
) -> None:
    held, last = dict.fromkeys(range(runs), 0), dict.fromkeys(range(runs), 0)
    ends: list[tuple[int, int]] = []
    for now in range(300):
        # each looks in turn, as commands do that know nothing of one another but these numbers
        name = now % runs
        who = [
            Party(
                name=one,
                priority=priorities[one],
                held=held[one],
                wanted=1000,
                drained=sizes[one] if now - last[one] > AGE else 0,
            )
            for one in sorted(range(runs), key=lambda one: last[one])
        ]
        if sizes[name] <= may_take(100, 100 - sum(held.values()), name, who):
            held[name] += sizes[name]
            last[name] = now
            heapq.heappush(ends, (now + LENGTH, name))
        assert sum(held.values()) <= 100
        while ends and ends[0][0] <= now + 1:
            _at, ended = heapq.heappop(ends)
            held[ended] -= sizes[ended]
    # its age, and then a round for each that drains before it
    assert min(last.values()) > 300 - AGE - runs * (LENGTH + 2 * runs) - LENGTH
