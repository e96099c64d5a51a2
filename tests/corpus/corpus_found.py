"""What came of each row: the published documents, the store and the history of its attempt, read as a stranger would."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import zarr
from comparison import SPOILED
from corpus_row import Event, Expected, Failed, Row, Served, Unseen
from open_store import served as opened
from reference_signal import ServedSignal, SourceSignal, disagreements, expected
from served_dataset import Served as Dataset
from sqlalchemy import create_engine, text

_CAPS_HZ = {"EEG": 250.0, "MEG": 250.0, "IEEG": 1000.0, "EMG": 1000.0}


@dataclass(frozen=True, kw_only=True)
class Found:
    """One recording; ``word`` is ``served``, the code of its failure, the reason it is pending, or "" when unseen."""

    word: str = ""
    detail: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)
    root: Mapping[str, Any] = field(default_factory=dict)
    signals: Mapping[str, ServedSignal] = field(default_factory=dict)
    store_events: tuple[tuple[float, float, str], ...] | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """Everything that the one conversion of the corpus left."""

    dataset: Dataset
    source: Path
    notes: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, tuple[Mapping[str, Any], ...]]

    def found(self, path: str) -> Found:
        """What came of the recording at this path."""
        index = self.dataset.index
        for failure in index["failures"]:
            if failure["path"] == path:
                return Found(word=failure["code"], detail=failure["detail"] or "")
        for pending in index["pending"]:
            if pending["path"] == path:
                return Found(word=pending["reason"], detail=pending["last_error"] or "")
        entry = next((entry for entry in index["stores"] if entry["path"] == path), None)
        if entry is None:
            return Found()
        store = self.dataset.base / entry["zarr"]
        return Found(
            word="served",
            entry=entry,
            root=json.loads((store / "zarr.json").read_text())["attributes"],
            signals={group["name"]: opened(store, group["name"]) for group in entry["groups"]},
            store_events=_store_events(store),
            rows=self.rows.get(entry["zarr"], ()),
            notes=self.notes.get(path, ()),
        )


def _store_events(store: Path) -> tuple[tuple[float, float, str], ...] | None:
    if not (store / "events").is_dir():
        return None
    group = zarr.open_group(store, mode="r")["events"]
    if group.attrs["n_events"] == 0:
        return ()
    labels = group.attrs["label_map"]
    columns = (group["onset"][:], group["duration"][:], group["code"][:])
    return tuple((float(o), float(d), labels[str(c)]) for o, d, c in zip(*columns, strict=True))


def outcomes(dataset: Dataset, source: Path, database_url: str) -> Outcomes:
    """What stands at the target and in the history of attempts."""
    engine = create_engine(database_url)
    with engine.connect() as c:
        noted = c.execute(
            text("SELECT r.path, a.notes FROM attempts a JOIN recordings r ON r.pk = a.recording_pk ORDER BY a.ordinal")
        )
        notes = {path: tuple(said) for path, said in noted}
    engine.dispose()
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in pq.read_table(dataset.base / "events.parquet").to_pylist():
        rows.setdefault(row["store_path"], []).append(row)
    return Outcomes(dataset, source, notes, {zarr: tuple(those) for zarr, those in rows.items()})


def differences(row: Row, wanted: Expected, found: Found) -> list[str]:
    """What is not as wanted, a line each."""
    if isinstance(wanted, Unseen):
        return [] if found.word == "" else [f"seen as {found.word}: {found.detail}"]
    if isinstance(wanted, Failed):
        if found.word != wanted.code:
            return [f"{found.word or 'unseen'} ({found.detail}) instead of {wanted.code}"]
        return [] if wanted.detail in found.detail else [f"the detail {found.detail!r} does not say {wanted.detail!r}"]
    if found.word != "served":
        return [f"{found.word or 'unseen'} ({found.detail}) instead of served"]
    return [*_signals(wanted, found), *_events(wanted, found), *_facts(row, wanted, found)]


def _signals(wanted: Served, found: Found) -> Iterator[str]:
    if tuple(found.signals) != tuple(wanted.signals):
        yield f"groups {tuple(found.signals)} instead of {tuple(wanted.signals)}"
        return
    units = tuple(unit for served in found.signals.values() for unit in served.units)
    types = tuple(kind for served in found.signals.values() for kind in served.types)
    if units != wanted.units:
        yield f"units {units} instead of {wanted.units}"
    if wanted.types is not None and types != wanted.types:
        yield f"types {types} instead of {wanted.types}"
    for group in found.entry["groups"]:
        name = group["name"]
        served, source = found.signals[name], wanted.signals[name]
        if served.labels != source.labels:
            yield f"labels {served.labels} instead of {source.labels}"
            continue
        off = disagreements(served, expected(source, served, _CAPS_HZ.get(group["modality"], 1e9)))
        if off:
            yield f"values of {', '.join(off)} in {name}"


def _events(wanted: Served, found: Found) -> Iterator[str]:
    events = wanted.events
    if events is None:
        if found.store_events is not None or found.rows or "n_events" in found.entry or "trial_types" in found.entry:
            yield f"events where there should be none: {found.store_events}, {len(found.rows)} rows"
        return
    if found.entry.get("n_events") != len(events):
        yield f"n_events {found.entry.get('n_events')} instead of {len(events)}"
    nan = float("nan")
    stored = [
        (nan if o is None else o, 0.0 if d is None else d, kind or value or "n/a") for o, d, kind, value in events
    ]
    same = found.store_events is not None and len(found.store_events) == len(stored)
    if not same or not all(
        _same_event(one, other) for one, other in zip(found.store_events or (), stored, strict=True)
    ):
        yield f"the store's events {found.store_events} instead of {stored}"
    for name in found.signals:
        rate = next(group["rate"] for group in found.entry["groups"] if group["name"] == name)
        rows = [_row_of(row) for row in found.rows if row["group_name"] == name]
        published = [(o, None if d is None else float(np.float32(d)), k, v, _sample(o, rate)) for o, d, k, v in events]
        if rows != published:
            yield f"rows {rows} instead of {published}"


def _row_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["onset_s"], row["duration_s"], row["trial_type"], row["value"], row["sample_index"]


def _sample(onset_s: float | None, rate_hz: float) -> int | None:
    return None if onset_s is None else int(np.floor(onset_s * rate_hz + 0.5))


def _same_event(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return bool(np.array_equal(one[:2], other[:2], equal_nan=True)) and one[2] == other[2]


def _facts(row: Row, wanted: Served, found: Found) -> Iterator[str]:
    notes = tuple(_named(note, row) for note in wanted.notes)
    if found.notes != notes:
        yield f"notes {found.notes} instead of {notes}"
    match = found.root.get("channels_tsv_match")
    counts = match and tuple(
        match[name] for name in ("matched", "matched_case_only", "unmatched_channels", "unmatched_rows")
    )
    if counts != wanted.match:
        yield f"match {counts} instead of {wanted.match}"
    flags = (found.entry.get("channels_tsv_read_error"), found.root.get("channels_tsv_read_error"))
    if flags != ((True, True) if wanted.read_error else (None, None)):
        yield f"channels_tsv_read_error {flags}"
    mismatch = {"channels_tsv_count_mismatch": None, "power_line_frequency": None, "electrode_positions": None}
    for where, facts, asked in (
        ("entry", found.entry, wanted.entry),
        ("root", found.root, {**mismatch, **wanted.attributes}),
    ):
        for name, value in asked.items():
            if _asked(facts.get(name), value) != _named(value, row):
                yield f"{where} {name} {facts.get(name)!r} instead of {value!r}"


def _asked(fact: Any, value: Any) -> Any:
    """The fact; of objects in a list only the fields that are asked about."""
    if not (isinstance(fact, list) and isinstance(value, list) and len(fact) == len(value)):
        return fact
    return [{name: one.get(name) for name in asked} for one, asked in zip(fact, value, strict=True)]


def _named(value: Any, row: Row) -> Any:
    """The value with the row's own names where it names them."""
    if isinstance(value, dict):
        return {name: _named(inner, row) for name, inner in value.items()}
    if not isinstance(value, str):
        return value
    return value.replace("{stem}", f"sub-{row.name}_task-t").replace("{name}", row.name)


def twins(wanted: Expected) -> Iterator[tuple[str, Expected]]:
    """Expectations that are wrong in one way each; a comparison that takes one of them cannot fail."""
    if isinstance(wanted, Unseen):
        yield "seen", Failed(code="file_read_error")
        return
    yield "unseen", Unseen()
    if isinstance(wanted, Failed):
        yield "code", replace(wanted, code="channel_count_mismatch")
        yield "detail", replace(wanted, detail="nothing says this")
        return
    yield "failed", Failed(code="corrupt_or_truncated")
    for name, spoil in SPOILED.items():
        spoiled = {group: _spoiled(source, spoil(source.data)) for group, source in wanted.signals.items()}
        if any(not np.array_equal(spoiled[g].data, s.data) for g, s in wanted.signals.items()):
            yield name, replace(wanted, signals=spoiled)
    yield (
        "labels",
        replace(wanted, signals={g: replace(s, labels=(*s.labels[:-1], "?")) for g, s in wanted.signals.items()}),
    )
    yield "groups", replace(wanted, signals={f"{g}_from1": s for g, s in wanted.signals.items()})
    for fact in ("name", "rate", "source_rate_hz", "n_samples", "duration_s"):
        if groups := wanted.entry.get("groups"):
            others = [*groups[:-1], {**groups[-1], fact: 3}]  # type: ignore[index]  # a list of groups
            yield f"a group's {fact}", replace(wanted, entry={**wanted.entry, "groups": others})
    yield "units", replace(wanted, units=(*wanted.units[:-1], "fT"))
    yield "notes", replace(wanted, notes=(*wanted.notes, "more"))
    yield "match", replace(wanted, match=(9, 9, 9, 9))
    yield "read error", replace(wanted, read_error=not wanted.read_error)
    yield "entry", replace(wanted, entry={**wanted.entry, "n_events": -1})
    for name, events in _other_events(wanted.events):
        yield name, replace(wanted, events=events)


def _spoiled(source: SourceSignal, data: np.ndarray) -> SourceSignal:
    return replace(source, data=data)


def _other_events(events: tuple[Event, ...] | None) -> Iterator[tuple[str, tuple[Event, ...] | None]]:
    if events is None:
        yield "no events", ()
        return
    yield "one more event", (*events, (99.0, 0.0, "more", None))
    if events:
        yield "no group of events", None
        yield "one event fewer", events[:-1]
        onset, duration, kind, value = events[0]
        yield "onset", (((onset or 0.0) + 0.01, duration, kind, value), *events[1:])
        yield "label", ((onset, duration, f"{kind}?", value), *events[1:])
    if len(set(events)) > 1:
        yield "order", events[::-1]
