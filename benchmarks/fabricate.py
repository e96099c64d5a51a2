"""Recordings made up for benchmarks: seeded noise in a BIDS tree, written without the code under measurement."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

__all__ = ["dataset", "edf_bytes"]


def edf_bytes(n_channels: int, seconds: int, rate_hz: int, seed: int = 0) -> bytes:
    """An EDF file of wideband noise: one record a second."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(-2000, 2000, size=(seconds, n_channels, rate_hz), dtype=np.int16)
    fields = (
        (16, [f"E{number + 1}" for number in range(n_channels)]),
        (80, [""] * n_channels),
        (8, ["uV"] * n_channels),
        (8, ["-3276.8"] * n_channels),
        (8, ["3276.7"] * n_channels),
        (8, ["-32768"] * n_channels),
        (8, ["32767"] * n_channels),
        (80, [""] * n_channels),
        (8, [str(rate_hz)] * n_channels),
        (32, [""] * n_channels),
    )
    header = f"{'0':8}{'X':80}{'X':80}{'01.01.26':8}{'00.00.00':8}{256 * (n_channels + 1):<8}{'':44}{seconds:<8}{'1':8}{n_channels:<4}"
    per_signal = "".join(value.ljust(width) for width, values in fields for value in values)
    return (header + per_signal).encode("ascii") + samples.tobytes()


def dataset(folder: Path, count: int, *, n_channels: int, seconds: int, rate_hz: int) -> list[Path]:
    """A BIDS dataset of ``count`` EDF recordings with channels.tsv and events.tsv each; the paths of the recordings.

    The signals repeat every 16 recordings, which no step of a conversion can notice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "benchmark", "BIDSVersion": "1.9.0"}))
    kinds = [edf_bytes(n_channels, seconds, rate_hz, seed) for seed in range(min(count, 16))]
    channels = "name\ttype\tunits\n" + "".join(f"E{number + 1}\tEEG\tuV\n" for number in range(n_channels))
    events = "onset\tduration\ttrial_type\n" + "".join(
        f"{at + 0.5}\t0.1\t{'go' if at % 2 else 'stop'}\n" for at in range(seconds)
    )
    paths = []
    for number in range(count):
        stem = folder / f"sub-{number:05}" / "eeg" / f"sub-{number:05}_task-rest"
        stem.parent.mkdir(parents=True)
        path = stem.with_name(stem.name + "_eeg.edf")
        path.write_bytes(kinds[number % len(kinds)])
        stem.with_name(stem.name + "_eeg.json").write_text('{"TaskName": "rest", "PowerLineFrequency": 50}')
        stem.with_name(stem.name + "_channels.tsv").write_text(channels)
        stem.with_name(stem.name + "_events.tsv").write_text(events)
        paths.append(path)
    return paths
