"""What discovery knows of one recording: a frozen value that every other room reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract.codes import FailureCode
    from tasks.sources.protocol import Problem

__all__ = ["Ambiguity", "DiscoveredRecording", "Discovery", "Sidecars"]


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Several sidecars apply equally well to a recording; ``chosen`` is used, none of them when it is None."""

    recording: str
    chosen: str | None
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecars:
    """The sidecars that apply to one recording by BIDS inheritance, as paths in the dataset.

    Single paths are the winner; tuples are ordered from the root of the dataset to the recording, later wins. ``ties`` are
    where the choice was not clear from the names.
    """

    channels: str | None = None
    events: str | None = None
    electrodes: str | None = None
    coordsystem: str | None = None
    signal_json: tuple[str, ...] = ()
    events_json: tuple[str, ...] = ()
    calibration: str | None = None
    crosstalk: str | None = None
    ties: tuple[Ambiguity, ...] = ()

    def paths(self) -> tuple[str, ...]:
        """Every path, once, sorted."""
        single = (self.channels, self.events, self.electrodes, self.coordsystem, self.calibration, self.crosstalk)
        return tuple(sorted({p for p in single if p} | set(self.signal_json) | set(self.events_json)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredRecording:
    """One raw recording of a dataset.

    Parameters
    ----------
    path
        BIDS-relative path, ``/`` between segments; the index's ``path``. For split FIF the lowest split present.
    zarr
        Store path relative to the dataset's contract base; the index's ``zarr``.
    format
        Name of the reader in ``tasks.formats``: edf, bdf, brainvision, eeglab, fif, ctf, kit, bti, mef3, vneurotk; for a recording
        without a reader a name of ``tasks.bids.other_formats``, and then there is a ``failure``.
    modality
        From the BIDS suffix: eeg, meg, ieeg, emg; None for any other suffix.
    entities
        BIDS entities of the name, in order: ``{"sub": "01", "task": "rest"}``.
    members
        Every file that holds the recording, primary first: splits in order, all files of a folder recording.
    companions
        Files read beside it: .fdt, .eeg, .vmrk, .dat of the same stem.
    split_members
        All splits, head included, for a split FIF; empty otherwise.
    size_bytes
        Bytes of members and companions, as far as known.
    size_known
        False when the size of some member or companion is not known; then ``size_bytes`` is too small.
    failure
        A verdict that needs no attempt (store_path_collision), with its detail.
    """

    path: str
    zarr: str
    format: str
    modality: str | None
    entities: Mapping[str, str]
    members: tuple[str, ...]
    companions: tuple[str, ...] = ()
    split_members: tuple[str, ...] = ()
    sidecars: Sidecars = field(default_factory=Sidecars)
    size_bytes: int = 0
    size_known: bool = True
    failure: tuple[FailureCode, str] | None = None

    def inputs(self) -> tuple[str, ...]:
        """Every path whose content decides the store: members, companions and sidecars, sorted, each once."""
        return tuple(sorted({*self.members, *self.companions, *self.sidecars.paths()}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What a dataset holds.

    Parameters
    ----------
    recordings
        Every raw recording, sorted by path.
    problems
        What was left out and is not counted, with the reason.
    ambiguities
        Where the choice of a sidecar was not clear from the names.
    dataset_files
        Files at the top that facts of the dataset are read from.
    lookups
        Look-ups in the sidecar index; grows with recordings + files, never with their product.
    """

    recordings: tuple[DiscoveredRecording, ...]
    problems: tuple[Problem, ...] = ()
    ambiguities: tuple[Ambiguity, ...] = ()
    dataset_files: tuple[str, ...] = ()
    lookups: int = 0

    def matters(self) -> frozenset[str]:
        """Every path whose content decides something that is published."""
        return frozenset(self.dataset_files).union(*(recording.inputs() for recording in self.recordings))
