"""What the sidecars of one recording say, read once and handed explicitly to everything that needs it.

A recording never fails for a sidecar: whatever is wrong with one is a note, or a disclosed flag.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.redact import redact
from tasks.bids.cells import filled, number, rows_have
from tasks.bids.json_sidecar import parse_json
from tasks.bids.scope import printable
from tasks.bids.tsv import parse_tsv
from tasks.events.parse import Events, parse_events
from tasks.formats.content import is_binary, is_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from tasks.bids.recording import Ambiguity, DiscoveredRecording

__all__ = ["ChannelsTable", "Electrodes", "ReadSidecars", "publishable", "read_sidecars"]

_SYSTEM_PREFIXES = ("EEG", "iEEG", "MEG", "EMG")
_COORDINATES = ("x", "y", "z")
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class ChannelsTable:
    """A channels.tsv with a name column: ``frame`` has name and, where the file has them, type and units, all text."""

    frame: pd.DataFrame
    n_rows: int


@dataclass(frozen=True, slots=True)
class Electrodes:
    """Electrode positions by label; the coordinate system and its units are "" where coordsystem.json does not say."""

    positions: Mapping[str, tuple[float, float, float]]
    system: str
    units: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSidecars:
    """Everything that sidecars contribute to a store.

    Parameters
    ----------
    channels
        None when no channels.tsv applies or it cannot be used.
    channels_unreadable
        A channels.tsv applies but could not be used: published as ``channels_tsv_read_error``.
    events
        None when no events.tsv applies, or it cannot be read, is no text, or has no onset column.
    events_source
        Where the events are from when that is no events.tsv: ``recording``, the file itself.
    value_descriptions
        Meaning of event values, from the ``Levels`` of every events.json that applies; None without any.
    notes
        One for every trouble with a sidecar: its path and the reason.
    """

    channels: ChannelsTable | None = None
    channels_unreadable: bool = False
    events: Events | None = None
    events_source: str | None = None
    value_descriptions: Mapping[str, str] | None = None
    power_line_frequency_hz: float | None = None
    electrodes: Electrodes | None = None
    notes: tuple[str, ...] = ()


def read_sidecars(recording: DiscoveredRecording, source: Path) -> ReadSidecars:
    """Read every sidecar of ``recording`` below ``source``."""
    applies = recording.sidecars
    notes = [_tie(tie) for tie in applies.ties]
    channels = _read_table(source, applies.channels, notes)
    events = _read_table(source, applies.events, notes)
    table = None if channels is None else _channels(applies.channels or "", channels, notes)
    return ReadSidecars(
        channels=table,
        channels_unreadable=applies.channels is not None and table is None,
        events=None if events is None else _events(applies.events or "", events, notes),
        value_descriptions=_levels([_json(source, path, notes) for path in applies.events_json]),
        power_line_frequency_hz=_power_line(source, applies.signal_json, notes),
        electrodes=_electrodes(recording, source, notes),
        notes=tuple(public for note in notes if (public := publishable(note))),
    )


def publishable(note: str) -> str | None:
    """The note as it may be read by anyone: one line, no local path, no secret, at most 300 characters."""
    return redact(printable(note))


def _tie(tie: Ambiguity) -> str:
    others = ", ".join(tie.others[:_EXAMPLES])
    if tie.chosen is None:
        return f"none of these is used, for all apply equally well: {others}"
    return f"{tie.chosen} is used, though as well apply {others}"


def _read(source: Path, path: str | None, notes: list[str]) -> bytes | None:
    if path is None:
        return None
    try:
        data = (source / path).read_bytes()
    except FileNotFoundError:
        notes.append(f"{path} is not used, for its content is not here")
        return None
    except OSError as error:
        notes.append(f"{path} could not be read: {error.strerror or type(error).__name__}")
        return None
    if is_pointer(data):
        notes.append(f"{path} holds a pointer, not its content")
        return None
    return data


def _read_table(source: Path, path: str | None, notes: list[str]) -> bytes | None:
    """As ``_read``, but None also for what is no text."""
    data = _read(source, path, notes)
    if data is None:
        return None
    if not data.strip():
        notes.append(f"{path} is empty and is not used")
        return None
    if is_binary(data):
        notes.append(f"{path} is binary, no text, and is not used")
        return None
    return data


def _events(path: str, data: bytes, notes: list[str]) -> Events | None:
    events = parse_events(data)
    if not events.has_onset_column:
        notes.append(f"{path} has no onset column and is not used")
        return None
    notes.extend(f"{path}: {note}" for note in events.notes)
    return events


def _json(source: Path, path: str, notes: list[str]) -> Mapping[str, Any]:
    data = _read(source, path, notes)
    if data is None:
        return {}
    parsed = parse_json(data)
    notes.extend(f"{path}: {note}" for note in parsed.notes)
    return parsed.values


def _channels(path: str, data: bytes, notes: list[str]) -> ChannelsTable | None:
    import pandas as pd

    table = parse_tsv(data)
    notes.extend(f"{path}: {note}" for note in table.notes)
    names = table.column("name")
    if names is None:
        notes.append(f"{path} has no name column and is not used")
        return None
    columns: dict[str, Sequence[str]] = {"name": names}
    for known in ("type", "units"):
        cells = table.column(known)
        if cells is not None:
            columns[known] = cells
    frame = pd.DataFrame({name: pd.Series(list(cells), dtype=object) for name, cells in columns.items()})
    frame = frame[frame["name"] != ""].reset_index(drop=True)
    notes.extend(f"{path}{said}" for said in _doubts(frame))
    return ChannelsTable(frame, len(table.rows))


def _doubts(frame: pd.DataFrame) -> Iterator[str]:
    """What of a table of channels cannot be taken as it stands."""
    from biosigio.core.modality import validate_channel_type

    if frame.empty:
        yield " names no channel"
    if "units" not in frame:
        yield " has no units column"
    if repeated := sorted(set(frame["name"][frame["name"].duplicated()])):
        yield f": the last row counts of repeated names ({_some(repeated)})"
    unknown: list[str] = []
    for text in filter(None, map(filled, frame.get("type", ()))):
        try:
            validate_channel_type(text)
        except ValueError:
            unknown.append(text)
    if unknown:
        yield f": types that are not known are left out ({_some(sorted(set(unknown)))})"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _EXAMPLES} more" if len(names) > _EXAMPLES else ""
    return ", ".join(names[:_EXAMPLES]) + more


def _levels(sidecars: list[Mapping[str, Any]]) -> Mapping[str, str] | None:
    """All columns' levels in one map, the sidecar nearest to the recording last and so winning."""
    found: dict[str, str] = {}
    declared = False
    for sidecar in sidecars:
        for column in sidecar.values():
            levels = column.get("Levels") if isinstance(column, dict) else None
            if not isinstance(levels, dict):
                continue
            declared = True
            for code, meaning in levels.items():
                text = meaning.get("Description") if isinstance(meaning, dict) else meaning
                if isinstance(text, str) and text.strip():
                    found[str(code)] = text
    return found if declared else None


def _power_line(source: Path, paths: Sequence[str], notes: list[str]) -> float | None:
    """The last number above zero; ``"n/a"`` is no declaration, anything else that is none is noted."""
    frequency = None
    for path in paths:
        value = _json(source, path, notes).get("PowerLineFrequency")
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            frequency = float(value)
        elif value is not None and not (isinstance(value, str) and filled(value) is None):
            notes.append(f"{path}: its PowerLineFrequency is no frequency and is not used")
    return frequency


def _electrodes(recording: DiscoveredRecording, source: Path, notes: list[str]) -> Electrodes | None:
    path = recording.sidecars.electrodes
    data = _read_table(source, path, notes)
    if data is None or path is None:
        return None
    table = parse_tsv(data)
    names = table.column("name")
    axes = [table.column(axis) for axis in _COORDINATES]
    if names is None or any(axis is None for axis in axes):
        notes.append(f"{path} has no name, x, y and z columns and is not used")
        return None
    positions: dict[str, tuple[float, float, float]] = {}
    odd = 0
    for name, *cells in zip(names, *(axis or () for axis in axes), strict=True):
        point = _point(cells)
        if name and point is not None:
            positions.setdefault(name, point)
        odd += point is None and any(filled(cell) is not None and number(cell) is None for cell in cells)
    notes.extend(f"{path}: {note}" for note in table.notes)
    if odd:
        notes.append(f"{path}: {rows_have(odd)} a coordinate that is no number")
    if not positions:
        return None
    described = _json(source, recording.sidecars.coordsystem, notes) if recording.sidecars.coordsystem else {}
    own = next((p for p in _SYSTEM_PREFIXES if p.lower() == recording.modality), None)
    order = [p for p in (own, *_SYSTEM_PREFIXES) if p is not None]
    return Electrodes(
        positions, _first_text(described, order, "CoordinateSystem"), _first_text(described, order, "CoordinateUnits")
    )


def _point(cells: Sequence[str]) -> tuple[float, float, float] | None:
    """Three finite numbers, else None (n/a)."""
    x, y, z = map(number, cells)
    return None if x is None or y is None or z is None else (x, y, z)


def _first_text(values: Mapping[str, Any], prefixes: Sequence[str], key: str) -> str:
    for prefix in prefixes:
        value = values.get(prefix + key)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
