"""What a row of the corpus is: one small input, broken or odd in one way, and exactly what must come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from reference_signal import SourceSignal
from small_files import edf_bytes, tones

Event = tuple[float | None, float | None, str | None, str | None]
"""onset_s, duration_s, trial_type, value."""


@dataclass(frozen=True)
class Place:
    """Where a row puts its files: below the dataset, in a subject of its own."""

    root: Path
    name: str
    datatype: str

    @property
    def stem(self) -> str:
        return f"sub-{self.name}_task-t"

    @property
    def folder(self) -> Path:
        return self.root / f"sub-{self.name}" / self.datatype

    def at(self, name: str) -> Path:
        """The path of a file: a name that starts with ``_`` follows the stem, ``/`` goes from the dataset's root."""
        path = self.root / name[1:] if name.startswith("/") else self.folder / (self.stem * name.startswith("_") + name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, name: str, content: bytes | str) -> Path:
        path = self.at(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A failure with this code, whose detail says this."""

    code: str
    detail: str = ""


@dataclass(frozen=True)
class Unseen:
    """No recording: it stands in none of the three lists."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A store.

    Parameters
    ----------
    signals
        What each channel group must say, by its name; labels and units are those of the store.
    units, types
        One per channel over all groups; types only where the row is about them.
    match
        ``channels_tsv_match`` without its examples; None when no channels.tsv was applied.
    events
        Every event in published order; None when the store has none.
    notes
        What ``zarrmill why`` says, ``{stem}`` standing for the recording's own.
    entry, attributes
        Fields of the index entry and of the store's root that the row is about; None for one that must not be there.
    """

    signals: Mapping[str, SourceSignal]
    units: tuple[str, ...]
    types: tuple[str, ...] | None = None
    match: tuple[int, int, int, int] | None = None
    read_error: bool = False
    events: tuple[Event, ...] | None = None
    notes: tuple[str, ...] = ()
    entry: Mapping[str, object] = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)


Expected = Failed | Unseen | Served


@dataclass(frozen=True, kw_only=True)
class Row:
    """One input.

    Parameters
    ----------
    kind
        What is odd, shared by at most six rows.
    name
        Its subject label.
    ending
        Of the recording: ``_eeg.edf``. One that starts with ``/`` is its whole path.
    also
        Paths of other recordings that the row makes.
    """

    kind: str
    name: str
    ending: str
    write: Callable[[Place], object]
    expect: Expected
    also: tuple[str, ...] = ()

    @property
    def datatype(self) -> str:
        found = self.ending.rpartition("_")[2].partition(".")[0]
        return found if found in {"meg", "ieeg", "emg"} else "eeg"

    @property
    def path(self) -> str:
        if self.ending.startswith("/"):
            return self.ending[1:]
        return f"sub-{self.name}/{self.datatype}/sub-{self.name}_task-t{self.ending}"


RATE_HZ = 100.0
SECONDS = 4


def signal(
    labels: tuple[str, ...] = ("A", "B"), *, rate_hz: float = RATE_HZ, seconds: float = SECONDS, units: str = "uV"
) -> SourceSignal:
    """Different tones of about 100 units, in steps of a tenth."""
    data = np.round(tones(len(labels), round(rate_hz * seconds), rate_hz) / 0.1)
    return SourceSignal(labels, rate_hz, data * 0.1, (units,) * len(labels))


def steps(source: SourceSignal) -> np.ndarray:
    """Its samples as whole numbers of 0.1."""
    return np.round(source.data / 0.1).astype(np.int16)


def edf(labels: tuple[str, ...] = ("A", "B"), **more: object) -> bytes:
    """The EDF of ``signal(labels)``."""
    return edf_bytes(labels, n_records=SECONDS, data=steps(signal(labels)), **more)  # type: ignore[arg-type]  # as there


def channels(*rows: str, header: str = "name\ttype\tunits") -> str:
    """A channels.tsv; of a row that is only a name, type and unit are EEG and uV."""
    return "\n".join([header, *(row if "\t" in row else f"{row}\tEEG\tuV" for row in rows)]) + "\n"


def events(*rows: str, header: str = "onset\tduration\ttrial_type") -> str:
    return "\n".join([header, *rows]) + "\n"


def plain(**more: object) -> Served:
    """The store of ``edf()``: channels A and B in uV at 100 Hz; ``more`` are what the row is about."""
    values: dict[str, object] = {"signals": {"eeg_100hz": signal()}, "units": ("uV", "uV")}
    return Served(**(values | more))  # type: ignore[arg-type]  # named by the caller


_NAMES = {
    "channels": "_channels.tsv",
    "events": "_events.tsv",
    "electrodes": "_electrodes.tsv",
    "coordsystem": "_coordsystem.json",
    "signal": "_eeg.json",
    "levels": "_events.json",
}


def beside(**files: str | bytes) -> Callable[[Place], object]:
    """Writes ``edf()`` as ``_eeg.edf`` and each sidecar beside it, by the names of ``_NAMES``."""

    def write(place: Place) -> None:
        place.put("_eeg.edf", edf())
        for kind, content in files.items():
            place.put(_NAMES[kind], content)

    return write
