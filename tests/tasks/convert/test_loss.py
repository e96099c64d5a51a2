"""What int16 costs is measured while it is paid, and said where it hides something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conversion import Bench, recording_at, with_sidecars
from open_store import served
from small_files import brainvision, eeglab

from tasks.convert.loss import ChannelLoss, GroupLoss, coarse, measure, pack_losses, unpack_losses

STEM = "sub-01/eeg/sub-01_task-a_eeg"


def quantised(row: np.ndarray) -> tuple[np.ndarray, float, float]:
    """By hand: the range on 65,535 steps."""
    low, high = float(row.min()), float(row.max())
    scale = (high - low) / 65_535
    return np.round((row - low) / scale - 32_768).astype(np.int16), scale, low + 32_768 * scale


def noisy(n_samples: int, spread: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=spread, size=n_samples)


@pytest.mark.parametrize("n_samples", [3, 1000, 300_000])
def test_the_errors_are_those_of_every_sample(n_samples: int) -> None:
    row = noisy(n_samples, 10.0)
    digital, scale, offset = quantised(row)
    off = np.abs(row - (digital * scale + offset))
    loss = measure(row, digital, scale, offset)
    assert loss.step == scale
    assert loss.max_error == pytest.approx(off.max())
    assert loss.rms_error == pytest.approx(np.sqrt(np.mean(off**2)))


@pytest.mark.parametrize("spread", [0.5, 20.0])
@pytest.mark.parametrize("drift", [0.0, 5_000.0])
def test_the_noise_floor_is_the_noise_and_not_the_drift(spread: float, drift: float) -> None:
    row = noisy(100_000, spread) + drift * np.sin(np.linspace(0, 12, 100_000))
    assert measure(row, *quantised(row)).noise == pytest.approx(spread, rel=0.05)


def test_flat_stretches_and_samples_that_are_no_numbers_say_nothing_of_noise() -> None:
    row = noisy(100_000, 2.0)
    row[20_000:60_000] = 7.0
    digital, scale, offset = quantised(row)
    row[500:520] = np.nan
    loss = measure(row, digital, scale, offset)
    assert loss.noise == pytest.approx(2.0, rel=0.05)
    assert np.isfinite(loss.max_error)
    flat = measure(np.full(1000, 3.0), np.zeros(1000, np.int16), 1.0, 3.0)
    assert flat == ChannelLoss(1.0, 0.0, 0.0, 0.0, 0.0)
    assert not flat.is_coarse("EEG")


CASES = [
    ("noise of 10 in a range of 80", noisy(50_000, 10.0), "EEG", False),
    ("noise of 1 beside an artefact of a million", np.r_[noisy(50_000, 1.0), 1e6], "EEG", True),
    ("steps of a coarse recorder", np.round(noisy(50_000, 3.0)) * 40, "EEG", False),
    ("a seldom changing value of a coarse recorder", np.repeat(np.arange(100.0) % 7 * 50, 500), "TEMP", False),
    ("codes up to 255", np.repeat(np.arange(200.0) % 255, 300), "TRIG", False),
    ("codes of 24 bits", np.repeat(np.r_[np.arange(100.0) % 255, 16_000_000.0], 300), "TRIG", True),
]


@pytest.mark.parametrize(("row", "kind", "is_coarse"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_step_is_coarse_where_it_hides_detail_that_the_recorder_had(
    row: np.ndarray, kind: str, is_coarse: bool
) -> None:
    assert measure(row, *quantised(row)).is_coarse(kind) is is_coarse


def test_losses_come_back_from_what_an_attempt_keeps_and_stay_small() -> None:
    rng = np.random.default_rng(0)
    channels = tuple(ChannelLoss(*rng.lognormal(size=5)) for _ in range(4096))
    labels = tuple(f"channel {i}" for i in range(4096))
    group = GroupLoss(group="eeg_250hz", labels=labels, types=("EEG",) * 4096, units=("uV",) * 4096, channels=channels)
    packed = pack_losses([group])
    assert len(packed) < 131_072
    (back,) = unpack_losses(packed)
    assert (back.group, back.labels, back.units) == (group.group, group.labels, group.units)
    wanted = [[c.step, c.max_error, c.rms_error, c.noise, c.resolution] for c in channels]
    got = [[c.step, c.max_error, c.rms_error, c.noise, c.resolution] for c in back.channels]
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_many_coarse_channels_are_one_sentence() -> None:
    one = ChannelLoss(3.0, 1.5, 0.8, 1.0, 0.0)
    labels = tuple("ABCDEFGH")
    group = GroupLoss(group="g", labels=labels, types=("EEG",) * 8, units=("uV",) * 8, channels=(one,) * 8)
    said = coarse([group])
    assert said is not None
    assert said.startswith("8 channels have int16 steps coarser than the noise floor: A (3 uV a step), B")
    assert said.endswith(" and 3 more")
    assert coarse([]) is None


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "in memory"])
def test_a_conversion_reports_what_it_lost(tmp_path: Path, streamed: bool) -> None:
    bench = Bench(tmp_path)
    data = np.random.default_rng(0).normal(scale=20.0, size=(3, 40_000))
    data[1, 20_000] = 3_000.0
    if streamed:
        brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", data, 1000.0)
        recording = recording_at(f"{STEM}.vhdr", "brainvision", "eeg", companions=(f"{STEM}.eeg", f"{STEM}.vmrk"))
        bench.put("channels.tsv", "name\tunits\nE1\tuV\nE2\tuV\nE3\tuV\n")
        recording = with_sidecars(recording, channels="channels.tsv")
    else:
        eeglab(bench.source / f"{STEM}.set", data, 1000.0)
        recording = recording_at(f"{STEM}.set", "eeglab", "eeg")
    done = bench.convert(recording)
    assert done.quantisation is not None
    (group,) = unpack_losses(done.quantisation)
    assert (group.labels, group.units) == (("E1", "E2", "E3"), ("uV",) * 3)
    signal = served(bench.store, group.group)
    for scale, loss in zip(signal.scale, group.channels, strict=True):
        assert loss.step == pytest.approx(scale, rel=1e-4)
        assert loss.max_error == pytest.approx(scale / 2, rel=0.05)
        assert loss.rms_error == pytest.approx(scale / np.sqrt(12), rel=0.1)
