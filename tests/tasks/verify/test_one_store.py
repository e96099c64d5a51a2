"""What the sweep makes of sidecars, of stores that were taken over, and of what cannot be compared."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conversion import Bench
from git_dataset import commit_all, git
from judging import Put, put
from planted import edit, group_of
from small_files import brainvision, edf_bytes, tones

from contract.index import SssEntry
from tasks.verify.report import NoVerdict

PATH = "sub-01/eeg/sub-01_task-a_eeg"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "scratch")
    (made.source / "sub-01/eeg").mkdir(parents=True)
    return made


def checks(made: Put, tmp_path: Path) -> set[str]:
    return {example["check"] for example in made.judge(tmp_path).found.examples}


def test_what_a_channels_tsv_declares_must_be_served(bench: Bench, tmp_path: Path) -> None:
    brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", tones(4, 8000, 1000.0), 1000.0)
    rows = "E1\tEEG\tmV\ne2\tEOG\tuV\nE3\tTRIG\tuV\nE4\tEEG\tbananas\n"
    bench.put("sub-01/eeg/sub-01_task-a_channels.tsv", f"name\ttype\tunits\n{rows}")
    made = put(bench, f"{PATH}.vhdr", tmp_path / "served")
    clean = made.judge(tmp_path)
    assert (clean.found.status, clean.found.examples) == ("verified", ())
    group = group_of(made.store)
    units = [channel["unit"] for channel in json.loads((group / "zarr.json").read_text())["attributes"]["channels"]]
    assert units == ["mV", "uV", "V", "V"]
    edit(group, lambda values: values["channels"][1].update(channel_type="EEG"))
    assert checks(made, tmp_path) == {"type_mismatch"}
    edit(group, lambda values: values["channels"][0].update(unit="uV"))
    assert checks(made, tmp_path) == {"type_mismatch", "unit_mismatch", "samples_mismatch"}


def test_a_sidecar_that_contradicts_the_recording_is_told(bench: Bench, tmp_path: Path) -> None:
    (bench.source / f"{PATH}.edf").write_bytes(edf_bytes())
    bench.put(
        "task-a_eeg.json", json.dumps({"SamplingFrequency": 100, "RecordingDuration": 4.5, "PowerLineFrequency": 50})
    )
    made = put(bench, f"{PATH}.edf", tmp_path / "served")
    assert made.judge(tmp_path).found.status == "verified"
    bench.put(
        "task-a_eeg.json", json.dumps({"SamplingFrequency": 128, "RecordingDuration": 40, "PowerLineFrequency": 60})
    )
    found = made.judge(tmp_path).found
    assert found.mismatches == 1, "the recording outranks what is said about it"
    assert [example["check"] for example in found.examples] == ["metadata_mismatch"] + ["sidecar_contradiction"] * 2
    (bench.source / f"{PATH}.edf").write_bytes(edf_bytes(record_s="nothing"))
    assert checks(made, tmp_path) == {"rate_mismatch", "duration_mismatch", "metadata_mismatch"}, (
        "it is the only witness"
    )


def test_a_constant_channel_has_no_steps_to_be_off_by(bench: Bench, tmp_path: Path) -> None:
    data = np.stack([np.full(400, 1234), np.arange(400)]).astype(np.int16)
    (bench.source / f"{PATH}.edf").write_bytes(edf_bytes(data=data))
    made = put(bench, f"{PATH}.edf", tmp_path / "served")
    assert made.judge(tmp_path).found.status == "verified"
    group = group_of(made.store)
    for node in (group, group / "0"):
        edit(node, _moved)
    assert checks(made, tmp_path) == {"samples_mismatch"}


def _moved(values: dict) -> None:
    """Half a unit more in the constant channel, whose scale is 1."""
    if "channels" in values:
        values["channels"][0]["offset"] += 0.5
    else:
        values["offset"][0] += 0.5


def test_gaps_are_served_as_zero(bench: Bench, tmp_path: Path) -> None:
    brainvision(bench.source / "sub-01/eeg", "sub-01_task-a_eeg", tones(2, 3000, 500.0), 500.0)
    header = bench.source / f"{PATH}.vhdr"
    header.write_text(header.read_text().replace("INT_16", "IEEE_FLOAT_32"))
    data = tones(2, 3000, 500.0).astype("<f4")
    data[0, 700:720] = np.nan
    np.ascontiguousarray(data.T).tofile(header.with_suffix(".eeg"))
    made = put(bench, f"{PATH}.vhdr", tmp_path / "served")
    assert made.judge(tmp_path).found.examples == ()


def test_what_cannot_be_compared_is_unverifiable_with_a_reason(bench: Bench, tmp_path: Path) -> None:
    (bench.source / f"{PATH}.edf").write_bytes(edf_bytes())
    made = put(bench, f"{PATH}.edf", tmp_path / "served")
    taken_over = made.judge(tmp_path, taken_over=True).found
    assert (taken_over.status, "taken over" in (taken_over.why or "")) == ("unverifiable", True)
    sss = {"applied": True, "method": "m", "calibration": "c", "cross_talk": "x", "mne_version": "1"}
    edit(made.store, lambda values: values.update(sss=sss))
    edit(made.store, lambda values: values["nemar"].update(derived=True))
    assert checks(made, tmp_path) == {"index_mismatch"}, "the index says nothing of the correction"
    entry = made.converted.entry.model_copy(update={"derived": True, "sss": SssEntry(**sss)})
    corrected = replace(made, converted=replace(made.converted, entry=entry)).judge(tmp_path).found
    assert (corrected.status, "Signal-Space" in (corrected.why or "")) == ("unverifiable", True)


def test_a_source_that_changed_or_cannot_be_read_gives_no_verdict(bench: Bench, tmp_path: Path) -> None:
    primary = bench.source / f"{PATH}.edf"
    primary.write_bytes(edf_bytes())
    made = put(bench, f"{PATH}.edf", tmp_path / "served")
    if os.geteuid() != 0:  # root reads everything
        primary.chmod(0)
        with pytest.raises(NoVerdict):
            made.judge(tmp_path)
        primary.chmod(0o600)
    root = made.store / "zarr.json"
    kept = root.read_bytes()
    root.unlink()
    root.mkdir()
    broken = made.judge(tmp_path, renoted=False).found
    assert {example["check"] for example in broken.examples} >= {"object_missing", "undecodable"}
    shutil.rmtree(root)
    root.write_bytes(kept)
    assert made.judge(tmp_path).found.status == "verified"


def test_a_store_of_a_commit_is_compared_with_that_commit(bench: Bench, tmp_path: Path) -> None:
    primary = bench.source / f"{PATH}.edf"
    primary.write_bytes(edf_bytes())
    made = put(bench, f"{PATH}.edf", tmp_path / "served")
    git(bench.source, "init", "-q")
    commit = commit_all(bench.source)
    primary.write_bytes(edf_bytes(data=np.zeros((2, 400))))
    commit_all(bench.source)
    assert made.judge(tmp_path, commit=commit).found.status == "verified", "whatever is checked out"
    assert checks(made, tmp_path) == {"samples_mismatch"}, "as it lies there it is another recording"
