"""A VneuroTK recording becomes a store, windows of the store become VneuroTK files, and those say what the first one said."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from conversion import Bench
from signal_store import DATASET, put_index
from vneurotk_files import write_vneurotk
from vneurotk_reader import Reader

from contract.layout import events_key, store_key
from infra.storage.folder import FolderTarget
from tasks.bids.discovery import discover_source
from tasks.convert.store import digest_objects
from tasks.events.rows import read_rows
from tasks.export.asked import ExportAsked
from tasks.export.recording import Exported, export_recording
from tasks.read.index import read_index
from tasks.read.place import target_place
from tasks.sources import open_source

PATH = "sub-01/eeg/sub-01_task-a_eeg.h5"
NAMES = ["Fp1", "Cz", "Oz"]
ONSETS_S = (2.0, 5.5, 9.004, 20.0, 31.25)
WORDS = ("face", "house", "face", "é/x", "house")
IDS = (7, 3, 7, 9, 3)


def signal(rate_hz: float, seconds: int = 40) -> np.ndarray:
    """Microvolts: slow enough for any rate that is served."""
    times = np.arange(round(seconds * rate_hz)) / rate_hz
    return np.stack([75 * np.sin(2 * np.pi * (3 + row) * times + row) for row in range(len(NAMES))])


@dataclass
class Served:
    target: FolderTarget
    entry: dict[str, Any]

    def export(self, file: Path, **asked: Any) -> Exported:
        place = target_place(self.target)
        return export_recording(place, read_index(place, DATASET), PATH, ExportAsked(**asked), file)


def served(root: Path, recording: Path) -> Served:
    """The store of a recording at a target, with its events."""
    bench = Bench(root)
    bench.put(PATH, recording)
    (found,) = discover_source(open_source(str(bench.source))).recordings
    made = bench.convert(found)
    target = FolderTarget(root / "served", port=8321)
    entry = made.entry.model_dump(mode="json", exclude_none=True)
    put_index(target, stores=[entry])
    table = read_rows(made.events or b"")
    pq.write_table(table, root / "events.parquet", compression="zstd")
    target.put(events_key(DATASET), (root / "events.parquet").read_bytes(), content_type="x")
    objects = {name: digest.sha256 for name, digest in digest_objects(bench.store).items()}
    target.put_store(store_key(DATASET, entry["zarr"]), bench.store, objects, token="one", may_write=lambda: None)
    return Served(target, entry)


def write_source(file: Path, rate_hz: float, schema: int = 1) -> np.ndarray:
    data = signal(rate_hz)
    onsets = [round(onset * rate_hz) for onset in ONSETS_S]
    info = {"ch_units": ["uV"] * len(NAMES), "ch_types": ["EEG"] * len(NAMES), "highpass": 0.1, "lowpass": 40.0}
    meta = {"trial_type": list(WORDS)}
    write_vneurotk(file, data, rate_hz, names=NAMES, onsets=onsets, ids=IDS, meta=meta, info=info, schema=schema)
    return data


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A recording of 1000 Hz, served at 250."""
    root = tmp_path_factory.mktemp("fast")
    write_source(root / "source.h5", 1000.0)
    return served(root / "one", root / "source.h5")


@pytest.mark.parametrize("mode", ["epochs", "continuous"])
def test_labels_are_the_same_and_values_are_so_but_for_quantisation_and_resampling(
    fast: Served, tmp_path: Path, vneurotk: Reader, mode: Any
) -> None:
    told = fast.export(tmp_path / "a.h5", window_s=(-0.2, 0.8), mode=mode, schema=0)
    assert (told.n_trials, told.dropped, told.events_source) == (5, 0, "events.parquet")
    read, values = vneurotk.read(tmp_path / "a.h5")
    assert [told.stimuli[int(number)] for number in read["ids"]] == list(WORDS)
    assert read["meta"]["trial_type"] == list(WORDS)
    assert read["meta"]["stim_id"] == [str(number) for number in IDS]
    assert read["meta"]["onset_s"] == list(ONSETS_S)
    info = read["info"]
    assert (info["ch_names"], info["ch_units"], info["ch_types"]) == (NAMES, ["uV"] * 3, ["EEG"] * 3)
    assert (info["sfreq"], info["rate_original"], info["highpass"], info["lowpass"]) == (250.0, 1000.0, 0.1, 40.0)
    assert info["store_events_source"] == "recording", "that trials of the file were taken as its events is disclosed"
    samples = [math.floor(onset * 250 + 0.5) for onset in ONSETS_S]
    ideal = signal(250.0).T
    expected = ideal if mode == "continuous" else np.stack([ideal[at - 50 : at + 200] for at in samples])
    if mode == "continuous":  # the ends of a recording, where resampling has one side only
        values, expected = values[50:-50], expected[50:-50]
    assert np.abs(values - expected).max() < max(info["ch_scale"]) + 0.05


@pytest.mark.parametrize("mode", ["epochs", "continuous"])
def test_vneurotk_itself_opens_schema_1_where_a_checkout_of_it_is_named(
    fast: Served, tmp_path: Path, vneurotk: Reader, mode: Any
) -> None:
    checkout = os.environ.get("VNEUROTK_CHECKOUT")
    if not checkout:
        pytest.skip("no checkout of VneuroTK is named in VNEUROTK_CHECKOUT, and what is published reads schema 0 only")
    told = fast.export(tmp_path / "a.h5", window_s=(-0.2, 0.8), mode=mode)
    read, values = Reader(Path(checkout) / "src", beside=vneurotk.packages).read(tmp_path / "a.h5")
    assert (read["configured"], read["mode"]) == (True, mode)
    assert [told.stimuli[int(number)] for number in read["ids"]] == list(WORDS)
    assert values.shape == told.shape


def test_what_was_exported_is_a_recording_that_is_read_again(tmp_path: Path) -> None:
    write_source(tmp_path / "source.h5", 250.0)
    first = served(tmp_path / "one", tmp_path / "source.h5")
    told = first.export(tmp_path / "copy.h5", window_s=(0.0, 1.0), mode="continuous")
    second = served(tmp_path / "two", tmp_path / "copy.h5")
    again = second.export(tmp_path / "again.h5", window_s=(0.0, 1.0), mode="continuous")
    assert again.stimuli == told.stimuli
    with h5py.File(tmp_path / "copy.h5") as one, h5py.File(tmp_path / "again.h5") as other:
        for name in ("trial_starts", "trial_ends", "vision_onsets"):
            assert one[name][()].tolist() == other[name][()].tolist(), name
        for name in ("stim_labels", "trial"):
            assert np.array_equal(one[name][()], other[name][()], equal_nan=True), name
        step = np.array(other["neuro_info"].attrs["ch_scale"])
        assert (np.abs(one["neuro"][()] - other["neuro"][()]) <= step).all()
        assert (np.abs(one["neuro"][()] - signal(250.0).T) <= step).all()
        for name in ("ch_names", "ch_units", "ch_types"):
            assert one["neuro_info"].attrs[name].tolist() == other["neuro_info"].attrs[name].tolist(), name
