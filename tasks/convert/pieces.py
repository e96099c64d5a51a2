"""What biosigIO is given, and the single groups that it writes before they become one store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract.layout import CHUNK_SECONDS, SHARD_SECONDS
from contract.rates import resampling_ratio, served_rate
from tasks.formats.memory import HELD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from pathlib import Path

    import pandas as pd

    from tasks.convert.documents import Documents
    from tasks.convert.loss import ChannelLoss
    from tasks.formats.protocol import Header, Route
    from tasks.formats.windows import WindowReader

__all__ = ["EngineInput", "Part", "Piece", "Rates", "WrittenGroup"]

_EDF_ENDINGS = frozenset({".edf", ".bdf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInput:
    """What biosigIO is given.

    Parameters
    ----------
    target
        The file or folder to read.
    header
        What the file's own header says; its rates are truer than the readers', which round.
    channels, events
        Parsed sidecars; without an events.tsv an empty frame, so that markers inside the file are never used instead.
    modality
        From the BIDS suffix, put on every channel so that a reference or trigger lands in the recording's one group;
        None leaves each channel's own.
    scratch
        An existing folder for the groups before they are one store, and for mapped files.
    held_bytes
        Samples in double precision, or codes of a group, up to this size stay in memory; more are mapped files in scratch.
    windows
        Opens the recording where biosigIO has no importer for it; None where it has.
    """

    target: Path
    source_format: str
    route: Route
    header: Header
    modality: str | None
    channels: pd.DataFrame | None
    events: pd.DataFrame
    scratch: Path
    windows: Callable[[Path], WindowReader] | None = None
    held_bytes: int = HELD_BYTES

    @property
    def is_edf(self) -> bool:
        """Whether the file is one that can hold several rates."""
        return self.target.suffix.lower() in _EDF_ENDINGS

    def rates(self, modality: str, rows: tuple[int, ...], read_hz: float) -> Rates:
        """The rates of a group of these rows, of which the reader says that they are at ``read_hz``."""
        own = self.header.channel_rates_hz
        told = own[rows[0]] if rows and rows[-1] < len(own) else self.header.rate_hz
        same = told is not None and math.isclose(told, read_hz, rel_tol=1e-6)
        return Rates(told if same and told is not None else read_hz, modality)


@dataclass(frozen=True, slots=True)
class Part:
    """A file of one rate, and which of the recording's channels it holds; None when the header told no number."""

    path: Path
    rows: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Rates:
    """Native and served rate of one group, and how biosigIO is told of them.

    biosigIO knows whole rates only. So it is given the two terms of the ratio as if they were the rates in Hz, and the
    geometry of the chunks in their seconds; the true rates are written over what it declares.
    """

    native_hz: float
    modality: str

    @property
    def ratio(self) -> Fraction:
        """Served samples per sample of the source."""
        return resampling_ratio(self.native_hz, self.modality)

    @property
    def served_hz(self) -> float:
        """The true served rate."""
        return served_rate(self.native_hz, self.modality)

    def options(self) -> dict[str, Any]:
        """Keywords for biosigIO's writers."""
        chunk_s = max(1, round(CHUNK_SECONDS * self.served_hz)) / self.ratio.numerator
        return {
            "modality_rates": {self.modality.upper(): self.ratio.numerator},
            "chunk_seconds": chunk_s,
            "shard_seconds": SHARD_SECONDS / CHUNK_SECONDS * chunk_s,
            "exclude_subject_info": True,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One group, written by biosigIO as a store of its own.

    Parameters
    ----------
    store, documents
        The folder of its chunks, and the documents that are not written yet.
    rows
        Its channels' places in the file, ascending.
    units
        biosigIO's account of the channels.tsv, over all channels of the part; None without one.
    renamed
        Labels that were changed because the file repeats them: new label to the file's.
    """

    store: Path
    documents: Documents
    part: Part
    rates: Rates
    rows: tuple[int, ...]
    losses: tuple[ChannelLoss, ...]
    units: Mapping[str, Any] | None
    renamed: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """A channel group of a finished store: its name, its channels' places in the file, and what quantising cost them."""

    name: str
    rows: tuple[int, ...]
    losses: tuple[ChannelLoss, ...]
