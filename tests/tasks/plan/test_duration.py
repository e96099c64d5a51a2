"""Expected seconds of a conversion: they follow what was measured, and one odd attempt moves them little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.durations import KindTook
from tasks.plan.duration import expected_s

KIND, OTHER = ("edf", "memory"), ("fif", "streamed")
SIZES = st.integers(0, 10**12)


def took(attempts: int, seconds: float, size_bytes: int) -> dict[tuple[str, str], KindTook]:
    return {KIND: KindTook(attempts=attempts, seconds=seconds, size_bytes=size_bytes)}


def test_until_something_was_converted_a_recording_takes_a_tenth_of_a_second_and_25_megabytes_a_second() -> None:
    assert expected_s(KIND, 0) == pytest.approx(0.1)
    assert expected_s(KIND, 250_000_000) == pytest.approx(10.1)
    assert expected_s(OTHER, 250_000_000, took(50, 1e6, 1)) == pytest.approx(10.1), "another kind's pace is its own"


def test_fifty_attempts_decide_and_one_moves_it_by_a_sixth() -> None:
    slow = 1 / 2.5e6  # seconds a byte: ten times what is assumed
    many = expected_s(KIND, 25_000_000, took(50, 0.1 * 50 + slow * 50e6, 50_000_000))
    assert many == pytest.approx(0.1 + (5 * 1 + 50 * 10) / 55)
    one = expected_s(KIND, 25_000_000, took(1, 0.1 + slow * 1e6, 1_000_000))
    assert one == pytest.approx(0.1 + (5 * 1 + 10) / 6)


@given(SIZES, SIZES, st.integers(1, 50), st.floats(0, 1e7), SIZES)
def test_it_is_never_less_than_its_fixed_part_and_grows_with_the_recording(
    small: int, large: int, attempts: int, seconds: float, size_bytes: int
) -> None:
    known = took(attempts, seconds, size_bytes)
    small, large = sorted((small, large))
    assert 0.1 <= expected_s(KIND, small, known) <= expected_s(KIND, large, known)
