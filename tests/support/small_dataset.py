"""Small BIDS datasets of EDF recordings, to be changed between runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from small_files import edf_bytes

LABELS = ("A", "B", "C")


def write_root(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "changing", "BIDSVersion": "1.10.0"}))


def write_recording(folder: Path, subject: str, task: str = "rest", *, seed: int = 0, seconds: int = 8) -> str:
    """An EDF of three channels with channels.tsv and events.tsv; its path in the dataset."""
    place = folder / f"sub-{subject}" / "eeg"
    place.mkdir(parents=True, exist_ok=True)
    stem = f"sub-{subject}_task-{task}"
    data = np.random.default_rng([seed, sum(map(ord, subject + task))]).integers(
        -20000, 20000, size=(len(LABELS), 100 * seconds), dtype=np.int16
    )
    (place / f"{stem}_eeg.edf").write_bytes(edf_bytes(LABELS, n_records=seconds, data=data))
    (place / f"{stem}_channels.tsv").write_text("name\ttype\tunits\n" + "".join(f"{c}\tEEG\tuV\n" for c in LABELS))
    (place / f"{stem}_events.tsv").write_text(f"onset\tduration\ttrial_type\n1.5\t0.1\tgo\n{seed + 2}\t0.1\tstop\n")
    return f"sub-{subject}/eeg/{stem}_eeg.edf"
