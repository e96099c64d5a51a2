"""What nothing can do without that writes one store: processor seconds of each part, by the cheapest way that numpy, biosigIO and zarr have.

A channel at a time passes through it all while it is in the cache: its samples taken out of the mapped file and calibrated (pyEDFlib's or MNE's
arithmetic), resampled, quantised; then biosigIO's envelopes, and zarr's encoding and writing of the codes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["floor"]

_TOGETHER_BYTES = 64 << 20


def floor(store: Path, path: Path, kind: str, rate_hz: int, served_hz: int) -> dict[str, float]:
    """Write the store's arrays; seconds of each part."""
    import zarr
    from biosigio.exporters.zarr import _build_minmax_pyramid, _chunk_shard_time, _quantize_int16_channel
    from scipy.signal import firwin, resample_poly
    from zarr.codecs import BloscCodec

    parts = dict.fromkeys(("read", "resample", "quantise", "envelopes", "write"), 0.0)
    began = time.process_time()

    def part(name: str) -> None:
        nonlocal began
        now = time.process_time()
        parts[name] += now - began
        began = now

    ratio = rate_hz // served_hz
    window = firwin(20 * ratio + 1, 1.0 / ratio, window=("kaiser", 5.0))
    n_channels, samples = _channels(path, kind, rate_hz)
    codes = np.empty((0, 0), np.int16)
    for number, row in enumerate(samples):
        part("read")
        served = resample_poly(row, 1, ratio, window=window)
        part("resample")
        if number == 0:
            codes = np.empty((n_channels, len(served)), np.int16)
        codes[number] = _quantize_int16_channel(served)[0]
        part("quantise")
    levels = _build_minmax_pyramid(codes, 4, 512, 12)
    part("envelopes")
    chunk, shard = _chunk_shard_time(codes.shape[1], served_hz, 4.0, 300.0)
    with zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1}):
        root = zarr.create_group(str(store), overwrite=True)
        packed = [BloscCodec(cname="zstd", clevel=5)]
        shape, rows = codes.shape, codes.shape[0]
        root.create_array("0", shape=shape, chunks=(rows, chunk), shards=(rows, shard), dtype="int16", compressors=packed)[:] = codes  # fmt: skip
        for number, level in enumerate(levels, start=1):
            chunks = (2, rows, min(level.shape[2], 1024))
            root.create_array(str(number), shape=level.shape, chunks=chunks, dtype="int16", compressors=packed)[:] = level  # fmt: skip
    part("write")
    return parts


def _channels(path: Path, kind: str, rate_hz: int) -> tuple[int, Iterator[np.ndarray]]:
    """How many channels there are, and each of them in double precision."""
    if kind == "edf":
        head = path.read_bytes()[:256] if path.stat().st_size < 1 << 20 else path.open("rb").read(256)
        channels, records = int(head[252:256]), int(head[236:244])
        table = np.memmap(path, "<i2", "r", 256 * (channels + 1), (records, channels, rate_hz))
        return channels, (_edf(table[:, number]) for number in range(channels))
    if kind == "brainvision":
        channels = int(path.read_text().split("NumberOfChannels=")[1].split()[0])
        return channels, _columns([np.memmap(path.with_suffix(".eeg"), "<i2", "r").reshape(-1, channels)], 1e-7)
    if kind == "fif":
        return _fif(path)
    from scipy.io import loadmat

    if kind.endswith("fdt"):
        channels = int(loadmat(path)["EEG"]["nbchan"][0, 0][0, 0])
        return channels, _columns([np.memmap(path.with_suffix(".fdt"), "<f4", "r").reshape(-1, channels)], 1.0)
    table = loadmat(path)["EEG"]["data"][0, 0].T
    return table.shape[1], _columns([table], 1.0)


def _fif(path: Path) -> tuple[int, Iterator[np.ndarray]]:
    """MNE finds the buffers of samples, which are single precision."""
    import mne

    raw: Any = mne.io.read_raw_fif(path, preload=False, verbose="ERROR")
    channels, tables = len(raw.ch_names), []
    for extras in raw._raw_extras:
        file = np.memmap(extras["filename"], np.uint8, "r")
        tables += [file[e.pos + 16 : e.pos + 16 + e.size].view(">f4").reshape(-1, channels) for e in extras["ent"]]
    return channels, _columns(tables, float(raw._cals[0]))


def _columns(tables: list[np.ndarray], cal: float) -> Iterator[np.ndarray]:
    """The columns of tables that follow each other, as many at once as fit the memory that is left to them, turned in tiles that fit the cache."""
    n_channels, n_samples = tables[0].shape[1], sum(map(len, tables))
    kind = tables[0].dtype.newbyteorder("=")
    at_once = max(1, _TOGETHER_BYTES // (n_samples * kind.itemsize))
    for first in range(0, n_channels, at_once):
        last = min(first + at_once, n_channels)
        block, at = np.empty((last - first, n_samples), kind), 0
        step = max(64, (512 << 10) // (kind.itemsize * (last - first)))
        for table in tables:
            for start in range(0, len(table), step):
                own = table[start : start + step, first:last]
                block[:, at + start : at + start + len(own)] = own.T
            at += len(table)
        for row in block:
            yield np.multiply(row, cal, dtype=np.float64)


def _edf(digital: np.ndarray) -> np.ndarray:
    samples: np.ndarray = np.add(digital, 0.0)
    samples *= 0.1
    channel: np.ndarray = samples.reshape(-1)
    return channel
