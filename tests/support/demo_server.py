"""A dataset that was really converted, and ``zarrmill serve`` over it as a process."""

from __future__ import annotations

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from command import Zarrmill
from served_dataset import Served
from small_files import edf_bytes

DATASET = "xx000001"
REST = "sub-01/eeg/sub-01_task-rest_eeg.edf"
ODDBALL = "sub-01/eeg/sub-01_task-oddball_eeg.edf"
BROKEN = "sub-02/eeg/sub-02_task-rest_eeg.edf"
LABELS = ("Fp1", "Cz", "O1", "STIM")
GROUP = "eeg_250hz"
REST_S, ODDBALL_S = 320, 30
_NATIVE_HZ = 500


def write_dataset(folder: Path) -> None:
    """Two recordings with events, one longer than a shard, and one that is cut off."""
    place = folder / "sub-01" / "eeg"
    place.mkdir(parents=True)
    (folder / BROKEN).parent.mkdir(parents=True)
    about = {"Name": "Readable", "BIDSVersion": "1.10.0", "License": "CC0", "DatasetDOI": "doi:10.0000/readable"}
    (folder / "dataset_description.json").write_text(json.dumps(about))
    for task, seconds in (("rest", REST_S), ("oddball", ODDBALL_S)):
        stem = f"sub-01_task-{task}"
        times = np.arange(_NATIVE_HZ * seconds) / _NATIVE_HZ
        rng = np.random.default_rng(seconds)
        waves = [2000 * np.sin(2 * np.pi * rate * times) for rate in (3, 7, 11)]
        waves = [wave + rng.normal(0, 300, len(times)) for wave in waves]
        data = np.stack([*waves, np.repeat(rng.integers(0, 9, seconds), _NATIVE_HZ) * 100]).astype(np.int16)
        counts = [_NATIVE_HZ] * len(LABELS)
        edf = edf_bytes(LABELS, per_record=counts, n_records=seconds, data=data)
        (place / f"{stem}_eeg.edf").write_bytes(edf)
        types = ["EEG"] * 3 + ["TRIG"]
        rows = "".join(f"{label}\t{kind}\tuV\n" for label, kind in zip(LABELS, types, strict=True))
        (place / f"{stem}_channels.tsv").write_text(f"name\ttype\tunits\n{rows}")
        events = "".join(f"{onset}\t0.5\t{'target' if onset % 3 else 'standard'}\n" for onset in range(2, seconds, 3))
        (place / f"{stem}_events.tsv").write_text(f"onset\tduration\ttrial_type\n{events}n/a\t0.5\tstandard\n")
    (folder / BROKEN).write_bytes(edf[: len(edf) // 2])


@dataclass(frozen=True)
class Demo:
    """What is served, and where."""

    served: Served
    zarrmill: Zarrmill
    url: str

    @property
    def base(self) -> str:
        return f"{self.url}/{DATASET}/zarr/"

    def get(self, path: str) -> Any:
        """The JSON answer to a path."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
            return json.load(answer)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def serving(zarrmill: Zarrmill, target: Path, url: str) -> Iterator[None]:
    """``zarrmill serve`` over a target, until the block ends."""
    process = zarrmill.start("serve", "--to", target)
    try:
        wait_for(f"{url}/healthz", lambda: process.poll() is None)
        yield
    finally:
        process.terminate()
        said, _log = process.communicate(timeout=60)
    assert f"{url}/dashboard" in said, "whoever starts it is told where the pages are"


def wait_for(url: str, is_alive: Any, *, seconds: float = 90) -> None:
    """Wait until something answers at an address."""
    deadline = time.monotonic() + seconds
    while True:
        assert is_alive(), "the server ended"
        try:
            with urllib.request.urlopen(url, timeout=60):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < deadline, f"nothing answers at {url}"
            time.sleep(0.1)
