"""The one parse of an events.tsv: the store's events group, the index and events.parquet all say what it says."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.events import event_order, passthrough_names, source_columns, trial_type_counts
from tasks.bids.tsv import parse_tsv

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Events", "parse_events"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
    """The events in the bytes of an events.tsv; whatever they hold, nothing is raised.

    Known columns are matched in any case and the first one wins; a later one of the same name is another column.
    """
    table = parse_tsv(data)
    known = source_columns(table.headers)
    texts = [tuple(_filled(row[position]) for row in table.rows) for position in range(len(table.headers))]
    blank: tuple[None, ...] = (None,) * len(table.rows)
    onsets = _numbers(texts[known["onset_s"]]) if "onset_s" in known else blank
    durations = _numbers(texts[known["duration_s"]]) if "duration_s" in known else blank
    order = event_order(onsets)

    def text_column(name: str) -> tuple[str | None, ...] | None:
        return tuple(texts[known[name]][i] for i in order) if name in known else None

    others = {
        name: tuple(texts[position][i] for i in order) for position, name in passthrough_names(table.headers).items()
    }
    notes = table.notes
    if "onset_s" in known:
        no_number = sum(
            onset is None and text is not None for onset, text in zip(onsets, texts[known["onset_s"]], strict=True)
        )
        if no_number:
            notes = (*notes, f"{no_number} rows have an onset that is no number")
    if order and all(onset is None for onset in onsets):
        notes = (*notes, "no row has an onset")
    return Events(
        onset_s=tuple(onsets[i] for i in order),
        duration_s=tuple(durations[i] for i in order),
        trial_type=text_column("trial_type"),
        value=text_column("value"),
        hed=text_column("hed"),
        others=dict(sorted(others.items())),
        has_onset_column="onset_s" in known,
        notes=notes,
    )


def _filled(cell: str) -> str | None:
    text = cell.strip()
    return None if not text or text.lower() == "n/a" else text


def _numbers(cells: tuple[str | None, ...]) -> tuple[float | None, ...]:
    return tuple(_number(cell) for cell in cells)


def _number(text: str | None) -> float | None:
    """A finite decimal number; ``1,5``, ``1_000``, ``nan`` and ``inf`` are none."""
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if math.isfinite(value) else None
