"""What the viewer must draw of a store, worked out with numpy from what zarr-python reads; and a store that is long and cheap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

LONG_S, RATE_HZ, CHANNELS = 2400, 250.0, 129


@dataclass(frozen=True)
class Drawn:
    """What the plot says of a channel (``Plot.reading``)."""

    told: dict[str, Any]

    @property
    def level(self) -> int:
        return int(self.told["level"])

    def check(self, store: Path, row: int) -> None:
        """Compare it with the store; the values are equal, not nearly so."""
        group = zarr.open_group(store, mode="r")[self.told["group"]]
        scale, offset = (np.asarray(group["0"].attrs[name])[row] for name in ("scale", "offset"))
        if self.level:
            least, most = group[f"view/{self.level}"][:, row]
            assert self.told["factor"] == group[f"view/{self.level}"].attrs["downsample_factor"]
        else:
            least = most = group["0"][row]
        start = self.told["startS"] * group.attrs["rate"] / self.told["factor"]
        pixels = len(self.told["lo"])
        per_pixel = self.told["spanS"] * group.attrs["rate"] / self.told["factor"] / pixels
        if self.level or per_pixel >= 1:
            lo, hi = envelope(least, most, start, per_pixel, pixels)
            np.testing.assert_array_equal(numbers(self.told["lo"]), lo * scale + offset)
            np.testing.assert_array_equal(numbers(self.told["hi"]), hi * scale + offset)
        if not self.level:
            first, values = self.told["samples"]["first"], numbers(self.told["samples"]["values"])
            assert first == int(np.floor(start))
            assert len(values) >= min(int(per_pixel * pixels), len(least) - first)
            np.testing.assert_array_equal(values, least[first : first + len(values)] * scale + offset)


def numbers(told: list[float | None]) -> np.ndarray:
    """What JavaScript told; a pixel without data is NaN there and null on its way."""
    return np.array([np.nan if value is None else value for value in told], float)


def envelope(
    least: np.ndarray, most: np.ndarray, start: float, per_pixel: float, pixels: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each pixel the least and greatest of the columns that it touches."""
    lo, hi = np.full(pixels, np.nan), np.full(pixels, np.nan)
    for pixel in range(pixels):
        left = start + pixel * per_pixel
        touched = slice(max(0, int(np.floor(left + 1e-9))), int(np.ceil(left + per_pixel - 1e-9)))
        if least[touched].size:
            lo[pixel], hi[pixel] = least[touched].min(), most[touched].max()
    return lo, hi


def write_long_store(store: Path) -> None:
    """Forty minutes of 129 channels, laid out as biosigIO does it; only the coarse levels have values."""
    samples = int(LONG_S * RATE_HZ)
    root = zarr.open_group(store, mode="w", zarr_format=3)
    root.attrs.update(
        {"format": "biosigio-zarr", "format_version": 2, "biosigio_version": "1.2.13", "channel_groups": ["eeg_250hz"]}
    )
    channels = [
        {
            "label": f"E{row + 1}",
            "channel_type": "EEG" if row < CHANNELS - 1 else "MISC",
            "unit": "uV" if row < CHANNELS - 1 else "n/a",
            "row_index": row,
            "scale": 0.05,
            "offset": 3.0,
            "usable_for_inference": row != 7,
            **({"nonfinite_samples": 12} if row == 7 else {}),
        }
        for row in range(CHANNELS)
    ]
    levels = {number: samples // 4**number for number in range(1, 7)}
    group = root.create_group("eeg_250hz")
    group.attrs.update(
        {
            "modality": "EEG",
            "rate": RATE_HZ,
            "original_rate": 1000.0,
            "n_channels": CHANNELS,
            "n_samples": samples,
            "channels": channels,
            "view_levels": list(levels),
            "n_view_levels": len(levels),
        }
    )
    blosc = BloscCodec(cname="zstd", clevel=1, typesize=2)
    signal = group.create_array(
        "0",
        shape=(CHANNELS, samples),
        chunks=(CHANNELS, 1000),
        shards=(CHANNELS, 75000),
        dtype="int16",
        compressors=blosc,
    )
    signal.attrs.update({"level": 0, "scale": [0.05] * CHANNELS, "offset": [3.0] * CHANNELS})
    rng = np.random.default_rng(1)
    for number, columns in levels.items():
        chunk = min(1024, columns)
        view = group.create_array(
            f"view/{number}", shape=(2, CHANNELS, columns), chunks=(2, CHANNELS, chunk), dtype="int16", compressors=blosc
        )  # fmt: skip
        view.attrs.update({"level": number, "downsample_factor": 4**number, "kind": "minmax_envelope"})
        if number >= 3:
            middle = rng.integers(-900, 900, (CHANNELS, columns), dtype=np.int16)
            view[:] = np.stack([middle - 400, middle + 400])
