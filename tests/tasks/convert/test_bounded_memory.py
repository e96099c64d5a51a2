"""A recording eight times as long takes no more anonymous memory than its one channel in double precision does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_files import edf_bytes, eeglab, fif

RATE_HZ, CHANNELS, SHORT_S, TIMES = 500, 64, 60, 8

CONVERT = """
import sys
from pathlib import Path
import pandas as pd
from tasks.convert.engine import write_chunks
from tasks.convert.pieces import EngineInput
from tasks.formats import load
name, source, scratch = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
def data_bytes(field):
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith(field))
def convert(source, folder):
    folder.mkdir()
    one = load()[name.split()[0]]
    header = one.header(source)
    events = pd.DataFrame({"onset": [], "duration": [], "description": []})
    documents, _written = write_chunks(EngineInput(target=source, source_format=one.source_format, route=one.route(header), header=header,
        modality="eeg", channels=None, events=events, scratch=folder), folder / "x.zarr")
    documents.write(folder / "x.zarr")
import threading, time
peak, done = [0], threading.Event()
def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], data_bytes("RssAnon"))
convert(Path(sys.argv[4]), scratch / "warm")
birth = data_bytes("RssAnon")
thread = threading.Thread(target=watch)
thread.start()
convert(source, scratch / "real")
done.set()
thread.join()
print(max(peak[0] - birth, 0))
"""


def written(folder: Path, name: str, seconds: int) -> Path:
    folder.mkdir()
    minute = np.random.default_rng(0).integers(-9000, 9000, size=(CHANNELS, 60 * RATE_HZ)).astype(np.int16)
    data = np.tile(minute, (1, seconds // 60))
    if name == "edf":
        path = folder / "x.edf"
        labels = [f"E{i}" for i in range(CHANNELS)]
        path.write_bytes(edf_bytes(labels, per_record=[RATE_HZ] * CHANNELS, n_records=seconds, data=data))
        return path
    if name.startswith("eeglab"):
        return eeglab(folder / "x.set", data, RATE_HZ, fdt=name == "eeglab fdt", compressed=False)
    return fif(folder / "x_meg.fif", data * 1e-15, RATE_HZ)


KINDS: dict[str, Callable[[int], int]] = {
    # what one channel takes in double precision beside its copies, and the block of channels, which is bounded
    "edf": lambda samples: 60 * samples + 24 * 2**20,
    "fif": lambda samples: 60 * samples + 56 * 2**20,
    "eeglab": lambda samples: 60 * samples + 56 * 2**20,
    "eeglab fdt": lambda samples: 60 * samples + 56 * 2**20,
}


@pytest.mark.parametrize("name", KINDS)
def test_anonymous_memory_does_not_grow_with_the_channels_times_the_length(name: str, tmp_path: Path) -> None:
    long_s = SHORT_S * TIMES
    short, long = (written(tmp_path / str(seconds), name, seconds) for seconds in (SHORT_S, long_s))
    (tmp_path / "scratch").mkdir()
    run = subprocess.run(
        [sys.executable, "-c", CONVERT, name, str(long), str(tmp_path / "scratch"), str(short)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown = int(run.stdout)
    held_whole = 8 * CHANNELS * long_s * RATE_HZ
    assert grown < KINDS[name](long_s * RATE_HZ) < 0.75 * held_whole
