"""Broken sidecars are named with their reason, and what is no table of events contributes none."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversion import Bench, recording_at, with_sidecars
from small_files import edf_bytes

from tasks.bids.recording import Ambiguity
from tasks.convert.sidecars import ReadSidecars, read_sidecars

PATH = "sub-01/eeg/sub-01_task-a_eeg.edf"
RECORDING = recording_at(PATH, "edf", "eeg")


def read(folder: Path, data: bytes, *, kind: str) -> ReadSidecars:
    (folder / f"{kind}.tsv").write_bytes(data)
    return read_sidecars(with_sidecars(RECORDING, **{kind: f"{kind}.tsv"}), folder)


EVENTS = [
    ("random bytes", random.Random(3).randbytes(2000), None, "events.tsv is binary, no text, and is not used"),
    (
        "control characters",
        b"onset\tduration\n1\t0\x01\x02\x03\n",
        None,
        "events.tsv is binary, no text, and is not used",
    ),
    ("one NUL", b"onset\tduration\n1\t0\n2\t0\x00\n", None, "events.tsv is binary, no text, and is not used"),
    ("nothing", b"", None, "events.tsv is empty and is not used"),
    ("blank lines", b"\n \n", None, "events.tsv is empty and is not used"),
    ("no onset", b"time\tvalue\n1\t2\n", None, "events.tsv has no onset column and is not used"),
    ("bad onsets", b"onset\tduration\n1\t0\nx\t0\ny\t0\n", 3, "events.tsv: 2 rows have an onset that is no number"),
    ("short rows", b"onset\tduration\n1\n2\t0\n3\n", 3, "events.tsv: 2 rows have fewer cells than the header"),
    ("Latin", b"onset\tduration\tvalue\n1\t0\t\xe9\n", 1, "events.tsv: the file is cp1252, not UTF-8"),
]


@pytest.mark.parametrize(("data", "n_events", "said"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS])
def test_trouble_with_events_is_named(tmp_path: Path, data: bytes, n_events: int | None, said: str) -> None:
    found = read(tmp_path, data, kind="events")
    assert found.notes == (said,)
    assert (None if found.events is None else found.events.n_events) == n_events


@pytest.mark.parametrize(
    "data",
    [
        b"onset\tduration\n0\t0\n1\tn/a\n",
        b"onset\tduration\n",
        "onset\tduration\tvalue\n1\t0\tµ — 你好\n".encode(),
        "onset\tduration\n1\t0\n".encode("utf-8-sig"),
    ],
)
def test_sound_events_are_no_trouble(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, data, kind="events")
    assert found.notes == ()
    assert found.events is not None


def test_utf_16_with_its_mark_is_text(tmp_path: Path) -> None:
    found = read(tmp_path, "onset\tduration\n1\t0\n".encode("utf-16"), kind="events")
    assert found.notes == ("events.tsv: the file is utf-16, not UTF-8",)
    assert found.events is not None
    assert found.events.onset_s == (1.0,)


@pytest.mark.parametrize(
    ("data", "unreadable", "said"),
    [
        (random.Random(4).randbytes(500), True, "channels.tsv is binary, no text, and is not used"),
        (b"", True, "channels.tsv is empty and is not used"),
        (b"label\tunits\nA\tuV\n", True, "channels.tsv has no name column and is not used"),
        (b"name\tunits\n", False, "channels.tsv names no channel"),
        (b"name\ttype\nA\tEEG\n", False, "channels.tsv has no units column"),
        (
            b"name\tunits\nA\tuV\nB\tuV\nA\tmV\n",
            False,
            "channels.tsv: the last row counts of repeated names (A)",
        ),
        (
            b"name\ttype\tunits\nA\teegg\tuV\nB\tn/a\tuV\nC\teeg\tuV\n",
            False,
            "channels.tsv: types that are not known are left out (eegg)",
        ),
    ],
    ids=["binary", "empty", "no name", "no row", "no units", "repeated", "type"],
)
def test_trouble_with_channels_is_named(tmp_path: Path, data: bytes, unreadable: bool, said: str) -> None:
    found = read(tmp_path, data, kind="channels")
    assert (found.notes, found.channels_unreadable) == ((said,), unreadable)


def test_a_tie_between_sidecars_is_noted(tmp_path: Path) -> None:
    ties = (Ambiguity(PATH, "a_events.tsv", ("b_events.tsv",)), Ambiguity(PATH, None, ("c.json", "d.json")))
    assert read_sidecars(with_sidecars(RECORDING, ties=ties), tmp_path).notes == (
        "a_events.tsv is used, though as well apply b_events.tsv",
        "none of these is used, for all apply equally well: c.json, d.json",
    )


@pytest.mark.parametrize(
    ("value", "hz", "noted"),
    [
        ("50", 50.0, False),
        ('"n/a"', None, False),
        ("null", None, False),
        ('"60"', None, True),
        ("0", None, True),
        ("true", None, True),
    ],
)
def test_a_power_line_frequency_is_a_number_or_noted(tmp_path: Path, value: str, hz: float | None, noted: bool) -> None:
    (tmp_path / "eeg.json").write_text(f'{{"PowerLineFrequency": {value}}}')
    found = read_sidecars(with_sidecars(RECORDING, signal_json=("eeg.json",)), tmp_path)
    said = ("eeg.json: its PowerLineFrequency is no frequency and is not used",)
    assert (found.power_line_frequency_hz, found.notes) == (hz, said if noted else ())


def test_coordinates_that_are_no_numbers_are_counted_and_missing_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "electrodes.tsv").write_text("name\tx\ty\tz\nA\t1\t2\t3\nB\tn/a\tn/a\tn/a\nC\t1\t2\tnear\nA\t9\t9\t9\n")
    found = read_sidecars(with_sidecars(RECORDING, electrodes="electrodes.tsv"), tmp_path)
    assert found.electrodes is not None
    assert found.electrodes.positions == {"A": (1.0, 2.0, 3.0)}
    assert found.notes == ("electrodes.tsv: 1 row has a coordinate that is no number",)


def test_notes_carry_no_place_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "channels.tsv").write_text("/home/anna/a\tname\t/home/anna/a\nA\tB\tC\n")
    (note, *_) = read_sidecars(with_sidecars(RECORDING, channels="channels.tsv"), tmp_path).notes
    assert note == "channels.tsv: the header <path> is repeated; a later one is prefixed with x_"


@pytest.fixture
def no_chosen_level() -> Iterator[None]:
    """Our loggers as a child has them: nobody chose a level, and importing biosigIO turned the root logger off."""
    ours = logging.getLogger("zarrmill")
    before = ours.level
    ours.setLevel(logging.NOTSET)
    yield
    ours.setLevel(before)


@pytest.mark.usefixtures("no_chosen_level")
def test_binary_events_leave_no_events_and_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path)
    bench.put(PATH, edf_bytes())
    bench.put("events.tsv", random.Random(3).randbytes(2000))
    done = bench.convert(with_sidecars(RECORDING, events="events.tsv"))
    said = "events.tsv is binary, no text, and is not used"
    assert done.notes == (said,)
    assert f"{PATH}: {said}" in caplog.messages
    assert (done.events, done.events_row_count, done.entry.n_events, done.entry.trial_types) == (None, 0, None, None)
    assert not (bench.store / "events").exists()
