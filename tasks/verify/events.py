"""Events: the store's own group and its rows of events.parquet, against the events.tsv."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.samples import sample_index
from contract.verification import Check
from tasks.verify.groups import decoded
from tasks.verify.tables import plain_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.verify.events_file import EventsFile
    from tasks.verify.groups import Opened
    from tasks.verify.report import Report
    from tasks.verify.served import ServedStore
    from tasks.verify.tables import Table

__all__ = ["Event", "check_events", "check_rows", "events_of"]


@dataclass(frozen=True, slots=True)
class Event:
    """One row of an events.tsv; None for what is blank or ``n/a``."""

    onset_s: float | None
    duration_s: float | None
    trial_type: str | None
    value: str | None

    @property
    def label(self) -> str:
        """What the store calls it."""
        return self.trial_type or self.value or "n/a"


def events_of(table: Table) -> list[Event] | None:
    """The events by onset, unknown onsets last, ties as in the file; None for a table that is no plain one of events."""
    onsets, durations = table.column("onset"), table.column("duration")
    if onsets is None:
        return None
    blank = ("",) * len(onsets)
    numbers = [[plain_number(cell) for cell in column or blank] for column in (onsets, durations)]
    if not all(plain for column in numbers for plain, _ in column):
        return None
    texts = [[_filled(cell) for cell in table.column(name) or blank] for name in ("trial_type", "value")]
    events = [
        Event(onset, duration, kind, value)
        for (_, onset), (_, duration), kind, value in zip(*numbers, *texts, strict=True)
    ]
    return sorted(events, key=lambda event: math.inf if event.onset_s is None else event.onset_s)


def _filled(cell: str) -> str | None:
    return None if not cell or cell.lower() == "n/a" else cell


def check_events(served: ServedStore, opened: Opened, events: Sequence[Event] | None, report: Report) -> None:
    """Compare the events group; ``events`` is None without an events.tsv, and then there must be no group."""
    if events is None:
        there = served.whole("events/zarr.json") is not None
        report.hold(Check.EVENTS, not there, "the store has events, and no events.tsv applies to the recording")
        return
    group = decoded(served, lambda: opened.node["events"])
    if isinstance(group, Exception):
        report.fail(Check.EVENTS, f"the store has no events, events.tsv has {len(events)}")
        return
    says = dict(group.attrs)
    counted = says.get("n_events")
    if not report.hold(
        Check.EVENTS, counted == len(events), f"the store has {counted} events, events.tsv has {len(events)}"
    ):
        return
    if not events:
        return
    arrays = decoded(served, lambda: [np.asarray(group[name][:]) for name in ("onset", "duration", "code")])
    if isinstance(arrays, Exception):
        report.fail(Check.DECODING, "the store's events cannot be decoded")
        return
    onsets = np.array([math.nan if event.onset_s is None else event.onset_s for event in events])
    durations = np.array([event.duration_s or 0.0 for event in events])
    labels = [says.get("label_map", {}).get(str(int(code))) for code in arrays[2]]
    for name, holds in (
        ("onsets", np.array_equal(arrays[0], onsets, equal_nan=True)),
        ("durations", np.array_equal(arrays[1], durations)),
        ("labels", labels == [event.label for event in events]),
    ):
        report.hold(Check.EVENTS, bool(holds), f"the {name} of the store's events are not those of events.tsv")


def check_rows(
    file: EventsFile | None, zarr: str, opened: Opened, events: Sequence[Event] | None, report: Report
) -> None:
    """Compare the store's rows of events.parquet: one an event and channel group, by onset, then group."""
    rows = [] if file is None else file.rows(zarr)
    groups = sorted((group.name, group.says.rate) for group in opened.groups)
    wanted = [(event, *group) for event in events or () for group in groups]
    count = f"events.parquet has {len(rows)} rows of it, {len(wanted)} follow from events.tsv"
    if not report.hold(Check.EVENTS_FILE, len(rows) == len(wanted), count):
        return
    for at, (row, (event, name, rate_hz)) in enumerate(zip(rows, wanted, strict=True)):
        duration_s = None if event.duration_s is None else float(np.float32(event.duration_s))
        should: dict[str, Any] = {
            "onset_s": event.onset_s,
            "duration_s": duration_s,
            "sample_index": sample_index(event.onset_s, rate_hz),
            "group_name": name,
            "trial_type": event.trial_type,
            "value": event.value,
        }
        wrong = [column for column, value in should.items() if row[column] != value]
        if wrong:
            detail = f"row {at} of it in events.parquet differs from events.tsv in {', '.join(wrong)}"
            report.fail(Check.EVENTS_FILE, detail)
            return
    report.checked += 1
