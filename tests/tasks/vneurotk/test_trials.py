"""Trials of a file as a table of events: every kind of label and of column, and what is wrong with them as a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_files import tones
from vneurotk_files import TEXT, series, typed, write_vneurotk

from tasks.bids.tsv import Table
from tasks.events.parse import events_of
from tasks.formats import load
from tasks.formats.protocol import HoldsEvents
from tasks.verify.own_events import own_events

DATA = tones(2, 1000, 250.0)


def table_of(path: Path) -> Table:
    one = load()["vneurotk"]
    assert isinstance(one, HoldsEvents)
    return one.events(path)


def written(folder: Path, edit: Callable[[Any], object] = lambda file: file, **changes: Any) -> Path:
    path = folder / "sub-01_eeg.h5"
    write_vneurotk(path, DATA, 250.0, **{"onsets": (100, 300, 500), "ids": (7, 7, 12), **changes})
    with h5py.File(path, "r+") as file:
        edit(file)
    return path


def agrees_with_the_second_reading(path: Path) -> bool:
    """Whether the sweep's own reader, which shares no code with this one, finds the same events."""
    events = events_of(table_of(path))
    blank = (None,) * events.n_events
    ours = list(zip(events.onset_s, events.duration_s, events.trial_type or blank, events.value or blank, strict=True))
    theirs, known = own_events(path, "vneurotk")
    return known and ours == [(one.onset_s, one.duration_s, one.trial_type, one.value) for one in theirs or ()]


def test_a_trial_is_an_event_at_its_onset_with_its_stimulus_and_an_unknown_duration(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert table_of(path) == Table(
        headers=("onset", "trial_type", "stim_id"),
        rows=(("0.4", "7", "7"), ("1.2", "7", "7"), ("2.0", "12", "12")),
    )
    events = events_of(table_of(path))
    assert events.duration_s == (None, None, None)
    assert events.others == {"stim_id": ("7", "7", "12")}
    assert agrees_with_the_second_reading(path)


@pytest.mark.parametrize("schema", [0, 1])
@pytest.mark.parametrize(
    ("ids", "cells"),
    [
        (("face/1", "é 日本", "face/1"), ("face/1", "é 日本", "face/1")),
        ((2.5, -0.5, 3.0), ("2.5", "-0.5", "3")),
        ((1, 2**53, -4), ("1", str(2**53), "-4")),
    ],
)
def test_stimuli_are_named_as_they_are(tmp_path: Path, schema: int, ids: Any, cells: tuple[str, ...]) -> None:
    path = written(tmp_path, schema=schema, ids=ids)
    assert table_of(path).column("trial_type") == cells
    assert agrees_with_the_second_reading(path)


def test_typed_stimuli_of_unlike_types_are_told_by_their_texts(tmp_path: Path) -> None:
    path = written(tmp_path, ids=("1", True, 2**70))
    assert table_of(path).column("stim_id") == ("1", "True", str(2**70))
    assert agrees_with_the_second_reading(path)


def test_columns_of_trial_meta_stand_under_their_names_and_say_what_an_events_tsv_would(tmp_path: Path) -> None:
    meta = {
        "trial_type": ["face", "house", "face"],
        "duration_s": [0.5, float("nan"), 1.0],
        "value": [1, 2, 1],
        "stim_id": ["a", "b", "c"],
        "Correct": [True, False, True],
        "onset": [9.0, 9.0, 9.0],
    }
    path = written(tmp_path, meta=meta)
    events = events_of(table_of(path))
    assert events.trial_type == ("face", "house", "face")
    assert events.duration_s == (0.5, None, 1.0)
    assert events.value == ("1", "2", "1")
    assert events.onset_s == (0.4, 1.2, 2.0), "the onset is the file's, whatever a column says"
    assert events.others == {
        "stim_id": ("7", "7", "12"),
        "x_stim_id": ("a", "b", "c"),
        "Correct": ("True", "False", "True"),
        "x_onset": ("9.0", "9.0", "9.0"),
    }
    assert agrees_with_the_second_reading(path)


def categorical(parent: Any, name: str) -> None:
    group = parent.create_group(name)
    group.attrs.update({"kind": "categorical", "dtype": "category", "ordered": False})
    group["codes"] = np.array([1, -1, 0])
    series(group, "category_values", ["low", "high"])


def datetimes(parent: Any, name: str, unit: str, values: list[int], zone: str | None = None) -> None:
    group = parent.create_group(name)
    group.attrs.update({"kind": "datetime" if zone is None else "datetime_tz", "dtype": "datetime64", "unit": unit})
    if zone is not None:
        group.attrs["tz"] = zone
    group["values"] = np.array(values, dtype=np.int64)


def nullable(parent: Any, name: str) -> None:
    group = parent.create_group(name)
    group.attrs.update({"kind": "nullable", "dtype": "Int64"})
    typed(group, "values", [3, None, 5])


def test_every_kind_of_column_is_read(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        held = file["trial_meta/columns"]
        for place in range(5):
            del held[str(place)]
        categorical(held, "0")
        datetimes(held, "1", "s", [0, -(2**63), 86_400])
        datetimes(held, "2", "ns", [1, 1_500_000_000_000_000_000, -1], "Europe/Berlin")
        nullable(held, "3")
        group = held.create_group("4")
        group.attrs.update({"kind": "numpy", "dtype": "<U3"})
        group.create_dataset("values", data=np.array(["a", "", "ü"], dtype=object), dtype=TEXT)

    path = written(tmp_path, edit, meta={name: [1, 2, 3] for name in "abcde"})
    table = table_of(path)
    assert table.notes == ()
    assert table.column("a") == ("high", "", "low")
    assert table.column("b") == ("1970-01-01T00:00:00", "", "1970-01-02T00:00:00")
    assert table.column("c") == (
        "1970-01-01T00:00:00.000000001Z",
        "2017-07-14T02:40:00Z",
        "1969-12-31T23:59:59.999999999Z",
    )
    assert table.column("d") == ("3", "", "5")
    assert table.column("e") == ("a", "", "ü")


@pytest.mark.parametrize("moment", [1, 1_500_000_000_123_456_789, -1, -86_400_000_000_001, 0])
def test_moments_are_those_of_pandas(tmp_path: Path, moment: int) -> None:
    def edit(file: Any) -> None:
        del file["trial_meta/columns/0"]
        datetimes(file["trial_meta/columns"], "0", "ns", [moment] * 3)

    (said, *_) = table_of(written(tmp_path, edit, meta={"when": [1, 2, 3]})).column("when") or ()
    assert pd.Timestamp(said) == pd.Timestamp(moment)


SPOILED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a kind that is unknown": (
        lambda file: file["trial_meta/columns/0"].attrs.__setitem__("kind", "sparse"),
        "the column 'a' of its trial_meta is not used: its kind 'sparse' is unknown",
    ),
    "a column that is not there": (
        lambda file: file["trial_meta/columns"].__delitem__("0"),
        "the column 'a' of its trial_meta is not used: it is not there",
    ),
    "another encoding": (
        lambda file: file["trial_meta"].attrs.__setitem__("encoding", "pandas_v2"),
        "its trial_meta is not encoded as pandas_v1 and is not used",
    ),
    "fewer rows": (
        lambda file: [
            file["trial_meta/columns/0"].__delitem__("values"),
            file["trial_meta/columns/0"].__setitem__("values", [1]),
        ],
        "the column 'a' of its trial_meta is not used: 1 rows of 3 trials",
    ),
    "a link to another file": (
        lambda file: [
            file["trial_meta"].__delitem__("columns"),
            file["trial_meta"].__setitem__("columns", h5py.ExternalLink("other.h5", "/x")),
        ],
        "its trial_meta is not used: columns is a link that leads elsewhere, which is not followed",
    ),
}


@pytest.mark.parametrize(("edit", "note"), SPOILED.values(), ids=SPOILED.keys())
def test_what_is_wrong_with_trial_meta_is_a_note_and_the_trials_are_events(
    tmp_path: Path, edit: Callable[[Any], object], note: str
) -> None:
    table = table_of(written(tmp_path, edit, meta={"a": [1, 2, 3]}))
    assert table.notes == (note,)
    assert table.column("onset") == ("0.4", "1.2", "2.0")
    assert table.column("a") is None


UNUSABLE: dict[str, Callable[[Any], object]] = {
    "onsets that are none": lambda file: [file.__delitem__("vision_onsets"), file.__setitem__("vision_onsets", [0.5])],
    "onsets elsewhere": lambda file: [
        file.__delitem__("vision_onsets"),
        file.__setitem__("vision_onsets", h5py.SoftLink("/trial_starts")),
    ],
    "labels of another length": lambda file: [
        file.__delitem__("stim_labels"),
        file.__setitem__("stim_labels", np.zeros(3)),
    ],
    "labels of another encoding": lambda file: file.attrs.__setitem__("stim_labels_encoding", "typed_scalars"),
}


@pytest.mark.parametrize("edit", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_trials_that_cannot_be_used_are_a_note(tmp_path: Path, edit: Callable[[Any], object]) -> None:
    table = table_of(written(tmp_path, edit))
    assert (table.headers, table.rows) == ((), ())
    assert [note.startswith("its trials are not used: ") for note in table.notes] == [True]


def test_a_file_without_trials_has_no_events_and_nothing_to_say(tmp_path: Path) -> None:
    assert table_of(written(tmp_path, lambda file: file.__delitem__("vision_onsets"))) == Table()
    assert table_of(written(tmp_path, onsets=(), ids=())).rows == ()


def test_a_trial_outside_the_recording_keeps_its_onset_and_has_no_stimulus(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        file["vision_onsets"][2] = 5000

    path = written(tmp_path, edit)
    table = table_of(path)
    assert table.notes == ("1 of its trials begin outside the recording",)
    assert table.rows[2] == ("20.0", "", "")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    onsets=st.lists(st.integers(0, 999), unique=True, max_size=8).map(sorted),
    rate_hz=st.floats(0.1, 5000.0),
    data=st.data(),
)
def test_events_are_found_alike_by_both_readings(
    tmp_path: Path, onsets: list[int], rate_hz: float, data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.integers(0, 99), min_size=len(onsets), max_size=len(onsets)))
    words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
    meta = {"trial_type": data.draw(st.lists(words, min_size=len(onsets), max_size=len(onsets)))}
    path = tmp_path / "sub-01_eeg.h5"
    write_vneurotk(path, DATA, rate_hz, onsets=onsets, ids=ids, meta=meta, length=0)
    if onsets:
        assert agrees_with_the_second_reading(path)


@pytest.mark.parametrize("links", [False, True])
def test_the_columns_of_schema_0_are_read_and_links_among_them_are_not_followed(tmp_path: Path, links: bool) -> None:
    def columns(file: Any) -> None:
        table = file.require_group("trial_meta")
        table["trial_type"] = np.array([b"face", b"house", b"face"])
        table["correct"] = np.array([1, 0, 1])
        if links:
            table["elsewhere"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/secret")
            table["soft"] = h5py.SoftLink("/neuro")

    path = written(tmp_path, columns, schema=0)
    events = events_of(table_of(path))
    assert events.trial_type == ("face", "house", "face")
    assert events.others["correct"] == ("1", "0", "1")
    assert not {"elsewhere", "soft"} & set(events.others)
    assert links or agrees_with_the_second_reading(path)
