"""A dataset of small recordings: zarrmill against a ProcessPoolExecutor over biosigIO, same workers, same outputs.

Both convert the same files with the same options and serve the same stores. The pool does what a script must that publishes: each store is finished
in a scratch folder, the SHA-256 of each of its objects is taken for the manifest, and it is put in its place by one rename; it checks nothing and
keeps no state. Start is excluded: the pool has imported everything and is waiting; of zarrmill the time
runs from the first recording that is handed to a worker to the last one that is served (``converting``), and to the end of the command
with all documents published (``to the end``). The chunks of both are compared byte by byte. Rounds alternate, so that a busy machine
is as busy for both.

Memory is read in a round of its own, as the proportional set size of every process, summed, ten times a second: of what converts (the pool's
workers; the fork server and its children) and of all processes (the pool's parent too; the command, Dask, Postgres and Prefect).

    python benchmarks/bare_pool.py [--json] [--quick] [--recordings N] [--channels C] [--seconds S]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from fabricate import dataset

from infra.home import Home
from infra.services import stopped

RATE_HZ = 500
PARTS = 10  # of the recordings of one command, whose seconds are told apart
_NO_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")


def convert_one(source: str, store: str, scratch: str) -> dict[str, str]:
    """What a script would do: biosigIO's own reader and writer with the options that zarrmill uses, and the store put in its place; its digests."""
    import pandas as pd
    import zarr
    from biosigio import Recording
    from biosigio.bids import apply_channels_tsv

    stem = source.removesuffix("_eeg.edf")
    events = pd.read_csv(stem + "_events.tsv", sep="\t").rename(columns={"trial_type": "description"})
    with zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1}):
        recording = Recording.from_file(source, bids_channels="off")
        apply_channels_tsv(recording, stem + "_channels.tsv")
        for channel in recording.channels.values():
            channel["modality"] = "EEG"
        recording.to_zarr(scratch, events_df=events, exclude_subject_info=True)
    digests = {
        path.relative_to(scratch).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(scratch).rglob("*")
        if path.is_file()
    }
    Path(store).parent.mkdir(parents=True, exist_ok=True)
    Path(scratch).rename(store)
    return digests


def warm(seconds: float) -> int:
    """Import what a conversion needs and let the others of the pool start too; the pid."""
    import biosigio.exporters.zarr  # noqa: F401
    import mne  # noqa: F401
    import pyedflib  # noqa: F401

    time.sleep(seconds)
    return os.getpid()


class Sampler:
    """The largest sum of proportional set sizes of some processes and all below them."""

    def __init__(self, root: int, convert_names: tuple[str, ...]) -> None:
        self.converting_bytes = self.all_bytes = 0
        self.command_peak_bytes = 0
        self._root, self._names = root, convert_names
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._left.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._left.wait(0.1):
            converting = whole = 0
            try:
                root = psutil.Process(self._root)
                everyone = [root, *root.children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
            for process in everyone:
                try:
                    pss = _pss(process.pid)
                    called = " ".join(process.cmdline())
                except (psutil.Error, OSError):
                    continue
                whole += pss
                if process.pid != self._root and any(name in called for name in self._names):
                    converting += pss
            self.converting_bytes = max(self.converting_bytes, converting)
            self.all_bytes = max(self.all_bytes, whole)


def _pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


@dataclass
class Pool:
    """A warm pool, kept for all rounds."""

    workers: int
    executor: ProcessPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        os.environ.update(_NO_THREADS)
        self.executor = ProcessPoolExecutor(self.workers, mp_context=multiprocessing.get_context("spawn"))
        pids: set[int] = set()
        while len(pids) < self.workers:
            pids |= set(self.executor.map(warm, [0.5] * self.workers))

    def convert(self, sources: list[Path], source: Path, target: Path) -> tuple[float, float]:
        """Wall seconds for all, and processor seconds of the workers."""
        before = cpu_seconds(os.getpid()).get("worker", 0.0)
        stores = [str(target / path.relative_to(source)).removesuffix(".edf") + ".zarr" for path in sources]
        begun = time.monotonic()
        scratch = [str(target / ".scratch" / f"{number}.zarr") for number in range(len(sources))]
        (target / ".scratch").mkdir(parents=True)
        digests = list(self.executor.map(convert_one, map(str, sources), stores, scratch, chunksize=1))
        manifest = dict(zip(stores, digests, strict=True))
        (target / "manifest.json").write_text(json.dumps(manifest))
        return time.monotonic() - begun, cpu_seconds(os.getpid()).get("worker", 0.0) - before


@dataclass(frozen=True)
class Ours:
    """One command, in seconds from the first recording handed to a worker.

    ``by_position_s``: the seconds that each tenth of the recordings took, in the order in which they ended; ``command_cpu_by_position_s``: the
    processor seconds of the command's own process in each. Both are flat where no step is quadratic.
    """

    converting_s: float
    to_the_end_s: float
    command_peak_bytes: int
    cpu_s: dict[str, float]
    by_position_s: list[float]
    command_cpu_by_position_s: list[float]


def zarrmill(source: Path, target: Path, home: Path, *, workers: int, expected: int, sampler_of: Any = None) -> Ours:
    """Convert with the command line, in a home of its own."""
    environment = {**os.environ, "ZARRMILL_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [str(Path(sys.executable).with_name("zarrmill")), "convert", str(source), "--to", str(target)]
    process = subprocess.Popen(
        [*command, "--workers", str(workers), "--json"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = last = None
    peak = ended = 0
    parts = [expected * tenth // PARTS for tenth in range(1, PARTS + 1)]
    passed: list[tuple[float, float]] = []
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    if sampler_of is not None:
        sampler_of(process.pid)
    for line in process.stdout:
        event = json.loads(line)
        now = time.monotonic()
        if event["event"] == "recording_started" and first is None:
            first = now
            before = cpu_seconds(process.pid)
            passed.append((now, own_cpu_seconds(process.pid)))
        elif event["event"] == "recording_ended":
            last = now
            ended += 1
            passed += [(now, own_cpu_seconds(process.pid))] * parts.count(ended)
            if ended == expected:
                after = cpu_seconds(process.pid)
            if event["outcome"] != "done":
                raise SystemExit(f"not every recording was converted: {line}")
        elif event["event"] == "summary":
            peak = _high_water(process.pid)
    if process.wait() != 0 or first is None or last is None:
        raise SystemExit(f"zarrmill ended with {process.returncode}")
    with stopped(Home(home)):  # its servers linger for the next command, and write into a home that is to be removed
        pass
    spent = {role: after[role] - before.get(role, 0.0) for role in after}
    return Ours(
        last - first,
        time.monotonic() - first,
        peak,
        spent,
        [round(b[0] - a[0], 2) for a, b in pairwise(passed)],
        [round(b[1] - a[1], 2) for a, b in pairwise(passed)],
    )


_ROLES = {
    "tasks.convert.fork_server": "children",
    "dask worker": "worker",
    "dask scheduler": "scheduler",
    "prefect": "prefect",
    "postgres": "postgres",
    "multiprocessing": "worker",  # Dask's nanny starts the worker's own process this way
}


def cpu_seconds(root_pid: int) -> dict[str, float]:
    """Processor seconds so far of a process and everything below it, by what it is; children that have ended are in their parent's."""
    root = psutil.Process(root_pid)
    spent: dict[str, float] = {}
    for process in (root, *root.children(recursive=True)):
        try:
            times, called = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        role = next((role for part, role in _ROLES.items() if part in called), "command")
        own = "command" if process.pid == root_pid else role
        ended = times.children_user + times.children_system if own == "children" else 0.0
        spent[own] = spent.get(own, 0.0) + times.user + times.system + ended
    return spent


def own_cpu_seconds(pid: int) -> float:
    """Processor seconds so far of one process alone."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _high_water(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def chunks_differ(theirs: Path, ours: Path) -> list[str]:
    """Chunk objects that are not byte for byte the same in both trees."""

    def of(root: Path) -> dict[str, Path]:
        return {
            p.relative_to(root).as_posix(): p
            for p in root.rglob("*")
            if p.is_file() and p.name != "zarr.json" and ".zarr/" in p.as_posix()
        }

    a, b = of(theirs), of(ours)
    return [
        name
        for name in sorted(a.keys() | b.keys())
        if name not in a or name not in b or a[name].read_bytes() != b[name].read_bytes()
    ]


def measure(folder: Path, count: int, *, n_channels: int, seconds: int, workers: int, rounds: int) -> dict[str, Any]:
    """The figures of the table."""
    source = folder / "xx000001"
    sources = dataset(source, count, n_channels=n_channels, seconds=seconds, rate_hz=RATE_HZ)
    pool, theirs, ours = Pool(workers), [], []
    compared: list[str] | None = None
    for number in range(rounds):
        out = folder / f"pool-{number}"
        theirs.append(pool.convert(sources, source, out))
        served = folder / f"served-{number}"
        ours.append(zarrmill(source, served, folder / f"home-{number}", workers=workers, expected=count))
        if compared is None:
            compared = chunks_differ(out, served / "xx000001" / "zarr")
        for left in (out, served, folder / f"home-{number}"):
            shutil.rmtree(left)
    memory = _memory(folder, pool, sources, source, workers)
    pool.executor.shutdown()
    return {
        "recordings": count,
        "channels": n_channels,
        "seconds_each": seconds,
        "rate_hz": RATE_HZ,
        "workers": workers,
        "pool_s": [wall for wall, _cpu in theirs],
        "pool_cpu_s": [cpu for _wall, cpu in theirs],
        "zarrmill": [asdict(one) for one in ours],
        "ratio_converting": statistics.median(b.converting_s / a[0] for a, b in zip(theirs, ours, strict=True)),
        "ratio_cpu": statistics.median(sum(b.cpu_s.values()) / a[1] for a, b in zip(theirs, ours, strict=True)),
        "ratio_to_the_end": statistics.median(b.to_the_end_s / a[0] for a, b in zip(theirs, ours, strict=True)),
        "different_chunks": compared or [],
        "memory": memory,
    }


def _memory(folder: Path, pool: Pool, sources: list[Path], source: Path, workers: int) -> dict[str, int]:
    few = sources[: max(len(sources) // 5, 20)]
    with Sampler(os.getpid(), ("multiprocessing.spawn", "multiprocessing.forkserver")) as theirs:
        pool.convert(few, source, folder / "pool-m")
    part = folder / "part" / "xx000001"
    for path in few:
        shutil.copytree(path.parent, part / path.parent.relative_to(source))
    shutil.copy(source / "dataset_description.json", part)
    samplers: list[Sampler] = []

    def watch(pid: int) -> None:
        samplers.append(Sampler(pid, ("tasks.convert.fork_server",)))
        samplers[0].__enter__()

    zarrmill(part, folder / "served-m", folder / "home-m", workers=workers, expected=len(few), sampler_of=watch)
    samplers[0].__exit__()
    return {
        "pool_converting_bytes": theirs.converting_bytes,
        "zarrmill_converting_bytes": samplers[0].converting_bytes,
        "pool_all_bytes": theirs.all_bytes,
        "zarrmill_all_bytes": samplers[0].all_bytes,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--recordings", type=int)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--folder", type=Path, help="Where to work. Default: a temporary folder.")
    given = parser.parse_args()
    count = given.recordings or (80 if given.quick else 1000)
    rounds = given.rounds or (1 if given.quick else 3)
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = measure(
            Path(folder), count, n_channels=given.channels, seconds=given.seconds, workers=workers, rounds=rounds
        )
    if given.json:
        print(json.dumps(found))
        return
    print(f"{count} recordings of {given.channels} channels x {given.seconds} s at {RATE_HZ} Hz, {workers} workers")
    print(f"{'':28}{'pool':>10}{'zarrmill':>10}{'ratio':>8}")
    for number, (pool_s, ours) in enumerate(zip(found["pool_s"], found["zarrmill"], strict=True), 1):
        print(
            f"{f'round {number}, converting':28}{pool_s:9.1f}s{ours['converting_s']:9.1f}s{ours['converting_s'] / pool_s:8.2f}"
        )
        print(
            f"{f'round {number}, to the end':28}{pool_s:9.1f}s{ours['to_the_end_s']:9.1f}s{ours['to_the_end_s'] / pool_s:8.2f}"
        )
    per = 1000 / found["recordings"]
    print(
        f"processor ms a recording: pool {found['pool_cpu_s'][-1] * per:.0f}; zarrmill "
        + ", ".join(
            f"{role} {seconds * per:.0f}"
            for role, seconds in sorted(found["zarrmill"][-1]["cpu_s"].items(), key=lambda each: -each[1])
        )
    )
    last = found["zarrmill"][-1]
    for what, key in (("wall", "by_position_s"), ("processor, the command alone", "command_cpu_by_position_s")):
        told = " ".join(f"{1000 * seconds * PARTS / count:.0f}" for seconds in last[key])
        print(f"ms a recording in each tenth of them, {what}: {told}")
    for what in ("converting", "all"):
        a, b = found["memory"][f"pool_{what}_bytes"], found["memory"][f"zarrmill_{what}_bytes"]
        print(f"{f'memory, {what}':28}{a >> 20:8} MB{b >> 20:7} MB{b / a:8.2f}")
    print(
        f"median ratio {found['ratio_converting']:.2f} converting, {found['ratio_to_the_end']:.2f} to the end; "
        f"{len(found['different_chunks'])} chunks differ; the command itself peaked at {max(o['command_peak_bytes'] for o in found['zarrmill']) >> 20} MB"
    )


if __name__ == "__main__":
    main()
