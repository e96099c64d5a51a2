"""A BIDS dataset of recordings that people really made, from the folder to the served signal."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

from command import Zarrmill
from comparison import SPOILED, comparisons
from ctf_files import continuous_ctf
from reference_signal import disagreements
from served_dataset import Served

FILES = {
    "sub-01/eeg/sub-01_task-a_eeg.edf": "edf/chtypes_edf.edf",
    "sub-02/eeg/sub-02_task-a_eeg.bdf": "bdf/multiple_annotation_chans.bdf",
    "sub-03/eeg/sub-03_task-a_eeg.set": "eeglab/test_raw.set",
    "sub-03/eeg/sub-03_task-a_eeg.fdt": "eeglab/test_raw.fdt",
    "sub-04/eeg/sub-04_task-a_eeg.fif": "fif/mgh70_raw.fif",
    "sub-05/meg/sub-05_task-a_meg.ds": "ctf/testdata_ctf_short_discontinuous.ds",
    "sub-06/meg/sub-06_task-a_meg.con": "kit/MQKIT_125_2sec.con",
    "sub-07/meg/sub-07_task-a_meg": "bti/4Dsim",
    "sub-08/emg": "emg/emg_TwoWristbands/sub-01/emg",
    "sub-09": "brainvision/tiny_bids/sub-01",
    "sub-10/eeg/sub-10_task-a_eeg.set": "eeglab/test_epochs_onefile.set",
}


def _dataset(folder: Path, recordings: Path) -> None:
    folder.mkdir()
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "real", "BIDSVersion": "1.10.0"}))
    for name, origin in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (recordings / origin).is_dir() else shutil.copyfile
        copy(recordings / origin, folder / name)
    (folder / "sub-11/meg").mkdir(parents=True)
    continuous_ctf(recordings, folder / "sub-11/meg/sub-11_task-a_meg.ds")


def test_real_recordings_of_eight_formats_are_served_as_they_are(
    zarrmill: Zarrmill, recordings: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "xx000088"
    _dataset(folder, recordings)
    zarrmill.run("convert", folder)
    served = Served(tmp_path / "served", "xx000088")
    assert {path: word for path, word in served.lists().items() if word != "served"} == {
        "sub-05/meg/sub-05_task-a_meg.ds": "not_continuous",
        "sub-10/eeg/sub-10_task-a_eeg.set": "not_continuous",
    }
    assert served.index["store_count"] == 9
    assert {tuple(one["modalities"]) for one in served.index["stores"]} == {("eeg",), ("meg",), ("emg",)}
    for one in comparisons(served, folder):
        assert disagreements(one.served, one.wanted) == [], one.path
        for spoil in SPOILED.values():
            wrong = replace(one.served, physical=spoil(one.served.physical))
            assert disagreements(wrong, one.wanted), one.path
    due = zarrmill.run("verify").stdout
    assert "9 stores to compare" in due
    verified = zarrmill.run("verify", "--execute", "--json").summary
    assert (verified["status"], verified["verified"], verified["trouble"]) == ("verified", 9, None), verified
    assert "Every verdict stands" in zarrmill.run("verify", "--execute").stdout
    assert "verified   verified on" in zarrmill.run("status", "xx000088").stdout
    assert "verified   verified on" in zarrmill.run("why", "xx000088", "sub-06/meg/sub-06_task-a_meg.con").stdout
