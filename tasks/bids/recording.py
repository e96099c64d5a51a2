"""What discovery knows of one recording: a frozen value that every other room reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract.codes import FailureCode

__all__ = ["DiscoveredRecording", "Sidecars"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecars:
    """The sidecars that apply to one recording by BIDS inheritance, as paths in the dataset.

    Single paths are the winner; tuples are ordered from the root of the dataset to the recording, later wins.
    """

    channels: str | None = None
    events: str | None = None
    electrodes: str | None = None
    coordsystem: str | None = None
    signal_json: tuple[str, ...] = ()
    events_json: tuple[str, ...] = ()
    calibration: str | None = None
    crosstalk: str | None = None

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
        Name of the reader in ``tasks.formats``: edf, bdf, brainvision, eeglab, fif, ctf, kit, bti, mef3.
    modality
        From the BIDS suffix: eeg, meg, ieeg, emg; None for any other suffix.
    entities
        BIDS entities of the name, in order: ``{"sub": "01", "task": "rest"}``.
    members
        Every file that holds the recording, primary first: splits in order, all files of a folder recording.
    companions
        Files read beside it: .fdt, .eeg, .vmrk of the same stem.
    split_members
        All splits, head included, for a split FIF; empty otherwise.
    size_bytes
        Bytes of members and companions.
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
    failure: tuple[FailureCode, str] | None = None

    def inputs(self) -> tuple[str, ...]:
        """Every path whose content decides the store: members, companions and sidecars, sorted, each once."""
        return tuple(sorted({*self.members, *self.companions, *self.sidecars.paths()}))
