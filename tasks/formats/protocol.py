"""What a recording format must offer. A format is one file behind this Protocol, found through an entry point."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tasks.bids.tsv import Table

__all__ = [
    "ENTRY_POINT_GROUP",
    "Header",
    "HoldsEvents",
    "NativeGroup",
    "NeedsSuffix",
    "ReadsStarts",
    "RecordingFormat",
    "Route",
]

ENTRY_POINT_GROUP = "zarrmill.formats"


class Route(StrEnum):
    """How a recording goes through biosigIO. Fixed by format and header, never by the memory free at the moment."""

    IN_MEMORY = "in_memory"
    STREAMED = "streamed"


@dataclass(frozen=True, slots=True)
class NativeGroup:
    """The channels of one recording that share a rate: their rate, their rows in file order, samples of each."""

    rate_hz: float
    rows: tuple[int, ...]
    n_samples: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a cheap look at a recording's own header says; the independent witness of the gate.

    Parameters
    ----------
    n_channels
        Signal channels, annotation channels left out; None when the header does not tell.
    n_samples
        Samples of the longest channel; None when unknown.
    rate_hz
        Highest sampling rate; None when unknown.
    rates_hz
        Distinct rates, ascending; more than one for mixed-rate files.
    n_trials
        More than one for epoched files.
    tolerant
        Whether the file needs a tolerant read (discontinuous, unfinalised, equal physical limits).
    whole
        Whether the streaming route's reader cannot take the file, so that it is held in memory.
    exact_samples
        Whether ``n_samples`` is what a reader must find; False where it is only an upper bound.
    channel_rates_hz, channel_samples, channel_labels, prefilters
        Per signal channel in file order, where the format states them for each channel; empty otherwise. Labels are the
        file's own, so they can repeat. A rate is samples per record over the record's seconds, never rounded.
    sample_bytes
        Bytes of one sample once the format's reader holds it (8 where only double precision will do).
    kept_sample_bytes
        Bytes of scratch that one sample takes while the recording is streamed; 0 where the file itself is read.
    block_samples
        Samples that the format's reader must hold at once, whatever the window; 0 when it can seek freely.
    maxshield
        Whether the recording was made with internal active shielding and not corrected.
    respelled
        Labels that ``read_target`` had to spell otherwise for the reader -> the file's own.
    copied_bytes
        Scratch that ``read_target`` fills with a readable copy.
    notes
        What is true of the recording and no failure, in sentences; disclosed with the conversion.
    """

    n_channels: int | None = None
    n_samples: int | None = None
    rate_hz: float | None = None
    rates_hz: tuple[float, ...] = ()
    n_trials: int = 1
    tolerant: bool = False
    whole: bool = False
    exact_samples: bool = True
    channel_rates_hz: tuple[float, ...] = ()
    channel_samples: tuple[int, ...] = ()
    channel_labels: tuple[str, ...] = ()
    prefilters: tuple[str, ...] = ()
    sample_bytes: int = 4
    kept_sample_bytes: int = 0
    block_samples: int = 0
    maxshield: bool = False
    respelled: Mapping[str, str] = field(default_factory=dict)
    copied_bytes: int = 0
    notes: tuple[str, ...] = ()

    def native_groups(self) -> tuple[NativeGroup, ...]:
        """Channels by their own rate, the fastest first; empty when channels or rate are unknown."""
        if not self.channel_rates_hz:
            if self.n_channels is None or self.rate_hz is None:
                return ()
            return (NativeGroup(self.rate_hz, tuple(range(self.n_channels)), self.n_samples),)
        rows: dict[float, list[int]] = {}
        for row, rate_hz in enumerate(self.channel_rates_hz):
            rows.setdefault(rate_hz, []).append(row)
        return tuple(
            NativeGroup(rate_hz, tuple(own), self.channel_samples[own[0]] if self.channel_samples else None)
            for rate_hz, own in sorted(rows.items(), reverse=True)
        )


class RecordingFormat(Protocol):
    """One format."""

    name: str
    """As in ``DiscoveredRecording.format``."""

    extensions: tuple[str, ...]
    """Endings (lower case, matched in any case) of the file that names a recording; empty for folder recordings."""

    folder_extensions: tuple[str, ...]
    """Endings of a folder that is one recording. A 4D/BTi folder has none: it is known by what lies in it."""

    companions: frozenset[str]
    """Endings of files that are read beside a primary of the same stem and never are recordings."""

    precedence: int
    """Of two recordings that claim one store, the one whose format has the lower number is served."""

    source_format: str
    """biosigIO's name of its importer, the root attribute ``source_format`` of every store of this format."""

    def header(self, primary: Path) -> Header:
        """Read the header, bounded in time and memory.

        Raises
        ------
        RecordingFailed
            The header itself shows that the recording cannot be served (epoched, empty, truncated).
        NotNow
            The machine could not read it (permissions, I/O errors).
        """
        ...

    def route(self, header: Header) -> Route:
        """The fixed route of a recording with this header."""
        ...

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """Peak memory of the child above its memory at birth, in bytes (formula's floor)."""
        ...

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:
        """The path biosigIO is given: the recording itself, or what was put into ``work``, an empty folder, in its place.

        The source is never changed. Where its reader wants another name, ``work`` gets links; where it refuses the
        bytes of a sound recording, a copy that says the same.
        """
        ...


@runtime_checkable
class ReadsStarts(Protocol):
    """A format whose ``header`` needs no more than the sizes of a recording's files and the first bytes of some.

    Such a header can be had from a bucket by a request or two.
    """

    def start_bytes(self, path: str, size_bytes: int, start: bytes) -> int | None:
        """How many of its first bytes ``header`` must find in a file of the recording.

        Asked again with what came, until that is enough; the rest of the file may then be zeros.

        Parameters
        ----------
        path
            A member or a companion.
        start
            Its first bytes, as far as they are known; empty at first.

        Returns
        -------
        0 where only the size counts; None where too much would have to be read.
        """
        ...


@runtime_checkable
class NeedsSuffix(Protocol):
    """A format some of whose endings mean many things.

    A file with such an ending is a recording only where its name says so (``_eeg.h5``), and beside a recording of the same
    stem it is a part of that.
    """

    vague_extensions: frozenset[str]
    """Of ``extensions``."""


@runtime_checkable
class HoldsEvents(Protocol):
    """A format whose files can hold events, which count where no events.tsv applies."""

    def events(self, primary: Path) -> Table:
        """The file's own events in the columns of an events.tsv; without any column when it has none that can be used.

        Its notes say what is wrong with them; that never fails a recording.
        """
        ...
