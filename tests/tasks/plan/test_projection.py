"""What a conversion is projected to need."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.formats import load
from tasks.formats.memory import FLOOR_BYTES, HELD_BYTES, SMALLEST_BYTES
from tasks.formats.protocol import Header, Route
from tasks.plan.learning import Learnt
from tasks.plan.projection import Basis, project

HOUR = Header(n_channels=64, n_samples=3_600_000, rate_hz=1000.0, rates_hz=(1000.0,))


TEN_MINUTES = Header(n_channels=64, n_samples=600_000, rate_hz=1000.0, rates_hz=(1000.0,))

# Peak above the birth of a preloaded child, in MB, measured with biosigIO 1.2.13: anonymous memory when streamed.
MEASURED = [
    ("edf", TEN_MINUTES, Route.STREAMED, 29),
    ("brainvision", TEN_MINUTES, Route.STREAMED, 50),
    ("fif", TEN_MINUTES, Route.STREAMED, 36),
    ("eeglab", TEN_MINUTES, Route.STREAMED, 49),
    ("eeglab", replace(TEN_MINUTES, whole=True), Route.IN_MEMORY, 240),
    ("eeglab", replace(TEN_MINUTES, whole=True, sample_bytes=8), Route.IN_MEMORY, 382),
]


@pytest.mark.parametrize(("name", "header", "route", "measured_mb"), MEASURED)
def test_the_formula_lies_above_what_was_measured_and_not_far(
    name: str, header: Header, route: Route, measured_mb: int
) -> None:
    found = project(load()[name], header, 10**8, "eeg")
    assert found.route is route
    assert measured_mb * 1.1e6 <= found.floor_bytes <= 2.5 * measured_mb * 1e6


@pytest.mark.parametrize("name", sorted(load()))
def test_an_unknown_recording_is_charged_the_floor_and_never_nothing(name: str) -> None:
    found = project(load()[name], None, 0, None)
    assert found.projected_bytes >= FLOOR_BYTES
    assert found.scratch_bytes > 0
    assert found.basis is Basis.FLOOR
    assert found.floor_bytes == 0, "nothing may be judged by a guess"


@pytest.mark.parametrize("name", sorted(load()))
def test_a_size_alone_raises_the_projection(name: str) -> None:
    found = project(load()[name], None, 100 * 10**9, "eeg")
    assert found.projected_bytes > FLOOR_BYTES
    assert found.basis is Basis.SIZE
    assert found.floor_bytes == 0, "nothing may be judged by a guess"


def test_a_tolerant_read_is_held_in_memory() -> None:
    header = Header(n_channels=64, n_samples=3_600_000, rate_hz=1000.0, rates_hz=(1000.0,), tolerant=True)
    found = project(load()["edf"], header, 10**9, "eeg")
    assert found.route is Route.IN_MEMORY
    assert found.floor_bytes > 16 * 64 * 3_600_000


def test_mixed_rates_are_charged_what_their_neediest_group_takes_and_a_copy_of_the_file() -> None:
    one = load()["edf"]
    fast, slow = (1000.0,) * 4, (10.0,) * 60
    header = Header(
        n_channels=64,
        n_samples=3_600_000,
        rate_hz=1000.0,
        rates_hz=(10.0, 1000.0),
        channel_rates_hz=fast + slow,
        channel_samples=(3_600_000,) * 4 + (36_000,) * 60,
    )
    alone = Header(n_channels=4, n_samples=3_600_000, rate_hz=1000.0, rates_hz=(1000.0,))
    size = 2 * (4 * 3_600_000 + 60 * 36_000)
    mixed, single = project(one, header, size, "eeg"), project(one, alone, size, "eeg")
    assert mixed.route is Route.STREAMED
    assert mixed.floor_bytes == single.floor_bytes
    assert mixed.scratch_bytes > single.scratch_bytes + size


@pytest.mark.parametrize(("name", "kept"), [("edf", 0), ("fif", 4)])
def test_streaming_needs_its_mapped_files_on_scratch(name: str, kept: int) -> None:
    found = project(load()[name], replace(HOUR, kept_sample_bytes=kept), 10**9, "eeg")
    mapped = kept * 64 * 3_600_000 + 10 / 3 * 64 * 900_000
    assert mapped < found.scratch_bytes < mapped + 3.2 * 64 * 900_000 + 3e6
    assert (
        project(load()[name], replace(HOUR, kept_sample_bytes=kept), 10**9, "eeg", fetched_bytes=10**9).scratch_bytes
        == found.scratch_bytes + 10**9
    )


def test_a_shielded_recording_is_charged_for_being_held_whole() -> None:
    one = load()["fif"]
    plain = Header(n_channels=306, n_samples=600_000, rate_hz=1000.0, rates_hz=(1000.0,))
    shielded = Header(n_channels=306, n_samples=600_000, rate_hz=1000.0, rates_hz=(1000.0,), maxshield=True)
    assert project(one, shielded, 10**9, "meg").floor_bytes > 10 * project(one, plain, 10**9, "meg").floor_bytes


@given(st.floats(0.01, 100.0), st.integers(1, 1000))
def test_what_was_learnt_moves_the_projection_and_never_what_a_verdict_rests_on(factor: float, attempts: int) -> None:
    taught = Learnt(factor, attempts)
    found = project(load()["edf"], HOUR, 10**9, "eeg", learnt={("edf", "streamed"): taught})
    plain = project(load()["edf"], HOUR, 10**9, "eeg")
    assert found.floor_bytes == plain.floor_bytes == plain.projected_bytes
    assert found.projected_bytes == max(math.ceil(factor * plain.floor_bytes), SMALLEST_BYTES)
    assert (found.basis, found.learnt) == (Basis.LEARNT, taught)
    assert (plain.basis, plain.learnt) == (Basis.FORMULA, None)


def test_what_one_kind_taught_is_used_for_no_other_and_not_for_the_unknown() -> None:
    learnt = {("edf", "in_memory"): Learnt(3.0, 60), ("bdf", "streamed"): Learnt(2.0, 60)}
    assert project(load()["edf"], HOUR, 10**9, "eeg", learnt=learnt).basis is Basis.FORMULA
    for header, size in ((None, 0), (None, 10**9), (Header(n_channels=8), 10**9)):
        told = project(load()["bdf"], header, size, "eeg", learnt=learnt)
        assert told == project(load()["bdf"], header, size, "eeg")


@given(st.integers(1, 400), st.integers(1, 10**8), st.floats(1, 50_000))
def test_more_channels_or_samples_never_need_less(channels: int, samples: int, rate: float) -> None:
    for one in load().values():
        small = project(one, Header(n_channels=channels, n_samples=samples, rate_hz=rate, rates_hz=(rate,)), 1, "eeg")
        large = project(
            one, Header(n_channels=channels + 1, n_samples=2 * samples, rate_hz=rate, rates_hz=(rate,)), 1, "eeg"
        )
        # codes and samples that grow past 16 MiB are mapped: from then on they cost disk and no memory
        mapped = 8 * (channels + 1) * 2 * samples > HELD_BYTES
        assert large.floor_bytes >= small.floor_bytes - (math.ceil(1.1 * 2 * HELD_BYTES) if mapped else 0)
        assert large.scratch_bytes >= small.scratch_bytes
