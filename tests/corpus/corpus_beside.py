"""What rows about sidecars share: a sound EDF, and the names of what lies beside it."""

from __future__ import annotations

from collections.abc import Callable

from corpus_row import Event, Place, Row, Served, channels

AB = channels("A", "B")
FOUR = (4, 0, 0, 0)
BOTH = (2, 0, 0, 0)
GO: tuple[Event, ...] = ((0.5, 0.1, "go", None), (2.0, 0.1, "stop", None))
GO_TSV = "onset\tduration\ttrial_type\n0.5\t0.1\tgo\n2.0\t0.1\tstop\n"
EVENTS = "sub-{name}/eeg/{stem}_events.tsv"
CHANNELS = "sub-{name}/eeg/{stem}_channels.tsv"
ELECTRODES = "sub-{name}/eeg/{stem}_electrodes.tsv"
TIED = "sub-inhtie/eeg/sub-inhtie"
EEG_JSON = "sub-{name}/eeg/{stem}_eeg.json"


def row(kind: str, name: str, write: Callable[[Place], object], expect: Served) -> Row:
    return Row(kind=kind, name=name, ending="_eeg.edf", write=write, expect=expect)
