from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contract.rates import RATE_CAPS_HZ, resampling_ratio, served_rate
from contract.samples import sample_index
from contract.times import utc_stamp

FIRST = datetime(1980, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def rounded_half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


@given(sixty_fourths=st.integers(-(10**9), 10**9), rate_hz=st.integers(1, 50_000))
def test_a_sample_index_is_the_exact_product_rounded_half_up(sixty_fourths: int, rate_hz: int) -> None:
    onset = Fraction(sixty_fourths, 64)
    assert sample_index(float(onset), float(rate_hz)) == rounded_half_up(onset * rate_hz)


@given(onset_s=st.floats(-1e7, 1e7), rate_hz=st.floats(1e-3, 1e5))
def test_a_sample_index_differs_from_exact_arithmetic_only_where_a_double_cannot_tell(
    onset_s: float, rate_hz: float
) -> None:
    exact = Fraction(onset_s) * Fraction(rate_hz) + Fraction(1, 2)
    index = sample_index(onset_s, rate_hz)
    assert index is not None
    slack = Fraction(2 * math.ulp(float(exact)) + math.ulp(0.5))
    assert math.floor(exact - slack) <= index <= math.floor(exact + slack)


@given(sample=st.integers(-(10**6), 10**6), rate_hz=st.sampled_from([1.0, 2.0, 4.0, 250.0, 256.0, 512.0, 1000.0]))
def test_ties_go_up_on_both_sides_of_zero(sample: int, rate_hz: float) -> None:
    onset = Fraction(2 * sample + 1, 2) / Fraction(rate_hz)
    if Fraction(float(onset)) == onset:
        assert sample_index(float(onset), rate_hz) == sample + 1


@pytest.mark.parametrize(
    ("onset_s", "rate_hz", "sample"),
    [
        (0.5, 1.0, 1),
        (1.5, 1.0, 2),
        (2.5, 1.0, 3),
        (-0.5, 1.0, 0),
        (-1.5, 1.0, -1),
        (0.0, 250.0, 0),
        (-0.0, 250.0, 0),
        (0.018, 250.0, 5),
        (1e6, 250.0, 250_000_000),
        (None, 250.0, None),
        (1.0, None, None),
        (math.nan, 250.0, None),
        (math.inf, 250.0, None),
        (-math.inf, 250.0, None),
        (1.0, math.nan, None),
        (1.0, math.inf, None),
        (0.0, math.inf, None),
        (1.0, 0.0, None),
        (1.0, -250.0, None),
        (1e300, 250.0, None),
        (-1e300, 250.0, None),
        (1e308, 1e308, None),
    ],
)
def test_a_sample_index_of_known_cases(onset_s: float | None, rate_hz: float | None, sample: int | None) -> None:
    assert sample_index(onset_s, rate_hz) == sample


@given(native=st.floats(0.1, 1e6), modality=st.sampled_from(["EEG", "meg", "iEEG", "EMG"]))
def test_a_rate_is_capped_and_never_raised(native: float, modality: str) -> None:
    cap = RATE_CAPS_HZ[modality.upper()]
    served = served_rate(native, modality)
    assert served <= cap * (1 + 1e-6)
    assert served == native if native <= cap else served > 0.99 * cap


@given(hundredths=st.integers(10, 50_000), modality=st.sampled_from(["EEG", "meg", "iEEG", "EMG"]))
@example(hundredths=33_333, modality="EEG")
@example(hundredths=25_001, modality="EEG")
def test_every_number_of_hundredths_is_served_at_its_cap(hundredths: int, modality: str) -> None:
    assert served_rate(hundredths / 100, modality) == min(hundredths / 100, RATE_CAPS_HZ[modality.upper()])


@given(native=st.floats(0.1, 49_999.0), modality=st.sampled_from(["EEG", "IEEG"]))
@example(native=1000 / 3, modality="EEG")
@example(native=333.33331298828125, modality="EEG")
@example(native=1e6 / 3906, modality="EEG")
def test_a_served_rate_is_the_ratios_to_the_sample_after_ten_hours(native: float, modality: str) -> None:
    ratio = resampling_ratio(native, modality)
    assert ratio.denominator <= 50_000
    assert abs(Fraction(served_rate(native, modality)) - Fraction(native) * ratio) * 36_000 < Fraction(1, 20)


@pytest.mark.parametrize(
    ("native", "modality", "ratio"),
    [
        (1000.0, "EEG", Fraction(1, 4)),
        (512.0, "EEG", Fraction(125, 256)),
        (2048.0, "IEEG", Fraction(125, 256)),
        (1000 / 3, "MEG", Fraction(3, 4)),
        (333.33, "EEG", Fraction(25_000, 33_333)),
        (2.5, "EEG", Fraction(1)),
        (0.1, "EEG", Fraction(1)),
        (512.0, None, Fraction(1)),
        (2e7, "EEG", Fraction(1, 80_000)),
    ],
)
def test_the_ratio_is_the_simplest_that_meets_the_cap(native: float, modality: str | None, ratio: Fraction) -> None:
    assert resampling_ratio(native, modality) == ratio


@pytest.mark.parametrize(
    ("native", "served", "native_samples", "served_samples", "near_the_end"),
    [
        (333.33, 250.0, 11_999_880, 9_000_000, 8_997_500),
        (499.9, 250.0, 17_996_400, 9_000_000, 8_997_500),
        (2.5, 2.5, 90_000, 90_000, 89_975),
        (1 / 3, 1 / 3, 12_000, 12_000, 11_997),
    ],
)
def test_ten_hours_at_an_odd_rate_end_on_the_sample_worked_out_by_hand(
    native: float, served: float, native_samples: int, served_samples: int, near_the_end: int
) -> None:
    rate_hz = served_rate(native, "EEG")
    assert rate_hz == served
    assert round(native_samples * resampling_ratio(native, "EEG")) == round(36_000 * rate_hz) == served_samples
    assert sample_index(35_990.0, rate_hz) == near_the_end
    assert sample_index(36_000.0, rate_hz) == served_samples


@pytest.mark.parametrize("native", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_rate_has_no_ratio(native: float) -> None:
    with pytest.raises(ValueError, match="no rate"):
        resampling_ratio(native, "EEG")
    assert served_rate(native, "EEG") is native


@given(native=st.floats(0.1, 1e6), modality=st.sampled_from([None, "", "BEH", "misc"]))
def test_other_modalities_have_no_cap(native: float, modality: str | None) -> None:
    assert served_rate(native, modality) == native


def test_the_caps_are_those_of_the_contract() -> None:
    assert dict(RATE_CAPS_HZ) == {"EEG": 250.0, "MEG": 250.0, "IEEG": 1000.0, "EMG": 1000.0}
    assert served_rate(512.0, "IEEG") == 512.0


@given(
    moment=st.datetimes(FIRST, FIRST + timedelta(days=80_000)),
    hours=st.integers(-12, 12),
)
@example(moment=FIRST.replace(microsecond=999_999), hours=0)
def test_a_stamp_is_utc_to_the_second(moment: datetime, hours: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(hours=hours)))
    stamp = utc_stamp(aware)
    assert datetime.fromisoformat(stamp) == aware.astimezone(UTC).replace(microsecond=0)
    assert stamp.endswith("Z")
    assert len(stamp) == 20


def test_a_moment_without_a_zone_has_no_stamp() -> None:
    with pytest.raises(ValueError, match="time zone"):
        utc_stamp(FIRST)
