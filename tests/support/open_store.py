"""Opens a store with zarr and gives plain arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import zarr
from reference_signal import ServedSignal


def served(store: Path, group: str) -> ServedSignal:
    node = zarr.open_group(store, mode="r")[group]
    level0 = node["0"]
    scale = np.asarray(level0.attrs["scale"], dtype=float)
    offset = np.asarray(level0.attrs["offset"], dtype=float)
    channels = node.attrs["channels"]
    return ServedSignal(
        labels=tuple(c["label"] for c in channels),
        units=tuple(c["unit"] for c in channels),
        types=tuple(c["channel_type"] for c in channels),
        scale=scale,
        rate_hz=float(node.attrs["rate"]),
        source_rate_hz=float(level0.attrs["source_rate_hz"]),
        physical=level0[:] * scale[:, None] + offset[:, None],
    )
