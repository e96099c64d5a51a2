"""The small store of ``signal_store`` with events, to be exported."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from signal_store import DATASET, GROUP, N_SAMPLES, RATE_HZ, ZARR, put_index, put_version, write_signal_store

from contract.layout import events_key, store_key
from contract.samples import sample_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.storage.protocol import Target

__all__ = ["EVENTS", "put_events", "put_scene", "put_with_events"]

EVENTS: tuple[dict[str, Any], ...] = (
    {"onset_s": 0.05, "trial_type": "face"},
    {"onset_s": 2.0, "duration_s": 0.5, "trial_type": "house", "value": "1", "stim_file": "house/1.png"},
    {"onset_s": 2.5, "trial_type": "face", "value": "2", "stim_file": "face 1.png", "reaction/time": "0.3"},
    {"onset_s": 3.994, "trial_type": "face", "stim_file": "face 1.png"},
    {"onset_s": 11.9, "trial_type": "house", "stim_file": "house/1.png"},
    {"onset_s": 12.1, "value": "7"},
    {"onset_s": 29.4, "trial_type": "face"},
    {"onset_s": 40.0, "trial_type": "house"},
    {"trial_type": "face"},
)
"""At 100 Hz and a window of -0.2 to 0.3 s: two windows leave the signal, one onset lies behind it, one is not known."""
_TEXT = ("store_path", "subject", "session", "task", "run", "group_name", "trial_type", "value", "hed")


def put_events(
    target: Target, scratch: Path, events: Sequence[Mapping[str, Any]] = EVENTS, *, rate_hz: float = RATE_HZ
) -> None:
    """Publish an events.parquet with these events of the store, and one of another store."""
    others = sorted(
        {name for event in events for name in event} - {"onset_s", "duration_s", "trial_type", "value", "hed"}
    )
    rows = [
        {
            **event,
            "store_path": ZARR,
            "subject": "01",
            "sample_index": sample_index(event.get("onset_s"), rate_hz),
            "group_name": GROUP,
        }
        for event in events
    ]
    rows.append({"store_path": "sub-02/eeg/sub-02_eeg.zarr", "onset_s": 1.0, "sample_index": 100, "group_name": GROUP})
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {"onset_s": pa.float64(), "duration_s": pa.float32(), "sample_index": pa.int64()}
    names = ["store_path", "subject", "session", "task", "run", "onset_s", "duration_s", "sample_index", "group_name"]
    names += ["trial_type", "value", "hed", *others, "empty_column"]
    arrays = [
        pa.array([row.get(name) for row in rows], kinds.get(name, pa.string())).cast(kinds.get(name, text))
        for name in names
    ]
    file = scratch / "events.parquet"
    pq.write_table(pa.table(arrays, names=names), file, compression="zstd")
    target.put(events_key(DATASET), file.read_bytes(), content_type="application/vnd.apache.parquet")


def put_scene(target: Target, scratch: Path, *, version: int = 2) -> None:
    """Publish index, events and a version of the store."""
    put_index(target)
    put_events(target, scratch)
    put_version(target, scratch, version)


def put_with_events(
    target: Target, scratch: Path, version: int, onsets: Sequence[float], labels: Sequence[str]
) -> None:
    """Publish a version of the store that holds events itself."""
    folder = scratch / f"with-events-{version}"
    write_signal_store(folder, version)
    group = zarr.open_group(folder, mode="r+", zarr_format=3).create_group("events")
    codes = {label: number for number, label in enumerate(sorted(set(labels)), 1)}
    group.attrs.update({"label_map": {str(code): label for label, code in codes.items()}, "n_events": len(onsets)})
    for name, values, kind in (
        ("onset", onsets, "float64"),
        ("duration", [0.0] * len(onsets), "float64"),
        ("code", [codes[label] for label in labels], "int32"),
    ):
        group.create_array(name, data=np.array(values, dtype=kind))
    objects = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    target.put_store(store_key(DATASET, ZARR), folder, objects, token=f"with-events-{version}", may_write=lambda: None)


assert N_SAMPLES / RATE_HZ == 29.5
