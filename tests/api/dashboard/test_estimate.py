"""The time that is left: what any pace must give, and when there is no telling."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from api.dashboard.estimate import TimeLeft, either, time_left

PART_S = 300.0
paces = st.lists(st.integers(0, 10_000), min_size=3, max_size=40)
lefts = st.integers(1, 10**9)


def told(left: float, done: list[int]) -> TimeLeft:
    found = time_left(left, done, part_s=PART_S)
    assume(found is not None)
    assert found is not None
    return found


@given(lefts, paces)
def test_the_middle_lies_in_the_range_and_is_what_is_left_over_the_mean_pace(left: int, done: list[int]) -> None:
    found = told(left, done)
    begun = done[next(nth for nth, one in enumerate(done) if one) :]
    assert math.isclose(found.middle_s, left / (sum(begun) / len(begun)) * PART_S)
    assert 0 < found.shortest_s <= found.middle_s * (1 + 1e-12)
    assert found.longest_s is None or found.longest_s >= found.middle_s * (1 - 1e-12)


@given(lefts, paces, st.integers(1, 50))
def test_twice_as_much_takes_twice_as_long_and_twice_as_fast_half(left: int, done: list[int], times: int) -> None:
    found, more, faster = told(left, done), told(left * times, done), told(left, [one * times for one in done])
    for name in ("middle_s", "shortest_s", "longest_s"):
        one, many, quick = (getattr(each, name) for each in (found, more, faster))
        if one is not None:
            assert math.isclose(many, one * times)
            assert math.isclose(quick, one / times)
        else:
            assert many is None
            assert quick is None


@given(lefts, paces, st.integers(0, 10))
def test_time_before_anything_began_says_nothing_of_the_pace(left: int, done: list[int], before: int) -> None:
    assert told(left, [0] * before + done) == told(left, done)


@given(lefts, st.integers(1, 1000), st.integers(3, 30))
def test_an_even_pace_leaves_no_doubt(left: int, each: int, parts: int) -> None:
    found = told(left, [each] * parts)
    assert found.longest_s is not None
    assert math.isclose(found.shortest_s, found.middle_s)
    assert math.isclose(found.longest_s, found.middle_s)


def test_nothing_left_takes_no_time_and_too_little_done_tells_nothing() -> None:
    assert time_left(0, [], part_s=PART_S) == TimeLeft(middle_s=0, shortest_s=0, longest_s=0)
    for done in ([], [0] * 12, [5], [0, 0, 5, 9], [0] * 10 + [1, 1]):
        assert time_left(10, done, part_s=PART_S) is None
    found = time_left(10, [1, 0, 0, 0, 0, 90, 0, 1], part_s=PART_S)
    assert found is not None
    assert found.longest_s is None, "so uneven that there is no telling"


@given(lefts, lefts, paces, paces)
def test_one_estimate_of_two_holds_both(size: int, number: int, by_size: list[int], by_number: list[int]) -> None:
    one, other = told(size, by_size), told(number, by_number)
    both = either(one, other)
    assert both is not None
    assert both.middle_s == one.middle_s
    assert both.shortest_s == min(one.shortest_s, other.shortest_s)
    assert (both.longest_s is None) == (one.longest_s is None or other.longest_s is None)
    assert either(one, None) is None
