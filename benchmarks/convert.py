"""One recording at a time, three ways, and the floor: processor time, memory and scratch, by format.

Each of ``memory`` (biosigIO's ``Recording.from_file(...).to_zarr``), ``streaming`` (biosigIO's ``stream_to_zarr``) and ``zarrmill``
(the whole conversion of a child: header, store, attributes, gate, digests) converts the same file in a process of its own that has imported
everything. ``floor`` is what nothing that writes this store can do without (``floor.py``).

Processor time is user and system time of the process; ``peak`` its greatest resident size, ``anonymous`` that of its anonymous memory, both
above what it had after its imports, ``scratch`` what its scratch folder held at most beside the store. Nanoseconds are of processor time, per
sample of the source. Ways take turns, so that a busy machine is as busy for all; the least of the rounds counts.

    python benchmarks/convert.py [--json] [--quick] [--only FORMAT] [--size NAME] [--rounds N] [--seed N]
    python benchmarks/convert.py --small [--json] [--only FORMAT] [--rounds N]      (many small ones, warm: ``small.py``)
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import small
from floor import floor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

RATE_HZ, SERVED_HZ = 1000, 250
SIZES = {"tiny": (4, 10), "small": (32, 60), "128 x 10 min": (128, 600), "256 x 30 min": (256, 1800)}
FORMATS = ("edf", "bdf", "brainvision", "fif", "eeglab", "eeglab fdt")
WAYS = ("memory", "streaming", "zarrmill", "floor")
ENDINGS = {"edf": ".edf", "bdf": ".bdf", "brainvision": ".vhdr", "fif": ".fif", "eeglab": ".set"}
SKIPPED = {("eeglab", "streaming"), ("256 x 30 min", "memory"), ("bdf", "floor"), ("256 x 30 min", "eeglab")}
"""MNE loads an embedded .set whole; 256 channels of 30 minutes take biosigIO 18 GB."""
_QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way with one file; sizes in MB (10^6 bytes)."""

    format: str
    size: str
    way: str
    cpu_s: float
    wall_s: float
    ns: float
    peak_mb: float
    anonymous_mb: float
    scratch_mb: float
    parts: dict[str, float]


def write(folder: Path, kind: str, channels: int, seconds: int, seed: int) -> Path:
    """A recording of noise with a slow drift, a minute of it again and again, below ``folder/source``."""
    from small_files import brainvision, edf_bytes, eeglab, fif

    rng = np.random.default_rng(seed)
    name, modality = kind.split(" ", 1)[0], "meg" if kind == "fif" else "eeg"
    parent = folder / "source" / "sub-01" / modality
    parent.mkdir(parents=True)
    path = parent / f"sub-01_task-rest_{modality}{ENDINGS[name]}"
    minute = min(seconds, 60)
    noise = rng.normal(scale=400.0, size=(channels, minute * RATE_HZ))
    noise = (noise + 3000 * np.sin(np.arange(noise.shape[1]) / 5e3 + np.arange(channels)[:, None])).astype(np.int16)
    if name in {"edf", "bdf"}:
        width = 3 if name == "bdf" else 2
        labels = [f"E{number + 1}" for number in range(channels)]
        head = edf_bytes(labels, per_record=[RATE_HZ] * channels, n_records=0, declared=seconds)
        digital = noise.reshape(channels, minute, RATE_HZ).swapaxes(0, 1)
        raw = digital.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :width].tobytes()
        with path.open("wb") as file:
            file.write(head if name == "edf" else b"\xffBIOSEMI" + head[8:].replace(b" " * 44, b"24BIT".ljust(44), 1))
            for _ in range(seconds // minute):
                file.write(raw)
    elif name == "brainvision":
        brainvision(parent, path.stem, noise[:, :10] / 10.0, RATE_HZ)
        with path.with_suffix(".eeg").open("wb") as file:
            for _ in range(seconds // minute):
                file.write(np.ascontiguousarray(noise.T).tobytes())
    elif name == "fif":
        _long_fif(path, fif(folder / "minute_meg.fif", noise * 1e-15, RATE_HZ), seconds // minute)
        (folder / "minute_meg.fif").unlink()
    else:
        whole = np.tile(noise / np.float32(10), (1, seconds // minute))
        eeglab(path, whole, RATE_HZ, fdt=kind.endswith("fdt"), compressed=False)
    return path


def _long_fif(path: Path, minute: Path, times: int) -> None:
    import mne

    raws = [mne.io.read_raw_fif(minute, preload=False, verbose="ERROR") for _ in range(times)]
    mne.concatenate_raws(raws).save(path, split_size="2GB", split_naming="bids", buffer_size_sec=1.0, verbose="ERROR")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="32 channels of a minute, each way once")
    parser.add_argument("--small", action="store_true", help="many small recordings in a warm process")
    parser.add_argument("--only", metavar="FORMAT", choices=FORMATS)
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        _one(json.loads(given.one))
        return
    if given.small:
        kinds = (given.only,) if given.only else FORMATS
        small.table(write, kinds, {**os.environ, **_QUIET}, rounds=given.rounds, as_json=given.json)
        return
    sizes = ("small",) if given.quick else ((given.size,) if given.size else tuple(SIZES))
    rows: list[Row] = []
    for size in sizes:
        for kind in (given.only,) if given.only else FORMATS:
            with tempfile.TemporaryDirectory() as folder:
                rows.extend(measured(Path(folder), kind, size, given))
    if given.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        machine = {"cpus": os.cpu_count(), "python": sys.version.split()[0]}
        made = {"commit": commit, "seed": given.seed, "machine": machine, "rows": [asdict(row) for row in rows]}
        print(json.dumps(made, indent=1))


def measured(folder: Path, kind: str, size: str, given: argparse.Namespace) -> list[Row]:
    """Every way with one file, as it is printed."""
    channels, seconds = SIZES[size]
    path = write(folder, kind, channels, seconds, given.seed)
    ways = [way for way in WAYS if not {(kind, way), (size, way), (size, kind)} & SKIPPED]
    found: dict[str, Row] = {}
    for _ in range(1 if given.quick else given.rounds):
        for way in ways:
            row = _in_a_process(folder, path, kind, size, way)
            before = found.get(way)
            found[way] = row if before is None or row.cpu_s < before.cpu_s else before
    rows = [found[way] for way in ways]
    if not given.json:
        for row in rows:
            _print(row, found)
    return rows


def _print(row: Row, found: dict[str, Row]) -> None:
    of = " ".join(
        f"{row.cpu_s / found[way].cpu_s:4.2f} of {way}"
        for way in ("memory", "streaming", "floor")
        if way in found and row.way == "zarrmill"
    )
    parts = " ".join(f"{name} {seconds:.2f}" for name, seconds in row.parts.items())
    print(
        f"{row.size:13} {row.format:11} {row.way:9} cpu {row.cpu_s:7.2f} wall {row.wall_s:7.2f} s {row.ns:7.1f} ns "
        f"peak {row.peak_mb:7.0f} anonymous {row.anonymous_mb:6.0f} scratch {row.scratch_mb:6.0f} MB  {of} {parts}",
        flush=True,
    )


def _in_a_process(folder: Path, path: Path, kind: str, size: str, way: str) -> Row:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    order = {"folder": str(folder), "path": str(path), "kind": kind, "size": size, "way": way}
    child = subprocess.Popen(
        [sys.executable, __file__, "--one", json.dumps(order)],
        env={**os.environ, **_QUIET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()  # everything is imported
    birth = anonymous = _status(child.pid, "RssAnon")
    peak_birth = _status(child.pid, "VmRSS")
    child.stdin.write("go\n")
    child.stdin.flush()
    scratch = 0
    while child.poll() is None and _status(child.pid, "State") != "Z":
        anonymous = max(anonymous, _status(child.pid, "RssAnon") or 0)
        scratch = max(scratch, _scratch(folder))
        time.sleep(0.02)
        if select_ready(child.stdout):
            break
    line = child.stdout.readline()
    child.wait()
    if not line:
        raise SystemExit(f"{kind} {size} {way}: the process ended with {child.returncode}")
    told = json.loads(line)
    samples = SIZES[size][0] * SIZES[size][1] * RATE_HZ
    return Row(
        format=kind,
        size=size,
        way=way,
        cpu_s=round(told["cpu_s"], 4),
        wall_s=round(told["wall_s"], 4),
        ns=round(told["cpu_s"] / samples * 1e9, 2),
        peak_mb=round((told["peak"] - peak_birth) / 1e6, 1),
        anonymous_mb=round((anonymous - birth) / 1e6, 1),
        scratch_mb=round(scratch / 1e6, 1),
        parts={name: round(value, 3) for name, value in told["parts"].items()},
    )


def select_ready(stream: Any) -> bool:
    """Whether the stream has something to read."""
    import select

    return bool(select.select([stream], [], [], 0)[0])


def _status(pid: int, name: str) -> Any:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                value = line.split()[1]
                return int(value) * 1024 if value.isdigit() else value
    except (FileNotFoundError, ProcessLookupError):
        return "Z" if name == "State" else 0
    return 0


def _scratch(folder: Path) -> int:
    """Bytes on the disk below the scratch folder, stores left out."""
    total = 0
    for root, folders, names in os.walk(folder / "work"):
        folders[:] = [name for name in folders if not name.endswith(".zarr")]
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH116, PTH118 - it is walked fifty times a second
            except OSError:
                continue
    return total


def _one(order: dict[str, str]) -> None:
    """In a process of its own: import, say so, wait, convert, say what it took."""
    import tasks.convert.preload

    assert tasks.convert.preload.PRELOADED
    way = {"memory": in_memory, "streaming": streaming, "zarrmill": zarrmill, "floor": least}[order["way"]]
    print("ready", flush=True)
    sys.stdin.readline()
    Path("/proc/self/clear_refs").write_bytes(b"5")
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    parts = way(Path(order["folder"]), Path(order["path"]), order["kind"])
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = {"cpu_s": cpu_s, "wall_s": time.monotonic() - start, "parts": parts, "peak": _status(os.getpid(), "VmHWM")}
    print(json.dumps(told), flush=True)


def _no_events() -> Any:
    import pandas as pd

    return pd.DataFrame({"onset": [], "duration": [], "description": []})


def in_memory(folder: Path, path: Path, kind: str) -> dict[str, float]:
    """The in-memory route of biosigIO."""
    from biosigio import Recording

    recording = Recording.from_file(str(path), bids_channels="off")
    for channel in recording.channels.values():
        channel["modality"] = "MEG" if kind == "fif" else "EEG"
    recording.to_zarr(str(folder / "work" / "x.zarr"), events_df=_no_events(), exclude_subject_info=True)
    return {}


def streaming(folder: Path, path: Path, kind: str) -> dict[str, float]:
    """The streaming route of biosigIO, as it comes."""
    from biosigio.exporters.zarr_stream import stream_to_zarr

    stream_to_zarr(
        str(path),
        str(folder / "work" / "x.zarr"),
        force_modality="MEG" if kind == "fif" else "EEG",
        events_df=_no_events(),
        bids_channels="off",
        scratch_dir=str(folder / "work"),
        exclude_subject_info=True,
    )
    return {}


def zarrmill(folder: Path, path: Path, kind: str) -> dict[str, float]:
    """The conversion of a child; seconds of its stages."""
    from conversion import order_for, recording_at

    from tasks.convert.recording import convert

    scratch = folder / "work" / "x"
    scratch.mkdir()
    (scratch / "source").symlink_to(folder / "source")
    relative = path.relative_to(folder / "source").as_posix()
    recording = recording_at(relative, kind.split(" ", 1)[0], "meg" if kind == "fif" else "eeg")
    return dict(convert(order_for(recording), scratch).stage_seconds)


def least(folder: Path, path: Path, kind: str) -> dict[str, float]:
    """Processor seconds of each part of the floor."""
    return floor(folder / "work" / "x.zarr", path, kind, RATE_HZ, SERVED_HZ)


if __name__ == "__main__":
    main()
