"""Windows of a served store in VneuroTK files: samples, labels, tables, provenance, and what is refused before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from export_scene import EVENTS, put_events, put_scene
from exporting import KEPT, WINDOW, export, listening_to, texts
from hypothesis import given, settings
from hypothesis import strategies as st
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
)
from vneurotk_reader import Reader

from contract.errors import Refused
from infra.storage.folder import FolderTarget
from tasks.read.index import read_index
from tasks.read.place import Place, target_place
from tasks.vneurotk.layout import Compression


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
