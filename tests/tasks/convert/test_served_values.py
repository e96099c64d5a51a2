"""Served values against an independent reading of the source, on real recordings of eight formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from conversion import Bench, recording_at
from ctf_files import continuous_ctf
from open_store import served
from reference_signal import ServedSignal, SourceSignal, disagreements, expected, read_edf, read_mne

from contract.rates import RATE_CAPS_HZ
from tasks.convert.order import ConvertedStore


@dataclass(frozen=True)
class Case:
    name: str
    format: str
    modality: str
    bids: str
    files: tuple[tuple[str, str], ...]
    """(path among the real recordings, name beside the recording); the first is the recording itself."""
    read: Callable[[Path], SourceSignal]


CASES = (
    Case("edf", "edf", "eeg", "sub-01_task-a_eeg.edf", (("edf/chtypes_edf.edf", "sub-01_task-a_eeg.edf"),), read_edf),
    Case(
        "emg",
        "edf",
        "emg",
        "sub-01_task-typing_emg.edf",
        (("emg/emg_TwoWristbands/sub-01/emg/sub-01_task-typing_emg.edf", "sub-01_task-typing_emg.edf"),),
        read_edf,
    ),
    Case(
        "bdf",
        "bdf",
        "eeg",
        "sub-01_task-a_eeg.bdf",
        (("bdf/multiple_annotation_chans.bdf", "sub-01_task-a_eeg.bdf"),),
        read_edf,
    ),
    Case(
        "brainvision",
        "brainvision",
        "eeg",
        "test_CA_208.vhdr",
        tuple((f"brainvision/test_CA_208.{end}", f"test_CA_208.{end}") for end in ("vhdr", "eeg", "vmrk")),
        read_mne,
    ),
    Case(
        "eeglab",
        "eeglab",
        "eeg",
        "test_raw.set",
        (("eeglab/test_raw.set", "test_raw.set"), ("eeglab/test_raw.fdt", "test_raw.fdt")),
        read_mne,
    ),
    Case("fif", "fif", "meg", "sub-01_task-a_meg.fif", (("fif/mgh70_raw.fif", "sub-01_task-a_meg.fif"),), read_mne),
    Case("ctf", "ctf", "meg", "sub-01_task-a_meg.ds", (), read_mne),
    Case(
        "kit", "kit", "meg", "sub-01_task-a_meg.con", (("kit/MQKIT_125_2sec.con", "sub-01_task-a_meg.con"),), read_mne
    ),
    Case("bti", "bti", "meg", "sub-01_task-a_meg", (("bti/4Dsim", "sub-01_task-a_meg"),), read_mne),
)


@dataclass(frozen=True)
class Converted:
    case: Case
    result: ConvertedStore
    store: Path
    served: ServedSignal
    wanted: np.ndarray


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def converted(request: pytest.FixtureRequest, recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    case: Case = request.param
    bench = Bench(tmp_path_factory.mktemp(case.name))
    folder = f"sub-01/{case.modality}"
    for origin, name in case.files:
        bench.put(f"{folder}/{name}", recordings / origin)
    primary = bench.source / folder / case.bids
    if case.format == "ctf":
        primary.parent.mkdir(parents=True)
        continuous_ctf(recordings, primary)
    members = (f"{folder}/{case.bids}",)
    if primary.is_dir():
        members = tuple(sorted(p.relative_to(bench.source).as_posix() for p in primary.rglob("*") if p.is_file()))
    companions = tuple(f"{folder}/{name}" for _, name in case.files[1:])
    recording = recording_at(
        f"{folder}/{case.bids}", case.format, case.modality, members=members, companions=companions
    )
    result = bench.convert(recording)
    assert result.entry.groups is not None
    (group,) = result.entry.groups
    signal = served(bench.store, group.name)
    source = case.read(primary)
    return Converted(case, result, bench.store, signal, expected(source, signal, RATE_CAPS_HZ[case.modality.upper()]))


def test_values_are_those_of_the_source_within_one_quantisation_step(converted: Converted) -> None:
    assert disagreements(converted.served, converted.wanted) == []


def test_the_comparison_notices_a_shift_by_one_sample(converted: Converted) -> None:
    shifted = replace(converted.served, physical=np.roll(converted.served.physical, 1, axis=1))
    assert disagreements(shifted, converted.wanted)


def test_the_comparison_notices_a_factor_of_two(converted: Converted) -> None:
    doubled = replace(converted.served, physical=2 * converted.served.physical)
    assert disagreements(doubled, converted.wanted)


def test_the_comparison_notices_swapped_channels(converted: Converted) -> None:
    swapped = replace(converted.served, physical=np.roll(converted.served.physical, 1, axis=0))
    assert disagreements(swapped, converted.wanted)


def test_no_channel_is_missing_and_the_entry_says_what_the_store_holds(converted: Converted) -> None:
    assert converted.result.entry.groups is not None
    (group,) = converted.result.entry.groups
    assert (group.n_channels, group.n_samples) == converted.served.physical.shape
    assert group.n_channels == len(converted.wanted)
