"""The real CTF recording as a continuous one: its own second trial was recorded 99 s after its first."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

ORIGIN = "ctf/testdata_ctf_short_discontinuous.ds"
CHANNELS, TRIAL_SAMPLES, CLOCK, COUNTS = 356, 1201, b"SCLK01-177", 10


def continuous_ctf(recordings: Path, folder: Path) -> Path:
    """A copy of the recording at ``folder``, named after it, whose clock goes on from trial to trial."""
    shutil.copytree(recordings / ORIGIN, folder)
    for inner in list(folder.iterdir()):
        inner.chmod(0o644 if inner.is_file() else 0o755)
        if inner.name.startswith(Path(ORIGIN).stem):
            inner.rename(folder / (folder.stem + inner.name.removeprefix(Path(ORIGIN).stem)))
    row = clock_row(folder / f"{folder.stem}.res4")
    path = folder / f"{folder.stem}.meg4"
    samples = np.memmap(path, dtype=">i4", mode="r+", offset=8).reshape(-1, CHANNELS, TRIAL_SAMPLES)
    start = int(samples[0, row, 0])
    samples[:, row] = start + COUNTS * np.arange(samples.shape[0] * TRIAL_SAMPLES).reshape(-1, TRIAL_SAMPLES)
    samples.flush()
    return folder


def clock_row(res4: Path) -> int:
    """Row of the system clock: names of 32 bytes stand one after the other."""
    data = res4.read_bytes()
    names = data.index(b"UDIO001\0") if data.find(b"UDIO001\0") >= 0 else data.index(b"SCLK01-177\0")
    return (data.index(CLOCK + b"\0") - names) // 32
