"""The one parse of an events.tsv: the store's events group, the index and events.parquet all say what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.events import event_order, passthrough_names, source_columns, trial_type_counts
from tasks.bids.cells import filled, numbers, rows_have
from tasks.bids.tsv import Table, parse_tsv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tasks.bids.cells import Numbers

__all__ = ["Events", "events_of", "parse_events"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """An events.tsv, column by column, its rows by onset; rows without an onset last, file order on ties.

    No row is ever dropped: their number is the index's ``n_events``. ``None`` is a blank or ``n/a`` cell, and in the
    number columns also whatever is no finite decimal number.

    Parameters
    ----------
    trial_type, value, hed
        None as a whole when the file has no such column.
    others
        Every remaining column by its published name, in alphabetical order.
    has_onset_column
        False when the file has no such column, so that its rows are no events.
    notes
        What a person should know about the file.
    """

    onset_s: tuple[float | None, ...]
    duration_s: tuple[float | None, ...]
    trial_type: tuple[str | None, ...] | None
    value: tuple[str | None, ...] | None
    hed: tuple[str | None, ...] | None
    others: Mapping[str, tuple[str | None, ...]]
    has_onset_column: bool = True
    notes: tuple[str, ...] = ()

    @property
    def n_events(self) -> int:
        """Data rows."""
        return len(self.onset_s)

    def trial_types(self) -> Mapping[str, int]:
        """Rows per trial type by the index's keys; empty without such a column."""
        return trial_type_counts(self.trial_type or ())

    def descriptions(self) -> tuple[str, ...]:
        """One label a row: the trial type, else the value, else ``n/a``."""
        blank = (None,) * self.n_events
        return tuple(
            kind or value or "n/a" for kind, value in zip(self.trial_type or blank, self.value or blank, strict=True)
        )


def parse_events(data: bytes) -> Events:
    """The events in the bytes of an events.tsv; whatever they hold, nothing is raised."""
    return events_of(parse_tsv(data))


def events_of(table: Table) -> Events:
    """The events in a table, as an events.tsv has them.

    Known columns are matched in any case and the first one wins; a later one of the same name is another column.
    """
    known = source_columns(table.headers)
    blank: tuple[None, ...] = (None,) * len(table.rows)
    cells = [tuple(row[position] for row in table.rows) for position in range(len(table.headers))]
    measured: list[str] = [name for name in ("onset_s", "duration_s") if name in known]
    read = dict(zip(measured, numbers(*(cells[known[name]] for name in measured)), strict=True))
    onsets = read["onset_s"].values if "onset_s" in read else blank
    durations = read["duration_s"].values if "duration_s" in read else blank
    texts = [tuple(map(filled, column)) for column in cells]
    order = event_order(onsets)

    def text_column(name: str) -> tuple[str | None, ...] | None:
        return tuple(texts[known[name]][i] for i in order) if name in known else None

    others = {
        name: tuple(texts[position][i] for i in order) for position, name in passthrough_names(table.headers).items()
    }
    return Events(
        onset_s=tuple(onsets[i] for i in order),
        duration_s=tuple(durations[i] for i in order),
        trial_type=text_column("trial_type"),
        value=text_column("value"),
        hed=text_column("hed"),
        others=dict(sorted(others.items())),
        has_onset_column="onset_s" in known,
        notes=(*table.notes, *_trouble(read, onsets)),
    )


def _trouble(read: Mapping[str, Numbers], onsets: Sequence[float | None]) -> Iterator[str]:
    for name, column in read.items():
        said = name.removesuffix("_s")
        if column.decimal_comma:
            yield f"the comma of the {said} column is read as a decimal one"
        if column.strange:
            yield f"{rows_have(column.strange)} {'an' if said == 'onset' else 'a'} {said} that is no number"
    without = sum(onset is None for onset in onsets)
    missing = without - (read["onset_s"].strange if "onset_s" in read else 0)
    if without and without == len(onsets):
        yield "no row has an onset"
    elif missing:
        yield f"{rows_have(missing)} no onset"
