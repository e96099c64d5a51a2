"""The gate between a finished store and what is served."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contract.codes import FailureCode
from contract.errors import NotNow, RecordingFailed
from tasks.convert.gate import CountMismatch, check_channels, check_groups
from tasks.convert.store import StoreGroup
from tasks.formats.protocol import Header

HEADER = Header(n_channels=3, n_samples=40_000, rate_hz=1000.0)


def group(channels: int = 3, samples: int = 10_000) -> StoreGroup:
    levels = {1: (2, channels, samples // 4), 2: (2, channels, samples // 16)}
    return StoreGroup(
        name="eeg_250hz",
        attributes={
            "modality": "EEG",
            "rate": 250.0,
            "n_channels": channels,
            "n_samples": samples,
            "channels": [{"label": str(i)} for i in range(channels)],
            "n_view_levels": 2,
            "view_levels": [1, 2],
            "view_downsample": 4,
        },
        level0={"rate": 250.0, "source_rate_hz": 1000.0, "scale": [1.0] * channels, "offset": [0.0] * channels},
        shape=(channels, samples),
        view_shapes=levels,
    )


@pytest.mark.parametrize(
    ("in_store", "in_file", "in_sidecar", "outcome"),
    [
        (3, 3, None, None),
        (3, 3, 3, None),
        (3, 3, 2, None),
        (4, 3, 3, None),
        (2, 3, None, FailureCode.CHANNEL_COUNT_MISMATCH),
        (2, 3, 2, FailureCode.CHANNEL_COUNT_MISMATCH),
        (3, 3, 5, CountMismatch(5, 3, 3)),
        (4, 3, 5, CountMismatch(5, 3, 4)),
        (3, None, 5, FailureCode.CHANNEL_COUNT_MISMATCH),
        (3, None, 3, None),
        (3, None, None, None),
    ],
)
def test_channels_are_counted_against_the_file_first(
    in_store: int, in_file: int | None, in_sidecar: int | None, outcome: object
) -> None:
    header = replace(HEADER, n_channels=in_file)
    if isinstance(outcome, FailureCode):
        with pytest.raises(RecordingFailed) as caught:
            check_channels([group(in_store)], header, in_sidecar)
        assert caught.value.failure is outcome
    else:
        assert check_channels([group(in_store)], header, in_sidecar) == outcome


def test_channels_of_several_groups_count_together() -> None:
    assert check_channels([group(2), group(1)], HEADER, 3) is None


def test_a_good_group_passes() -> None:
    check_groups([group()], HEADER)
    check_groups([group()], Header())


@pytest.mark.parametrize("samples", [9_999, 10_000, 10_001])
def test_rounding_of_one_sample_is_allowed(samples: int) -> None:
    check_groups([group(samples=samples)], HEADER)


@pytest.mark.parametrize("samples", [0, 5_000, 9_998])
def test_fewer_samples_than_the_header_declares_is_a_cut_file(samples: int) -> None:
    with pytest.raises(RecordingFailed) as caught:
        check_groups([group(samples=samples)], HEADER)
    expected = FailureCode.EMPTY_RECORDING if samples == 0 else FailureCode.CORRUPT_OR_TRUNCATED
    assert caught.value.failure is expected


def test_fewer_samples_are_fine_where_the_header_gives_only_a_bound() -> None:
    check_groups([group(samples=5_000)], replace(HEADER, exact_samples=False))


def test_a_store_without_groups_is_empty() -> None:
    with pytest.raises(RecordingFailed) as caught:
        check_groups([], HEADER)
    assert caught.value.failure is FailureCode.EMPTY_RECORDING


def _set(where: str, name: str, value: object) -> Callable[[StoreGroup], StoreGroup]:
    def change(one: StoreGroup) -> StoreGroup:
        values: dict[str, Any] = copy.deepcopy(dict(getattr(one, where)))
        values[name] = value
        return replace(one, **{where: values})

    return change


BROKEN: list[tuple[str, Callable[[StoreGroup], StoreGroup]]] = [
    ("more samples than the file", lambda _: group(samples=10_100)),
    ("a channel without a scale", _set("level0", "scale", [1.0, 1.0])),
    ("an infinite scale", _set("level0", "scale", [1.0, float("inf"), 1.0])),
    ("a zero scale", _set("level0", "scale", [1.0, 0.0, 1.0])),
    ("an offset that is no number", _set("level0", "offset", [0.0, float("nan"), 0.0])),
    ("a declared level that is not there", lambda g: replace(g, view_shapes={1: g.view_shapes[1]})),
    ("a level of a wrong shape", lambda g: replace(g, view_shapes={**g.view_shapes, 2: (2, 3, 5)})),
    ("a level that is not declared", lambda g: replace(g, view_shapes={**g.view_shapes, 3: (2, 3, 156)})),
    ("levels with a gap", _set("attributes", "view_levels", [1, 3])),
    ("two rates", _set("level0", "rate", 125.0)),
    ("a rate above the source's", lambda g: _set("attributes", "rate", 2000.0)(_set("level0", "rate", 2000.0)(g))),
    ("another source rate than the header's", _set("level0", "source_rate_hz", 999.0)),
    ("another number of channels than declared", _set("attributes", "n_channels", 4)),
    ("another number of samples than declared", _set("attributes", "n_samples", 9_999)),
    ("fewer descriptions than channels", _set("attributes", "channels", [{"label": "0"}])),
]


@pytest.mark.parametrize("change", [b[1] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_a_store_that_contradicts_itself_is_withheld_and_tried_again(
    change: Callable[[StoreGroup], StoreGroup],
) -> None:
    with pytest.raises(NotNow):
        check_groups([change(group())], HEADER)


MIXED = Header(
    n_channels=3,
    n_samples=40_000,
    rate_hz=1000.0,
    rates_hz=(50.0, 1000.0),
    channel_rates_hz=(1000.0, 1000.0, 50.0),
)


def slow(channels: int = 1, samples: int = 2_000, rate: float = 50.0) -> StoreGroup:
    one = group(channels, samples)
    attributes = {**one.attributes, "rate": rate, "n_view_levels": 0, "view_levels": []}
    return replace(
        one,
        name="eeg_50hz",
        attributes=attributes,
        level0={**one.level0, "rate": rate, "source_rate_hz": rate},
        view_shapes={},
    )


def test_each_rate_of_a_mixed_file_is_a_group_as_long_as_the_recording() -> None:
    check_groups([group(2), slow()], MIXED)


@pytest.mark.parametrize(
    ("groups", "code"),
    [
        ([group(3), slow(1)], FailureCode.CHANNEL_COUNT_MISMATCH),
        ([group(2)], FailureCode.CHANNEL_COUNT_MISMATCH),
        ([group(1), slow(2)], FailureCode.CHANNEL_COUNT_MISMATCH),
        ([group(2), slow(samples=1_500)], FailureCode.CORRUPT_OR_TRUNCATED),
        ([group(2), slow(samples=0)], FailureCode.EMPTY_RECORDING),
    ],
    ids=["a channel at another rate", "a rate that is missing", "a slow channel too many", "too short", "empty"],
)
def test_a_mixed_file_that_is_not_served_whole_is_withheld(groups: list[StoreGroup], code: FailureCode) -> None:
    with pytest.raises(RecordingFailed) as caught:
        check_groups(groups, MIXED)
    assert caught.value.failure is code


@pytest.mark.parametrize("broken", [slow(rate=60.0), slow(samples=2_100)], ids=["no rate of the file", "too long"])
def test_a_slow_group_that_contradicts_the_header_is_tried_again(broken: StoreGroup) -> None:
    with pytest.raises(NotNow):
        check_groups([group(2), broken], MIXED)


def test_a_served_rate_must_be_the_one_that_follows_from_the_source() -> None:
    doubled = _set("attributes", "rate", 125.0)(_set("level0", "rate", 125.0)(group(samples=5_000)))
    with pytest.raises(NotNow):
        check_groups([doubled], HEADER)
