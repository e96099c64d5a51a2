"""A VneuroTK recording becomes a store like any other; what the file does not say stays unknown, and its trials are disclosed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conversion import Bench
from judging import Put, put
from small_files import tones
from vneurotk_files import write_vneurotk

from contract.codes import FailureCode
from contract.errors import NotNow, RecordingFailed
from tasks.bids.discovery import discover_source
from tasks.bids.recording import DiscoveredRecording
from tasks.convert.order import ConvertedStore
from tasks.events.rows import read_rows
from tasks.formats import load
from tasks.formats.windows import ReadsWindows
from tasks.sources import open_source
from tasks.vneurotk.new_file import writing

PATH = "sub-01/eeg/sub-01_task-a_eeg.h5"
STEM = PATH.removesuffix("_eeg.h5")
DATA = np.round(tones(3, 5000, 500.0) * 1e-5, 9)
ONSETS, IDS = (250, 1000, 4000), (3, 4, 3)
META = {"trial_type": ["face", "house", "face"], "rt": [0.25, float("nan"), 0.5]}


def bench_with(folder: Path, sidecars: dict[str, str] | None = None, **changes: Any) -> Bench:
    bench = Bench(folder)
    (bench.source / PATH).parent.mkdir(parents=True)
    write_vneurotk(bench.source / PATH, DATA, 500.0, **{"onsets": ONSETS, "ids": IDS, "meta": META, **changes})
    for name, text in (sidecars or {}).items():
        bench.put(name, text)
    return bench


def discovered(bench: Bench) -> DiscoveredRecording:
    (found,) = discover_source(open_source(str(bench.source))).recordings
    return found


def root_of(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bench.store / "zarr.json").read_bytes())["attributes"]
    return found


def channels_of(bench: Bench) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((bench.store / "eeg_250hz/zarr.json").read_bytes())["attributes"][
        "channels"
    ]
    return found


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, ConvertedStore]:
    """A recording with nothing beside it."""
    bench = bench_with(tmp_path_factory.mktemp("own"), info={"highpass": 0.1, "lowpass": 100.0})
    return bench, bench.convert(discovered(bench))


def test_its_trials_are_its_events_and_that_is_said_wherever_something_may_be_said(
    own: tuple[Bench, ConvertedStore],
) -> None:
    bench, result = own
    assert (result.entry.n_events, dict(result.entry.trial_types or {})) == (3, {"face": 2, "house": 1})
    rows = read_rows(result.events or b"").to_pylist()
    assert [(row["onset_s"], row["duration_s"], row["sample_index"], row["trial_type"]) for row in rows] == [
        (0.5, None, 125, "face"),
        (2.0, None, 500, "house"),
        (8.0, None, 2000, "face"),
    ]
    assert [(row["stim_id"], row["rt"]) for row in rows] == [("3", "0.25"), ("4", None), ("3", "0.5")]
    assert root_of(bench)["events_source"] == "recording"
    said = "no events.tsv applies: the 3 trials of the file are taken as its events"
    assert said in result.notes
    assert said in root_of(bench)["sidecar_notes"]
    group = json.loads((bench.store / "events/zarr.json").read_bytes())["attributes"]
    assert (group["n_events"], group["label_map"]) == (3, {"0": "face", "1": "house"})


def test_what_the_file_does_not_say_stays_unknown_and_that_is_said(own: tuple[Bench, ConvertedStore]) -> None:
    bench, result = own
    assert [(one["unit"], one["channel_type"]) for one in channels_of(bench)] == [("n/a", "OTHER")] * 3
    assert {one["prefilter"] for one in channels_of(bench)} == {"HP:0.1Hz LP:100Hz"}
    assert result.entry.units_report is None
    assert sum("names no" in note for note in result.notes) == 2
    assert root_of(bench)["source_format"] == "vneurotk"


def test_an_events_tsv_wins_and_is_not_merged_with_the_trials(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, {f"{STEM}_events.tsv": "onset\tduration\ttrial_type\n1.0\t0\tblink\n"})
    result = bench.convert(discovered(bench))
    assert (result.entry.n_events, dict(result.entry.trial_types or {})) == (1, {"blink": 1})
    assert "events_source" not in root_of(bench)


def test_an_events_tsv_that_cannot_be_used_is_not_replaced_by_the_trials(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, {f"{STEM}_events.tsv": "start\n1.0\n"})
    result = bench.convert(discovered(bench))
    assert result.entry.n_events is None
    assert "events_source" not in root_of(bench)
    assert not (bench.store / "events").exists()


def test_units_of_the_file_are_converted_into_those_of_channels_tsv(tmp_path: Path) -> None:
    table = "name\ttype\tunits\nE1\tEEG\tuV\nE2\tEEG\tn/a\nE3\tTRIG\tV\n"
    told = {"ch_units": ["V", "V", "V"], "ch_types": ["EOG", "EOG", "bogus"]}
    bench = bench_with(tmp_path, {f"{STEM}_channels.tsv": table}, info=told)
    result = bench.convert(discovered(bench))
    assert [(one["channel_type"], one["unit"]) for one in channels_of(bench)] == [
        ("EEG", "uV"),
        ("EEG", "V"),
        ("TRIG", "V"),
    ]
    assert result.entry.units_report is not None
    assert result.entry.units_report.converted == 1


def test_units_of_channels_tsv_are_the_samples_own_where_the_file_has_none(tmp_path: Path) -> None:
    table = "name\ttype\tunits\ne1\tEEG\tuV\nE2\tEOG\tmV\n"
    bench = bench_with(tmp_path / "scratch", {f"{STEM}_channels.tsv": table}, onsets=(), ids=(), meta=None)
    made = put(bench, PATH, tmp_path / "served")
    assert made.converted.entry.units_report is not None
    assert made.converted.entry.units_report.converted == 0
    group = json.loads((made.store / "eeg_250hz/zarr.json").read_bytes())["attributes"]
    assert [(one["channel_type"], one["unit"]) for one in group["channels"]] == [
        ("EEG", "uV"),
        ("EOG", "mV"),
        ("OTHER", "n/a"),
    ]
    judged = made.judge(tmp_path)
    assert (judged.found.status, judged.found.examples) == ("verified", ())


def wrong(made: Put, scratch: Path) -> set[str]:
    """What the sweep finds; there is no events.parquet beside one store alone."""
    return {example["check"] for example in made.judge(scratch).found.examples} - {"events_file_mismatch"}


def test_the_sweep_finds_a_wrong_unit_and_a_wrong_event(tmp_path: Path) -> None:
    made = put(bench_with(tmp_path / "scratch"), PATH, tmp_path / "served")
    assert wrong(made, tmp_path) == set()
    document = made.store / "eeg_250hz/zarr.json"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace('"n/a"', '"V"'), encoding="utf-8")
    assert wrong(made, tmp_path) == {"unit_mismatch"}
    document.write_text(text, encoding="utf-8")
    with h5py.File(made.source / PATH, "r+") as file:
        file["vision_onsets"][1] = 1001
    assert wrong(made, tmp_path) == {"events_mismatch"}


def test_repeated_labels_are_told_apart(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, names=["Cz", "Cz", "é/Ω"])
    bench.convert(discovered(bench))
    assert [one["label"] for one in channels_of(bench)] == ["Cz-0", "Cz-1", "é/Ω"]
    assert root_of(bench)["recording_metadata"]["channel_labels_deduplicated"] == {"Cz-0": "Cz", "Cz-1": "Cz"}


def test_images_and_paths_in_the_file_are_never_followed(tmp_path: Path) -> None:
    bench = bench_with(tmp_path)
    with h5py.File(bench.source / PATH, "r+") as file:
        entry = file.create_group("stimuli_db").create_group("0")
        image = entry.create_dataset("image", data="/etc/passwd")
        image.attrs["kind"] = "path"
        file["vision_store"] = h5py.ExternalLink("/nowhere.h5", "/x")
    bench.convert(discovered(bench))
    for document in bench.store.rglob("zarr.json"):
        assert "passwd" not in document.read_text(encoding="utf-8")


def test_samples_that_cannot_be_unpacked_are_corrupt(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, chunks=(500, 3))
    with h5py.File(bench.source / PATH) as file:
        place = file["neuro"].id.get_chunk_info(4)
    data = bytearray((bench.source / PATH).read_bytes())
    data[place.byte_offset + 10 : place.byte_offset + place.size] = bytes(place.size - 10)
    (bench.source / PATH).write_bytes(data)
    with pytest.raises(RecordingFailed) as failed:
        bench.convert(discovered(bench))
    assert failed.value.failure is FailureCode.CORRUPT_OR_TRUNCATED
    assert not bench.store.exists()


def test_hdf5_of_another_program_is_counted_and_has_a_verdict(tmp_path: Path) -> None:
    bench = bench_with(tmp_path)
    with h5py.File(bench.source / PATH, "w") as file:
        file["neuro"] = DATA.T
    recording = discovered(bench)
    assert (recording.format, recording.failure) == ("vneurotk", None)
    with pytest.raises(RecordingFailed) as failed:
        bench.convert(recording)
    assert failed.value.failure is FailureCode.UNSUPPORTED_FORMAT


@pytest.mark.parametrize("chunks", [(7, 2), (500, 1), (5000, 3), None])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, ">f8"])
def test_any_window_is_what_the_file_holds(tmp_path: Path, chunks: Any, dtype: Any) -> None:
    values = np.round(DATA * 1e6).astype(dtype)
    path = write_vneurotk(tmp_path / "x_eeg.h5", values, 500.0, chunks=chunks)
    one = load()["vneurotk"]
    assert isinstance(one, ReadsWindows)
    reader = one.windows(path)
    for start, stop in ((0, 1), (0, 5000), (4999, 5000), (6, 15), (490, 1010), (3, 3), (4990, 6000)):
        window = reader.read(start, stop)
        assert window.dtype == np.float64
        assert np.array_equal(window, values[:, start:stop].astype(np.float64))
    reader.close()


def test_whoever_reads_a_file_that_is_replaced_is_told_so(tmp_path: Path) -> None:
    path = write_vneurotk(tmp_path / "x_eeg.h5", tones(200, 6000, 500.0), 500.0, chunks=(500, 200))
    one = load()["vneurotk"]
    assert isinstance(one, ReadsWindows)
    reader = one.windows(path)
    reader.read(0, 100)
    with writing(path, str) as file:
        file["other"] = 1
    reader.read(0, 100)  # what is held is of the file that was opened
    with pytest.raises(NotNow) as raised:
        reader.read(5500, 5600)
    assert raised.value.detail == "x_eeg.h5 was replaced while it was read; open it again"
    reader.close()
