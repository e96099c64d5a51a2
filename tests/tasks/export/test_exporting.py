"""Windows of a served store in VneuroTK files: samples, labels, tables, provenance, and what is refused before anything is read."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from export_scene import EVENTS, put_events, put_scene, put_with_events
from hypothesis import given, settings
from hypothesis import strategies as st
from product import ROOT
from signal_store import (
    CHUNK,
    DATASET,
    GROUP,
    LABELS,
    N_SAMPLES,
    PATH,
    SCALE,
    ZARR,
    physical,
    put_index,
    put_written,
    write_version,
)
from vneurotk_reader import Reader

from contract.errors import NotServed, Refused
from infra.storage.folder import FolderTarget
from tasks.export.asked import ExportAsked
from tasks.export.recording import Exported, export_recording
from tasks.read.index import read_index
from tasks.read.place import Place, target_place
from tasks.vneurotk.layout import Compression
from tasks.vneurotk.typed_scalars import TypedScalars

WINDOW = (-0.2, 0.3)
KEPT = [1, 2, 3, 4, 5]
"""Events of the scene whose window of that length lies in the signal."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("exporting")
    target = FolderTarget(root / "served", port=8321)
    put_scene(target, root)
    return target_place(target)


def export(place: Place, file: Path, **asked: Any) -> Exported:
    return export_recording(place, read_index(place, DATASET), PATH, ExportAsked(**asked), file)


def texts(file: h5py.File, name: str) -> list[Any]:
    return TypedScalars.read(file[name], most=1000).decode(missing=True)


def test_epochs_hold_the_samples_around_each_onset_and_their_labels(place: Place, tmp_path: Path) -> None:
    told = export(place, tmp_path / "a.h5", window_s=WINDOW)
    assert (told.n_trials, told.dropped, told.without_onset) == (5, 2, 1)
    assert told.stimuli == {1: "7", 2: "face", 3: "house"}
    onsets = [round(EVENTS[event]["onset_s"] * 100) for event in KEPT]
    with h5py.File(tmp_path / "a.h5") as file:
        expected = np.stack([physical(2)[:, onset - 20 : onset + 30].T for onset in onsets])
        assert np.array_equal(file["neuro"][()], expected.astype(np.float32))
        labels = file["stim_labels"][()].reshape(5, 50)
        assert np.array_equal(labels[:, 20], [3, 2, 2, 3, 1])
        assert np.isnan(np.delete(labels, 20, axis=1)).all()
        assert np.array_equal(file["trial"][()], np.repeat(np.arange(5.0), 50).reshape(5, 50))
        assert texts(file, "vision_info/stim_ids") == [1, 2, 3]
        assert [type(value) for value in texts(file, "vision_info/stim_ids")] == [int] * 3


def test_a_continuous_file_holds_the_part_and_its_trials_in_it(place: Place, tmp_path: Path) -> None:
    told = export(
        place,
        tmp_path / "a.h5",
        window_s=(-0.1, 0.3),
        mode="continuous",
        start_s=1.5,
        stop_s=12.0,
        trial_types=("face", "house"),
    )
    assert (told.shape, told.n_trials, told.dropped) == ((1050, 3), 3, 1)
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["neuro"][()], physical(2)[:, 150:1200].T.astype(np.float32))
        onsets = file["vision_onsets"][()]
        assert onsets.tolist() == [50, 100, 249]
        labels, trial = file["stim_labels"][()], file["trial"][()]
        assert np.flatnonzero(~np.isnan(labels)).tolist() == onsets.tolist()
        assert labels[onsets].tolist() == [2, 1, 1]
        for number, onset in enumerate(onsets):
            assert np.flatnonzero(trial == number).tolist() == list(range(onset - 10, onset + 30))
        assert np.count_nonzero(~np.isnan(trial)) == 120
        assert (file["trial_starts"][()] == onsets - 10).all()
        assert (file["trial_ends"][()] == onsets + 30).all()
    with pytest.raises(Refused, match=r"samples 1190 and 1210 of .* overlap, .*--mode epochs"):
        export(place, tmp_path / "b.h5", window_s=WINDOW, mode="continuous")
    assert not (tmp_path / "b.h5").exists()


@pytest.mark.parametrize("mode", ["continuous", "epochs"])
def test_without_a_window_the_part_is_one(place: Place, tmp_path: Path, mode: Any) -> None:
    told = export(place, tmp_path / "a.h5", start_s=3.0, stop_s=13.5, channels=("Cz", "Fp1"), mode=mode)
    expected = physical(2)[[2, 0], 300:1350].T.astype(np.float32)
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["neuro"][()], expected if mode == "continuous" else expected[None])
        assert file["neuro_info"].attrs["ch_names"].tolist() == ["Cz", "Fp1"]
        assert file["neuro_info"].attrs["events_source"] == "none"
        assert len(file["vision_onsets"]) == told.n_trials == (0 if mode == "continuous" else 1)
        assert file["trial_info"].attrs["trial_window"].tolist() == ([0, 0] if mode == "continuous" else [0, 1050])


def test_schema_1_is_what_the_format_page_says(place: Place, tmp_path: Path) -> None:
    export(place, tmp_path / "a.h5", window_s=WINDOW)
    text, whole, real, boolean = h5py.string_dtype(), np.dtype("<i8"), np.dtype("<f8"), np.dtype(bool)
    with h5py.File(tmp_path / "a.h5") as file:
        root = {name: (file.attrs.get_id(name).dtype, file.attrs.get_id(name).shape) for name in file.attrs}
        assert root == {
            "vneurotk_format": (text, ()),
            "vneurotk_schema_version": (whole, ()),
            "writer_version": (text, ()),
            "data_mode": (text, ()),
            "neuro_format": (text, ()),
            "stim_labels_encoding": (text, ()),
            "stim_labels_is_str": (boolean, ()),
            "stim_labels_shape": (whole, (2,)),
        }
        assert (file.attrs["vneurotk_format"], file.attrs["vneurotk_schema_version"]) == ("recording", 1)
        assert file.attrs["writer_version"].startswith("zarrmill/")
        assert (file.attrs["data_mode"], file.attrs["neuro_format"]) == ("epochs", "dense")
        assert file.attrs["stim_labels_encoding"] == "native"
        assert not file.attrs["stim_labels_is_str"]
        assert file.attrs["stim_labels_shape"].tolist() == [5, 50]
        assert sorted(file) == sorted(
            [
                "neuro",
                "neuro_info",
                "stim_labels",
                "trial",
                "trial_ends",
                "trial_info",
                "trial_meta",
                "trial_starts",
                "vision_info",
                "vision_onsets",
            ]
        )
        arrays = {name: (file[name].dtype, file[name].shape) for name in file if isinstance(file[name], h5py.Dataset)}
        assert arrays == {
            "neuro": (np.dtype("<f4"), (5, 50, 3)),
            "stim_labels": (real, (250,)),
            "trial": (real, (5, 50)),
            "trial_starts": (whole, (5,)),
            "trial_ends": (whole, (5,)),
            "vision_onsets": (whole, (5,)),
        }
        assert (file["neuro"].compression, file["neuro"].compression_opts, file["neuro"].shuffle) == ("gzip", 4, True)
        assert file["stim_labels"].chunks is None
        assert (file["trial_starts"][()].tolist(), file["trial_ends"][()].tolist()) == ([0] * 5, [50] * 5)
        assert file["trial_info"].attrs["baseline"].tolist() == [-20, 0]
        assert file["trial_info"].attrs["trial_window"].tolist() == [-20, 30]
        assert file["trial_info"].attrs["baseline"].dtype == whole
        info = file["neuro_info"].attrs
        assert {name: info.get_id(name).dtype for name in ("sfreq", "source_file", "shape", "ch_names")} == {
            "sfreq": real,
            "source_file": text,
            "shape": whole,
            "ch_names": text,
        }
        assert info["shape"].tolist() == [5, 50, 3]
        assert file["vision_info"].attrs["n_stim"] == 3
        meta = file["trial_meta"]
        assert meta.attrs["encoding"] == "pandas_v1"
        assert dict(meta["index"].attrs) == {"name_present": False, "kind": "range", "start": 0, "stop": 5, "step": 1}
        assert dict(meta["column_index"].attrs) == {"name_present": False, "kind": "values"}
        assert sorted(meta["columns"], key=int) == [str(position) for position in range(8)]
        kinds = [dict(meta[f"columns/{position}"].attrs) for position in range(8)]
        number = [{"kind": "numpy", "dtype": kind} for kind in ("float64", "float64", "int64")]
        assert kinds == [*number, *([{"kind": "object_scalars", "dtype": "object"}] * 5)]


def test_the_table_has_the_events_of_the_trials_word_for_word(place: Place, tmp_path: Path) -> None:
    export(place, tmp_path / "a.h5", window_s=WINDOW)
    with h5py.File(tmp_path / "a.h5") as file:
        names = texts(file, "trial_meta/column_index/data/values")
        assert names == [
            "onset_s",
            "duration_s",
            "sample_index",
            "trial_type",
            "value",
            "hed",
            "reaction/time",
            "stim_file",
        ]
        columns = file["trial_meta/columns"]
        assert columns["0/values"][()].tolist() == [EVENTS[event]["onset_s"] for event in KEPT]
        assert np.array_equal(columns["1/values"][()], [0.5, *[np.nan] * 4], equal_nan=True)
        assert columns["2/values"][()].tolist() == [200, 250, 399, 1190, 1210]
        for position, name in enumerate(names[3:], 3):
            assert texts(columns, f"{position}/values") == [EVENTS[event].get(name) for event in KEPT], name


def test_provenance_is_in_the_file_and_unknown_stays_unknown(place: Place, tmp_path: Path) -> None:
    index = read_index(place, DATASET)
    told = export(place, tmp_path / "a.h5", window_s=WINDOW)
    with h5py.File(tmp_path / "a.h5") as file:
        info = dict(file["neuro_info"].attrs)
    plain = {name: value for name, value in info.items() if not isinstance(value, np.ndarray)}
    expected = {
        "sfreq": 100.0,
        "rate_original": 500.0,
        "group": GROUP,
        "modality": "EEG",
        "source_file": f"http://127.0.0.1:8321/{DATASET}/zarr/{ZARR}",
        "dataset_id": DATASET,
        "recording": PATH,
        "doi": "10.0000/made.up",
        "license": "CC0",
        "citation": "unknown",
        "hed_version": "unknown",
        "index_source_commit": "a" * 40,
        "index_updated_utc": "2026-11-30T08:00:00Z",
        "index_etag": index.etag,
        "source_commit": "unknown",
        "engine_version": "unknown",
        "biosigio_version": "1.2.13",
        "store_format_version": 2,
        "store_etag": told.store_etag,
        "store_events_source": "unknown",
        "derived": False,
        "start_s": 0.0,
        "stop_s": 29.5,
        "window_start_s": -0.2,
        "window_stop_s": 0.3,
        "events_source": "events.parquet",
        "stimulus_ids_from": "trial_type",
        "n_trials": 5,
        "n_trials_dropped": 2,
        "n_events_without_onset": 1,
        "n_events_without_image": 0,
    }
    assert {name: plain.get(name) for name in expected} == expected
    assert set(plain) - set(expected) == {"zarrmill_version", "exported_utc"}
    assert info["ch_names"].tolist() == list(LABELS)
    assert info["ch_units"].tolist() == ["uV"] * 3
    assert info["ch_types"].tolist() == ["EEG"] * 3
    assert info["ch_scale"].tolist() == list(SCALE)
    assert info["ch_usable_for_inference"].tolist() == [True] * 3


def test_the_same_words_have_the_same_numbers_in_every_file_where_they_are_named(place: Place, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"window_s": WINDOW, "trial_types": ("house", "face", "7")}
    assert export(place, tmp_path / "a.h5", **asked, stop_s=4.0).stimuli == {2: "face", 3: "house"}
    assert export(place, tmp_path / "b.h5", **asked, start_s=11.85).stimuli == {1: "7"}


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> tuple[FolderTarget, Path]:
    """A target whose events file a test replaces again and again, and a folder."""
    root = tmp_path_factory.mktemp("any")
    target = FolderTarget(root / "served", port=8321)
    put_scene(target, root)
    return target, root


@settings(max_examples=40)
@given(
    events=st.lists(st.tuples(st.integers(-100, N_SAMPLES + 100), st.sampled_from("abc")), min_size=1, max_size=25),
    first=st.integers(-700, 0),
    last=st.integers(1, 900),
)
def test_any_trials_are_those_parts_of_the_whole(
    changing: tuple[FolderTarget, Path], events: list[tuple[int, str]], first: int, last: int
) -> None:
    target, root = changing
    events.sort(key=lambda event: event[0])
    put_events(target, root, [{"onset_s": onset / 100, "trial_type": word} for onset, word in events])
    inside = [(onset, word) for onset, word in events if 0 <= onset < N_SAMPLES]
    kept = [(onset, word) for onset, word in inside if onset + first >= 0 and onset + last <= N_SAMPLES]
    asked: dict[str, Any] = {"window_s": (first / 100, last / 100), "compression": Compression.parse("none")}
    if not kept:
        with pytest.raises(Refused, match="no trial of"):
            export(target_place(target), root / "a.h5", **asked)
        return
    exported = export(target_place(target), root / "a.h5", **asked)
    assert (exported.n_trials, exported.dropped) == (len(kept), len(inside) - len(kept))
    with h5py.File(root / "a.h5") as file:
        whole = physical(2).T.astype(np.float32)
        assert np.array_equal(file["neuro"][()], np.stack([whole[onset + first : onset + last] for onset, _ in kept]))
        labels = file["stim_labels"][()].reshape(len(kept), last - first)
        at_onsets = labels[np.arange(len(kept)), file["vision_onsets"][()]]
        assert [exported.stimuli[int(number)] for number in at_onsets] == [word for _, word in kept]
        assert texts(file, "trial_meta/columns/3/values") == [word for _, word in kept]


def test_each_chunk_that_holds_a_trial_is_read_once_and_no_other(place: Place, tmp_path: Path) -> None:
    read: list[tuple[str, int, int]] = []
    export(listening_to(place, lambda *one: read.append(one)), tmp_path / "a.h5", window_s=WINDOW)
    parts = [one for one in read if "/c/" in one[0] and one[0].startswith(f"{DATASET}/zarr/{ZARR}/{GROUP}/0")]
    assert len(parts) == len(set(parts)), "nothing is read twice"
    # onsets from 2 to 4.29 s and from 11.7 to 12.4 s: chunks of 4 s, 0 and 1, 2 and 3, in shards of three
    assert len(parts) == 4 + 2, "four chunks and the indices of two shards"


@dataclass
class _Told:
    key: str
    opened: Any
    told: Any

    @property
    def size_bytes(self) -> int:
        return self.opened.size_bytes

    @property
    def etag(self) -> str:
        return self.opened.etag

    def read(self, start: int, length: int) -> bytes:
        self.told(self.key, start, length)
        data: bytes = self.opened.read(start, length)
        return data

    def close(self) -> None:
        self.opened.close()


def listening_to(place: Place, told: Any) -> Place:
    """A place that tells each read of an object before it is done."""

    def open_object(key: str) -> _Told | None:
        opened = place.open_object(key)
        return None if opened is None else _Told(key, opened, told)

    return Place(place.url, open_object, place.catalog_key)


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


@pytest.mark.parametrize("mode", ["epochs", "continuous"])
def test_vneurotk_of_today_opens_schema_0_and_finds_the_labels_and_the_values(
    place: Place, tmp_path: Path, vneurotk: Reader, mode: Any
) -> None:
    export(place, tmp_path / "a.h5", window_s=(-0.05, 0.1), schema=0, mode=mode)
    told, values = vneurotk.read(tmp_path / "a.h5")
    assert (told["version"], told["configured"], told["mode"], told["heavy"]) == ("0.0.1", True, mode, [])
    onsets = [5, 200, 250, 399, 1190, 1210, 2940]
    words = {1: "7", 2: "face", 3: "house"}
    assert [words[int(number)] for number in told["ids"]] == ["face", "house", "face", "face", "house", "7", "face"]
    assert told["stim_ids"] == [1, 2, 3]
    assert told["meta"]["trial_type"] == ["face", "house", "face", "face", "house", "n/a", "face"]
    assert told["meta"]["sample_index"] == onsets
    assert told["trial_info"] == {"baseline": [-5, 0], "trial_window": [-5, 10]}
    assert (told["info"]["sfreq"], told["info"]["ch_names"], told["info"]["license"]) == (100.0, list(LABELS), "CC0")
    whole = physical(2).T
    expected = whole if mode == "continuous" else np.stack([whole[onset - 5 : onset + 10] for onset in onsets])
    assert values.shape == expected.shape
    assert (np.abs(values - expected) <= np.array(SCALE)).all()
    assert told["onsets"] == (onsets if mode == "continuous" else [5] * 7)


assert CHUNK == 400
