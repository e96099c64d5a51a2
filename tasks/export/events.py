"""Events of a recording as trials are made of them: the published rows, or those of its store where there are none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.errors import Refused
from contract.events import FIXED_COLUMNS
from tasks.read.events import MOST_ROWS, read_events
from tasks.read.store_events import read_store_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract.reading import ReadEntry, ReadGroup
    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["NO_WORD", "ExportEvents", "events_of", "meta_columns", "of_trial_types"]

NO_WORD = "n/a"
_META = ("onset_s", "duration_s", "sample_index", "trial_type", "value", "hed")
_TYPES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEvents:
    """Events of one recording at one channel group, in their published order.

    Parameters
    ----------
    rows
        Cells by the names of events.parquet.
    source
        ``events.parquet``, whose sample indices are taken as they stand, or ``store``, whose onsets they are computed from.
    """

    rows: tuple[dict[str, Any], ...]
    source: str
    notes: tuple[str, ...] = ()

    @property
    def onsets(self) -> list[int | None]:
        """The sample index of each."""
        return [row.get("sample_index") for row in self.rows]

    @property
    def words(self) -> list[str]:
        """What each is called: its trial type, else its value, else ``n/a``."""
        return [str(row.get("trial_type") or row.get("value") or NO_WORD) for row in self.rows]


def events_of(
    place: Place, dataset_id: str, entry: ReadEntry, group: ReadGroup, reading: StoreReading, *, rate_hz: float
) -> ExportEvents:
    """Every event of a recording at a group of the store that is being read.

    While a run replaces a dataset, stores come before the events file. So the published rows are taken when they tell the same
    onsets as the store, at the store's rate, and else the store's own are, which a note says.

    Raises
    ------
    Refused
        There are more than one question may read.
    StorageError
        They cannot be read now.
    """
    found = read_events(place, dataset_id, entry.zarr, group=group.name, limit=MOST_ROWS)
    rows = found.rows if found is not None else []
    if rows and group.rate == rate_hz and _same_onsets(rows, reading):
        return ExportEvents(rows=tuple(rows), source="events.parquet")
    at_rate = group.model_copy(update={"rate": rate_hz})
    own, more = read_store_events(place, dataset_id, entry, at_rate, limit=MOST_ROWS, offset=0)
    if more:
        raise Refused(f"recording: {entry.path} has more than {MOST_ROWS} events, more than one file may hold.")
    notes = ("events.parquet is not of the edition of the store; trials are taken from the store's own events.",)
    return ExportEvents(rows=tuple(own), source="store", notes=notes if rows else ())


def _same_onsets(rows: Sequence[dict[str, Any]], reading: StoreReading) -> bool:
    """Whether the store tells these onsets too; a store without events of its own contradicts nothing."""
    if not reading.has("events"):
        return True
    own = np.asarray(reading.array("events/onset")[:], dtype=np.float64)
    told = np.array([row["onset_s"] for row in rows if row.get("onset_s") is not None], dtype=np.float64)
    return np.array_equal(np.sort(own[np.isfinite(own)]), np.sort(told))


def of_trial_types(events: ExportEvents, asked: Sequence[str], *, recording: str) -> ExportEvents:
    """The events of these trial types; all of them when none is named.

    Raises
    ------
    Refused
        The recording has no event, or none of a type that is named.
    """
    if not events.rows:
        raise Refused(
            f"--window: {recording} has no events; leave --window and --trial-type out for the part as one window."
        )
    words = events.words
    unknown = [name for name in asked if name not in words]
    if unknown:
        there = sorted(set(words))
        more = f" and {len(there) - _TYPES_SHOWN} more" if len(there) > _TYPES_SHOWN else ""
        raise Refused(
            f"--trial-type: {recording} has no {unknown[0][:80]!r}; it has "
            f"{', '.join(repr(word[:80]) for word in there[:_TYPES_SHOWN])}{more}."
        )
    kept = [row for row, word in zip(events.rows, words, strict=True) if not asked or word in asked]
    return replace(events, rows=tuple(kept))


def meta_columns(events: ExportEvents) -> list[str]:
    """Columns of the trials' table: the fixed ones that are no entity, then every other that any event fills, by name."""
    others = {name for row in events.rows for name, value in row.items() if value is not None} - set(FIXED_COLUMNS)
    return [*_META, *sorted(others)]
