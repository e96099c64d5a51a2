"""Exports of what changes, is wrong, is not served or has hostile names, and exports that are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from export_scene import put_events, put_scene, put_with_events
from exporting import WINDOW, export, listening_to, texts
from product import ROOT
from signal_store import (
    DATASET,
    GROUP,
    PATH,
    ZARR,
    physical,
    put_index,
    put_written,
    write_version,
)

from contract.errors import NotServed, Refused
from infra.storage.folder import FolderTarget
from tasks.export.asked import ExportAsked
from tasks.export.recording import export_recording
from tasks.read.index import read_index
from tasks.read.place import Place, target_place


@pytest.mark.parametrize("at", ["the root", "the signal", "the events"])
def test_a_store_that_is_replaced_meanwhile_is_read_again_and_never_mixed(tmp_path: Path, at: str) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    put_scene(target, tmp_path)
    key = {"the root": f"{ZARR}/{GROUP}/zarr.json", "the signal": f"{GROUP}/0/c/0/0", "the events": "events.parquet"}[
        at
    ]
    versions, later = [2], {version: write_version(tmp_path, version) for version in (4, 6)}

    def replace(read: str, _start: int, _length: int) -> None:
        if read.endswith(key) and len(versions) < 3:
            versions.append(versions[-1] + 2)
            put_written(target, tmp_path, versions[-1], later[versions[-1]])

    place = listening_to(target_place(target), replace)
    index = read_index(place, DATASET)
    export_recording(place, index, PATH, ExportAsked(window_s=WINDOW), tmp_path / "a.h5", waits_s=(0, 0, 0, 0))
    assert len(versions) == 3
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["neuro"][0], physical(6)[:, 180:230].T.astype(np.float32))
        assert np.array_equal(file["neuro"][4], physical(6)[:, 1190:1240].T.astype(np.float32))


def test_published_events_of_another_edition_are_not_taken(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    put_index(target)
    put_with_events(target, tmp_path, 2, [1.0, 3.0, 5.0], ["go", "stop", "go"])
    place = target_place(target)
    assert export(place, tmp_path / "a.h5", window_s=WINDOW).events_source == "store"
    put_events(
        target,
        tmp_path,
        [{"onset_s": onset, "trial_type": word} for onset, word in ((1.0, "go"), (3.0, "stop"), (5.0, "go"))],
    )
    told = export(place, tmp_path / "a.h5", window_s=WINDOW)
    assert (told.events_source, told.notes, told.n_trials) == ("events.parquet", (), 3)
    put_events(target, tmp_path, [{"onset_s": onset, "trial_type": "go"} for onset in (1.5, 3.0, 5.0)])
    told = export(place, tmp_path / "a.h5", window_s=WINDOW)
    assert (told.events_source, told.n_trials, told.stimuli) == ("store", 3, {1: "go", 2: "stop"})
    assert "not of the edition" in told.notes[0]
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["trial_meta/columns/2/values"][()].tolist() == [100, 300, 500]


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ({"group": "meg_250hz"}, f"group: 'meg_250hz' is none of {GROUP}"),
        ({"trial_types": ("cat",)}, "--trial-type: .* has no 'cat'; it has '7', 'face', 'house'"),
        ({"channels": ("Pz",)}, "channels: 'Pz'"),
        ({"start_s": 40.0}, "start: .* 29.5 s long"),
        ({"window_s": (0.1, 0.2)}, "--window: .*does not hold the onset"),
        ({"window_s": (-0.2, 0.8), "start_s": 20.0, "stop_s": 21.0}, "--window: no trial of .* is left: 0 windows"),
        ({"window_s": (-20.0, 20.0)}, "no trial of .* is left: 7 windows outside the part, 1 event without an onset"),
    ],
)
def test_what_is_wrong_is_refused_with_what_there_is_and_leaves_the_file(
    place: Place, tmp_path: Path, asked: dict[str, Any], word: str
) -> None:
    (tmp_path / "a.h5").write_bytes(b"old")
    read: list[str] = []
    with pytest.raises(Refused, match=word):
        export(listening_to(place, lambda key, *_: read.append(key)), tmp_path / "a.h5", **asked)
    assert not [key for key in read if "/0/c/" in key], "no sample was read"
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    assert (tmp_path / "a.h5").read_bytes() == b"old"


def test_a_recording_that_is_not_served_says_why(place: Place, tmp_path: Path) -> None:
    index = read_index(place, DATASET)
    for recording, sentence in (("sub-02/eeg/sub-02_eeg.edf", "cut off"), ("sub-03/eeg/sub-03_eeg.edf", "memory")):
        with pytest.raises(NotServed, match=sentence):
            export_recording(place, index, recording, ExportAsked(), tmp_path / "a.h5")


@pytest.mark.parametrize("schema", [0, 1])
def test_names_that_would_lead_somewhere_in_the_file_do_not(tmp_path: Path, schema: Any) -> None:
    target = FolderTarget(tmp_path / "served", port=8321)
    put_scene(target, tmp_path)
    odd = {"../../neuro": "a", "..": "b", "trial": "c", "a/b": "d", "a_b": "e"}
    put_events(target, tmp_path, [{"onset_s": 2.0, "trial_type": "../x/é\n", **odd}])
    told = export(target_place(target), tmp_path / "a.h5", window_s=WINDOW, schema=schema)
    assert told.stimuli == {1: "../x/é\n"}
    with h5py.File(tmp_path / "a.h5") as file:
        if schema:
            names = texts(file, "trial_meta/column_index/data/values")
            assert set(odd) < set(names)
        else:
            kept = {
                name: file["trial_meta"][name][0].decode()
                for name in file["trial_meta"]
                if file["trial_meta"][name].dtype.kind == "O"
            }
            assert kept == {
                "trial_type": "../x/é\n",
                "value": "n/a",
                "hed": "n/a",
                ".._.._neuro": "a",
                ".._": "b",
                "trial": "c",
                "a_b": "d",
                "a_b_": "e",
            }


def test_a_kill_while_it_is_written_leaves_the_old_file_and_the_next_export_tidies_up(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "a.h5"
    export(place, file, window_s=WINDOW)
    before = file.read_bytes()
    program = f"""
import os, signal
from pathlib import Path
import numpy as np
from tasks.vneurotk.layout import Compression
from tasks.vneurotk.write_recording import RecordingContent, write_recording

def rows(row, n_rows):
    if row >= 300_000:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.ones((n_rows, 3), np.float32)

content = RecordingContent(mode="continuous", shape=(600_000, 3))
write_recording(Path({str(file)!r}), content, rows, schema=1, compression=Compression(), writer="test")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == -9, ran.stderr
    assert file.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2, "the killed one left its part"
    export(place, file, window_s=(-0.5, 0.5))
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    with h5py.File(file) as written:
        assert written["neuro"].shape[1] == 100
