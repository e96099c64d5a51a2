"""Random tables of events and channels keep their counts, order and nulls from the file to everything that is published."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from conversion import recording_at, with_sidecars
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.bids.recording import DiscoveredRecording
from tasks.convert.match import match_channels
from tasks.convert.sidecars import ReadSidecars, read_sidecars
from tasks.events.parquet import write_parquet
from tasks.events.rows import event_rows

RECORDING = recording_at("sub-01/eeg/sub-01_task-a_eeg.edf", "edf", "eeg")
GROUPS = (("eeg_250hz", 250.0), ("misc_100hz", 100.0))

_MISSING = ["n/a", "N/A", "", "nan", "later"]
_NUMBERS = st.one_of(
    st.sampled_from(_MISSING),
    st.floats(-1e5, 1e5, allow_nan=False).map(repr),
    st.integers(0, 9).map(str),
)
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=8).filter(
    lambda text: '"' not in text
)
_LABELS = st.one_of(st.sampled_from(["n/a", "", "go", "stop", "N/A"]), _WORDS)
_EVENTS = st.lists(st.tuples(_NUMBERS, _NUMBERS, _LABELS, _LABELS, _LABELS), max_size=30)
_ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])
_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def text_of(cell: str) -> str | None:
    """What a cell of text says, by the words of the documentation."""
    stripped = cell.strip()
    return None if stripped == "" or stripped.lower() == "n/a" else stripped


def number_of(cell: str) -> float | None:
    return None if cell in _MISSING else float(cell)


def read(recording: DiscoveredRecording, name: str, data: bytes) -> ReadSidecars:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(data)
        return read_sidecars(with_sidecars(recording, **{name.removesuffix(".tsv"): name}), Path(folder))


def published(found: ReadSidecars) -> list[dict[str, Any]]:
    assert found.events is not None
    data, count = event_rows(found.events, zarr="a.zarr", entities={"sub": "01"}, groups=GROUPS)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "events.parquet"
        assert write_parquet([("a.zarr", data)], out) == count
        return pq.read_table(out).to_pylist() if count else []


@settings(max_examples=100)
@given(_EVENTS, _ENCODINGS, _ENDS)
def test_events_keep_their_number_order_and_nulls(cells: list[tuple[str, ...]], encoding: str, end: str) -> None:
    cells = [row for row in cells if any(cell.strip() for cell in row)]  # a blank line is no row
    lines = ["onset\tduration\ttrial_type\tvalue\tnote", *("\t".join(row) for row in cells)]
    found = read(RECORDING, "events.tsv", end.join(lines).encode(encoding))
    assert found.events is not None
    wanted = [(number_of(row[0]), number_of(row[1]), *map(text_of, row[2:])) for row in cells]
    wanted.sort(key=lambda row: (row[0] is None, row[0] or 0.0))  # stable: ties and unknown onsets as in the file
    events = found.events
    assert events.n_events == len(wanted)
    assert list(events.onset_s) == [row[0] for row in wanted]
    assert list(events.duration_s) == [row[1] for row in wanted]
    assert list(events.trial_type or ()) == [row[2] for row in wanted]
    assert list(events.descriptions()) == [row[2] or row[3] or "n/a" for row in wanted]
    kinds = [row[2] for row in wanted if row[2] is not None]
    assert dict(events.trial_types()) == {kind: kinds.count(kind) for kind in kinds}
    rows = published(found)
    assert len(rows) == len(wanted) * len(GROUPS)
    for name, _ in GROUPS:
        own = [row for row in rows if row["group_name"] == name]
        assert [(row["onset_s"], row["trial_type"], row["value"], row["note"]) for row in own] == [
            (onset, *rest) for onset, _, *rest in wanted
        ]
        assert [row["duration_s"] is None for row in own] == [row[1] is None for row in wanted]
        assert [row["sample_index"] is None for row in own] == [row[0] is None for row in wanted]


_NAMES = st.sampled_from(["A", "a", "B", "b", "C", "Fp1", "FP1", "fp1", "x"])
_TYPES = st.sampled_from(["EEG", "eog", "n/a", "", "TRIG", "eegg"])
_UNITS = st.sampled_from(["uV", "mV", "V", "n/a", "", "microV"])


@settings(max_examples=100)
@given(
    st.lists(st.tuples(_NAMES, _TYPES, _UNITS), min_size=1, max_size=12),
    st.lists(st.sampled_from(["A", "B", "Fp1", "FP1", "c", "D"]), min_size=1, max_size=6, unique=True),
)
def test_channels_keep_what_no_row_speaks_of(rows: list[tuple[str, str, str]], labels: list[str]) -> None:
    from biosigio.bids import apply_channels_tsv_to_stream

    table = "\n".join(["name\ttype\tunits", *("\t".join(row) for row in rows)])
    found = read(RECORDING, "channels.tsv", table.encode())
    assert found.channels is not None
    assert list(found.channels.frame["name"]) == [row[0] for row in rows]
    assert list(found.channels.frame["units"]) == [row[2] for row in rows]
    assert found.channels.n_rows == len(rows)
    match = match_channels([row[0] for row in rows], labels, {})
    assert match.matched + len(match.unlisted) == len(labels)
    assert match.matched + len(match.unknown) == len({row[0] for row in rows})
    assert match.as_attribute()["matched_case_only"] == len(match.case_only)
    stream = [{"label": label, "channel_type": "MISC", "modality": "EEG", "unit": "nV"} for label in labels]
    report = apply_channels_tsv_to_stream(stream, found.channels.frame, force_modality="EEG")
    assert report is not None
    assert len(report.get("matched_case_insensitive", {})) == len(match.case_only)
    speaks = dict(match.case_only)
    for channel in stream:
        label = channel["label"]
        own = [row for row in rows if row[0] == label or speaks.get(row[0]) == label]
        assert bool(own) is (label not in match.unlisted)
        known = [kind.upper() for _, kind, _ in own if kind.upper() in {"EEG", "EOG", "TRIG"}]
        assert channel["channel_type"] == (known[-1] if known else "MISC")
        if not own:
            assert (channel["unit"], channel.get("bids_unit"), channel.get("unit_factor", 1.0)) == ("nV", None, 1.0)
