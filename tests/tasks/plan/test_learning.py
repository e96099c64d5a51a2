"""What measured over projected memory of earlier conversions teaches."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.plan.learning import ENOUGH_ATTEMPTS, FEWEST_ATTEMPTS, HIGHEST_FACTOR, LOWEST_FACTOR, Learnt, learn

ratios = st.floats(0.01, 50.0)


@given(st.lists(ratios, max_size=FEWEST_ATTEMPTS - 1))
def test_a_few_attempts_teach_nothing(few: list[float]) -> None:
    assert learn(few) is None


@given(st.lists(ratios, min_size=FEWEST_ATTEMPTS, max_size=300))
def test_the_factor_is_bounded_and_names_its_sample(known: list[float]) -> None:
    learnt = learn(known)
    assert learnt is not None
    assert learnt.attempts == len(known)
    assert LOWEST_FACTOR <= learnt.factor <= HIGHEST_FACTOR
    if len(known) < ENOUGH_ATTEMPTS:
        assert learnt.factor >= 1.0, "a small sample must not take memory away"


@given(st.lists(st.floats(0.01, HIGHEST_FACTOR / 1.1), min_size=FEWEST_ATTEMPTS, max_size=300))
def test_what_was_seen_fits_into_what_is_promised_next_but_for_one_in_a_hundred(known: list[float]) -> None:
    learnt = learn(known)
    assert learnt is not None
    beyond = sum(ratio > learnt.factor for ratio in known)
    assert beyond <= len(known) // 100


@given(st.lists(ratios, min_size=FEWEST_ATTEMPTS, max_size=120), st.floats(1.0, 3.0))
def test_needing_more_never_teaches_less(known: list[float], more: float) -> None:
    before, after = learn(known), learn([ratio * more for ratio in known])
    assert before is not None
    assert after is not None
    assert after.factor >= before.factor


@given(st.lists(ratios, min_size=FEWEST_ATTEMPTS, max_size=120), st.randoms(use_true_random=False))
def test_the_order_of_attempts_does_not_matter(known: list[float], shuffle: random.Random) -> None:
    other = list(known)
    shuffle.shuffle(other)
    assert learn(other) == learn(known)


def test_nonsense_is_left_out() -> None:
    nonsense = [0.0, -1.0, math.nan, math.inf]
    assert learn([*nonsense, *[0.8] * 60]) == learn([0.8] * 60)
    assert learn(nonsense * 10) is None


@given(st.floats(0.5, 4.0), st.integers(1, 2**50))
def test_a_promise_is_whole_bytes_and_never_below_the_factor(factor: float, floor_bytes: int) -> None:
    promised = Learnt(factor, 60).bytes_for(floor_bytes)
    assert promised >= factor * floor_bytes
    assert promised - factor * floor_bytes < 1


@pytest.mark.parametrize("level", [0.2, 0.55, 0.8, 1.0, 1.9, 3.0])
def test_after_fifty_attempts_the_next_ones_fit_and_half_of_what_is_promised_is_used(level: float) -> None:
    """Recordings whose need spreads by a fifth around ``level`` times the formula."""
    rng = random.Random(1)
    draw = lambda count: [level * rng.uniform(0.85, 1.05) for _ in range(count)]  # noqa: E731 - a name for a sample
    learnt = learn(draw(ENOUGH_ATTEMPTS))
    assert learnt is not None
    after = sorted(ratio / learnt.factor for ratio in draw(2000))
    assert after[round(0.99 * len(after))] <= 1.0
    if level / LOWEST_FACTOR > 0.55:
        assert statistics.median(after) >= 0.5
