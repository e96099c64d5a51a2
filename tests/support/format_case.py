"""What a case of a format is: a file to put, and the signal that a reader of another make finds in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reference_signal import SourceSignal, read_edf, read_mne

from tasks.formats.registry import endings

Put = Callable[[Path, Path], None]
Read = Callable[[Path, float], SourceSignal]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One recording.

    ``bids`` is its name; ``source`` where it comes from, for people; ``put`` writes it (and what lies beside it) at a path,
    given the folder of real recordings; ``read`` gives its channels of one rate, from that path.
    """

    name: str
    format: str
    modality: str
    bids: str
    what: str
    source: str
    reader: str
    put: Put
    read: Read


def copied(*origins: str) -> Put:
    """Real files; those beside the recording keep its stem and their ending."""

    def put(primary: Path, recordings: Path) -> None:
        for origin in origins:
            source = recordings / origin
            if source.is_dir():
                shutil.copytree(source, primary)
            else:
                shutil.copyfile(source, primary.with_suffix(source.suffix) if origin != origins[0] else primary)

    return put


def by_edf(primary: Path, rate_hz: float) -> SourceSignal:
    return read_edf(primary, rate_hz)


def by_mne(primary: Path, _rate_hz: float) -> SourceSignal:
    return read_mne(primary)


def real(name: str, format_name: str, modality: str, ending: str, what: str, *origins: str) -> Case:
    with_pyedflib = format_name in {"edf", "bdf"}
    return Case(
        name=name,
        format=format_name,
        modality=modality,
        bids=f"sub-01_task-a_{modality}{ending}",
        what=what,
        source=f"`{origins[0]}`",
        reader="pyEDFlib" if with_pyedflib else "MNE",
        put=copied(*origins),
        read=by_edf if with_pyedflib else by_mne,
    )


def made(name: str, ending: str, what: str, put: Put, signal: SourceSignal) -> Case:
    format_name = endings().files.get(ending) or endings().folders[ending]
    modality = {"fif": "meg", "mef3": "ieeg"}.get(format_name, "eeg")
    return Case(
        name=name,
        format=format_name,
        modality=modality,
        bids=f"sub-01_task-a_{modality}{ending}",
        what=what,
        source="written by the test",
        reader="the numbers written",
        put=put,
        read=lambda _path, _rate_hz: signal,
    )
