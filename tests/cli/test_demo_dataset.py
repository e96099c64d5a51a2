"""The demonstration: readable where it should be, wrong where it says so, and the same bytes each time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import mne
import numpy as np
import pyedflib
import pytest
from mne._fiff.write import get_machid
from scipy.io import loadmat

from cli.demo import recordings
from cli.demo.dataset import COLLIDING, PLANTED_FAILURES, UNTIMED_EVENT, ensure_dataset, write_dataset
from cli.demo.signals import MAINS_HZ
from contract.errors import Refused

LARGEST_BYTES = 12_000_000
RECORDING = re.compile(r"_(eeg|meg|ieeg|emg)\.(edf|bdf|vhdr|set|fif)$")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "demo-dataset"
    write_dataset(folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def table(path: Path) -> list[dict[str, str]]:
    head, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def amplitude_at(frequency_hz: float, data: np.ndarray, rate_hz: float) -> float:
    spectrum = np.abs(np.fft.rfft(data - data.mean()))
    return float(spectrum[round(frequency_hz * len(data) / rate_hz)] / np.median(spectrum))


def test_the_command_writes_the_same_bytes_in_another_process_and_place(demo: Path, tmp_path: Path, home: Path) -> None:
    other = tmp_path / "another folder"
    other.mkdir()
    code = "from cli.main import main; main()"
    environment = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code, "demo", str(other), "--write-only"],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "wrote a made-up BIDS dataset" in done.stdout
    assert digests(other) == digests(demo)
    assert not any(home.iterdir()), "no state is needed to write it"
    assert {path.name for path in tmp_path.iterdir()} == {"another folder", "home"}, "nothing is left beside it"


def test_the_dataset_is_small_and_has_twelve_recordings_in_five_formats(demo: Path) -> None:
    names = [path.name for path in demo.rglob("*") if RECORDING.search(path.name) and "_split-02_" not in path.name]
    assert len(names) == 12
    assert {name.rpartition(".")[2] for name in names} == {"edf", "bdf", "vhdr", "set", "fif"}
    assert sum(path.stat().st_size for path in demo.rglob("*") if path.is_file()) < LARGEST_BYTES


@pytest.mark.parametrize(
    ("path", "limit", "bits"),
    [
        ("sub-01/eeg/sub-01_task-rest_eeg.edf", 800, 16),
        ("sub-01/eeg/sub-01_task-oddball_eeg.edf", 800, 16),
        ("sub-05/ieeg/sub-05_task-rest_ieeg.edf", 1600, 16),
        ("sub-06/emg/sub-06_task-grip_run-01_emg.edf", 3200, 16),
        ("sub-06/emg/sub-06_task-grip_run-02_emg.bdf", 3200, 24),
    ],
)
def test_edf_and_bdf_hold_what_was_made_within_one_step(demo: Path, path: str, limit: float, bits: int) -> None:
    made = {
        "sub-01_task-rest": lambda: recordings.eeg("sub-01 rest", rate_hz=256.0, duration_s=40.0),
        "sub-01_task-oddball": lambda: recordings.eeg(
            "sub-01 oddball", rate_hz=256.0, duration_s=40.0, targets_s=[2.0 + 1.5 * i for i in range(3, 24, 4)]
        ),
        "sub-05_task-rest": lambda: recordings.ieeg("sub-05 rest", rate_hz=512.0, duration_s=30.0),
        "sub-06_task-grip_run-01": lambda: recordings.emg("sub-06 run-01", rate_hz=1024.0, duration_s=20.0),
        "sub-06_task-grip_run-02": lambda: recordings.emg("sub-06 run-02", rate_hz=1024.0, duration_s=20.0),
    }[Path(path).name.rpartition("_")[0]]()
    with pyedflib.EdfReader(str(demo / path)) as reader:
        assert tuple(reader.getSignalLabels()) == made.labels
        assert reader.getSampleFrequency(0) == made.rate_hz
        read = np.stack([reader.readSignal(row) for row in range(reader.signals_in_file)])
    assert np.abs(made.data).max() < limit, "nothing is clipped"
    # pyedflib cuts the fraction off where others round, so a sample may be off by a whole step.
    assert np.abs(read - made.data).max() <= 2 * limit / (2**bits - 1) * 1.001


def test_mne_reads_the_brainvision_recordings(demo: Path) -> None:
    raw = mne.io.read_raw_brainvision(demo / "sub-02/eeg/sub-02_task-oddball_eeg.vhdr", verbose="ERROR")
    assert raw.info["sfreq"] == 500.0
    assert raw.n_times == 10_000
    assert raw.ch_names == [*recordings.SCALP, "VEOG"]
    onsets_s = [note["onset"] for note in raw.annotations if note["description"] == "Stimulus/S  1"]
    rows = table(demo / "sub-02/eeg/sub-02_task-oddball_events.tsv")
    assert onsets_s == [float(row["onset"]) for row in rows]
    assert 5e-6 < raw.get_data().std() < 60e-6


def test_mne_reads_the_continuous_set_with_its_fdt_and_places(demo: Path) -> None:
    raw = mne.io.read_raw_eeglab(demo / "sub-03/eeg/sub-03_task-rest_eeg.set", verbose="ERROR")
    made = recordings.eeg("sub-03 rest", rate_hz=250.0, duration_s=40.0)
    np.testing.assert_allclose(raw.get_data() * 1e6, made.data, atol=1e-4)
    oz = raw.info["chs"][raw.ch_names.index("O1")]["loc"][:3]
    assert oz[1] < 0, "O1 is behind"
    assert oz[0] < 0, "O1 is on the left"


def test_mne_reads_the_meg_recording_over_both_files(demo: Path) -> None:
    folder = demo / "sub-04/meg"
    raw = mne.io.read_raw_fif(folder / "sub-04_task-rest_split-01_meg.fif", verbose="ERROR")
    assert [Path(name).name for name in raw.filenames] == [
        "sub-04_task-rest_split-01_meg.fif",
        "sub-04_task-rest_split-02_meg.fif",
    ]
    made = recordings.meg("sub-04 rest", rate_hz=500.0, duration_s=20.0)
    np.testing.assert_allclose(raw.get_data(), made.data, rtol=1e-6)
    assert raw.get_channel_types().count("mag") == 10
    magnetometers = raw.get_data(picks="mag")
    assert 1e-14 < magnetometers.std() < 1e-11, "tesla"
    assert len(mne.find_events(raw, verbose="ERROR")) == len(table(folder / "sub-04_task-rest_events.tsv"))


def test_no_file_names_the_machine_or_the_folder_it_was_made_in(demo: Path) -> None:
    machine = np.array(get_machid(), dtype=">i4").tobytes()
    assert any(machine)
    for path in demo.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert os.fsencode(demo.parent) not in content, path
            assert machine not in content, path


def test_the_truncated_recording_is_shorter_than_its_header_says(demo: Path) -> None:
    path = demo / next(path for path in PLANTED_FAILURES if path.endswith(".edf"))
    content = path.read_bytes()
    n_records, n_signals = int(content[236:244]), int(content[252:256])
    at = 256 + n_signals * 216
    per_record = sum(int(content[at + 8 * i : at + 8 * i + 8]) for i in range(n_signals)) * 2
    assert len(content) < 256 * (1 + n_signals) + n_records * per_record
    with pytest.raises(OSError, match="Filesize"):
        pyedflib.EdfReader(str(path))


def test_the_epoched_set_has_trials_and_says_so_in_its_sidecar(demo: Path) -> None:
    path = demo / next(path for path in PLANTED_FAILURES if path.endswith(".set"))
    eeg = loadmat(path, squeeze_me=True, struct_as_record=False)["EEG"]
    assert eeg.trials == 20
    assert eeg.data.shape == (20, eeg.pnts, 20)
    assert len(mne.io.read_epochs_eeglab(path, verbose="ERROR")) == 20
    with pytest.raises(TypeError, match="number of trials"):
        mne.io.read_raw_eeglab(path, verbose="ERROR")
    assert json.loads(path.with_suffix(".json").read_text())["RecordingType"] == "epoched"


def test_two_readable_files_claim_one_store(demo: Path) -> None:
    first, second = (demo / path for path in COLLIDING)
    assert first.with_suffix("") == second.with_suffix("")
    raw = mne.io.read_raw_eeglab(second, verbose="ERROR")
    with pyedflib.EdfReader(str(first)) as reader:
        np.testing.assert_allclose(raw.get_data()[3] * 1e6, reader.readSignal(3), atol=1600 / 65535)


def test_one_event_has_no_onset_and_every_other_event_lies_in_its_recording(demo: Path) -> None:
    untimed = [row for row in table(demo / UNTIMED_EVENT) if row["onset"] == "n/a"]
    assert [row["trial_type"] for row in untimed] == ["instruction"]
    for path in demo.rglob("*_events.tsv"):
        rows = [row for row in table(path) if row["onset"] != "n/a"]
        length_s = 40 if "oddball" in path.name and "sub-01" in path.name else 20
        assert rows
        assert all(0 <= float(row["onset"]) + float(row["duration"]) <= length_s for row in rows), path


def test_channels_tsv_names_the_channels_of_its_file_in_order_with_units(demo: Path) -> None:
    for path in demo.rglob("*_channels.tsv"):
        rows, stem = table(path), path.name.removesuffix("_channels.tsv")
        assert all(row["units"] in {"µV", "T", "T/m", "V"} for row in rows), path
        for recording in path.parent.glob(f"{stem}*"):
            if recording.suffix in {".edf", ".bdf"} and str(recording.relative_to(demo)) not in PLANTED_FAILURES:
                with pyedflib.EdfReader(str(recording)) as reader:
                    assert reader.getSignalLabels() == [row["name"] for row in rows]
            if recording.name.endswith("split-01_meg.fif"):
                assert mne.io.read_info(recording, verbose="ERROR")["ch_names"] == [row["name"] for row in rows]


def test_every_eeg_recording_has_its_required_metadata_by_inheritance(demo: Path) -> None:
    required = {"TaskName", "EEGReference", "SamplingFrequency", "PowerLineFrequency", "SoftwareFilters"}
    own = sorted(demo.rglob("sub-*_eeg.json"))
    assert len(own) == 7
    for path in own:
        task = re.search(r"task-[a-z]+", path.name)
        assert task is not None
        values = json.loads(path.read_text())
        inherited = json.loads((demo / f"{task[0]}_eeg.json").read_text())
        assert not set(values) & set(inherited), "said once"
        assert set(values) | set(inherited) >= required


def test_the_description_has_what_a_catalog_tells(demo: Path) -> None:
    facts = json.loads((demo / "dataset_description.json").read_text())
    assert {"Name", "BIDSVersion", "HEDVersion", "License", "Authors", "DatasetDOI"} <= set(facts)
    people = {row["participant_id"] for row in table(demo / "participants.tsv")}
    assert people == {path.name for path in demo.glob("sub-*")}
    assert (demo / "README").read_text()
    assert "HED" in json.loads((demo / "task-oddball_events.json").read_text())["trial_type"]


def test_the_signals_look_like_what_they_are_called() -> None:
    eeg = recordings.eeg("sub-01 rest", rate_hz=256.0, duration_s=40.0)
    behind, front = eeg.data[eeg.labels.index("O1")], eeg.data[eeg.labels.index("Fz")]
    alpha = [np.abs(np.fft.rfft(row))[9 * 40 : round(11.5 * 40)].sum() for row in (behind, front)]
    assert alpha[0] > 2 * alpha[1], "alpha is behind"
    assert amplitude_at(MAINS_HZ, behind, 256.0) > 10, "hum"
    emg = recordings.emg("sub-06 run-01", rate_hz=1024.0, duration_s=20.0)
    grip, rest = emg.data[0, 4 * 1024 - 512 : 4 * 1024], emg.data[0, 1024:2048]
    assert grip.std() > 8 * rest.std(), "bursts"
    ieeg = recordings.ieeg("sub-05 rest", rate_hz=512.0, duration_s=30.0)
    third, fourth = ieeg.data[2], ieeg.data[3]
    at = int(np.argmax(third))
    assert third[at] > 300
    assert fourth[at] < 0, "the spike reverses"


def test_a_demonstration_that_stands_there_is_left_as_it_is(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "demo-dataset"
    shutil.copytree(demo, folder)
    edited = folder / "sub-01/eeg/sub-01_task-rest_channels.tsv"
    edited.write_text(edited.read_text().replace("good", "bad"))
    before = digests(folder)
    assert not ensure_dataset(folder)
    assert digests(folder) == before != digests(demo)


def test_a_foreign_folder_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "dataset_description.json").write_text('{"Name": "mine", "GeneratedBy": [{"Name": "me"}]}')
    with pytest.raises(Refused, match="something else"):
        ensure_dataset(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dataset_description.json"]
    with pytest.raises(Refused, match="no folder"):
        ensure_dataset(tmp_path / "dataset_description.json")
