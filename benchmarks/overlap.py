"""Do the stages overlap? Mixed small recordings fetched from and published to an S3 endpoint at the far end of a slow line.

EDF, BrainVision, FIF and EEGLAB (.fdt) recordings in equal parts lie in a bucket of an endpoint that is a process of its own (moto's), behind a proxy
that is another: each request waits 50 ms, and all bodies of one direction share 50 MB/s. One ``zarrmill convert`` serves them in the same bucket.

``full`` is the time from the start of the first conversion until the last recording that waited has begun. ``busy`` is, in that time, the processor time of
the workers and their children over what they could have had: cores x wall less the processor time of the endpoint and the proxy, which are on the
same machine here. ``all of zarrmill`` counts the command and the scheduler too, whose share grows as conversions become cheaper; ``idle`` is the share of all cores'
time in which nothing ran at all. On a machine that does other things ``of ours`` says more: what workers and children used of what all of zarrmill had and nobody used.

Nothing may wait for the network while it holds memory for a conversion. ``held in fetch`` are recordings for which memory was reserved before their files
had come. What is reserved is read twenty times a second in the ledger in Postgres: ``held beyond`` are the samples in which more conversions held
memory than attempts stood between the end of their fetch and half a second into their upload. ``held over child seconds`` is how long memory was
held over how long children ran. ``stages`` are medians, in seconds.

    python benchmarks/overlap.py [--json] [--quick] [--recordings N] [--channels C] [--seconds S] [--latency-ms MS] [--mb-s MB]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import sqlalchemy
from bare_pool import cpu_seconds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import small_files
from s3_server import KEY_ID, SECRET, S3Server

from infra.home import Home
from infra.services import in_use, stopped

RATE_HZ = 500
KINDS = ("edf", "brainvision", "fif", "fdt")
BUCKET = "overlap"
_SUPPORT = Path(small_files.__file__).parent
_HELD = "SELECT clock_timestamp() AS at, COALESCE(sum(slots), 0) AS slots FROM reservations"
_ATTEMPTS = """
    SELECT r.path, a.started_at, a.ended_at, a.stage_seconds
    FROM attempts a JOIN recordings r ON r.pk = a.recording_pk WHERE a.ended_at IS NOT NULL ORDER BY a.ordinal
"""


def dataset(folder: Path, count: int, channels: int, seconds: int) -> None:
    """A BIDS dataset of ``count`` recordings of the kinds in turn, with channels.tsv and events.tsv each."""
    folder.mkdir(parents=True)
    (folder / "dataset_description.json").write_text(json.dumps({"Name": "benchmark", "BIDSVersion": "1.9.0"}))
    noise = [np.random.default_rng(seed).normal(0, 40, (channels, seconds * RATE_HZ)) for seed in range(8)]
    for number in range(count):
        kind, data = KINDS[number % len(KINDS)], noise[number % len(noise)]
        modality = "meg" if kind == "fif" else "eeg"
        parent = folder / f"sub-{number:04}" / modality
        parent.mkdir(parents=True)
        stem = f"sub-{number:04}_task-rest"
        path = parent / f"{stem}_{modality}"
        if kind == "edf":
            whole = (data * 10).astype("<i2")
            labels = [f"E{row + 1}" for row in range(channels)]
            made = small_files.edf_bytes(labels, per_record=[RATE_HZ] * channels, n_records=seconds, data=whole)
            path.with_suffix(".edf").write_bytes(made)
        elif kind == "brainvision":
            small_files.brainvision(parent, path.name, data, RATE_HZ)
        elif kind == "fif":
            small_files.fif(path.with_suffix(".fif"), data * 1e-14, RATE_HZ)
        else:
            small_files.eeglab(path.with_suffix(".set"), data, RATE_HZ, fdt=True)
        names = [f"MEG{row:04d}" if kind == "fif" else f"E{row + 1}" for row in range(channels)]
        type_and_unit = "MEGMAG\tT" if kind == "fif" else "EEG\tuV"
        rows = "".join(f"{name}\t{type_and_unit}\n" for name in names)
        (parent / f"{stem}_channels.tsv").write_text("name\ttype\tunits\n" + rows)
        events = "".join(f"{at + 0.5}\t0.1\t{'go' if at % 2 else 'stop'}\n" for at in range(seconds))
        (parent / f"{stem}_events.tsv").write_text("onset\tduration\ttrial_type\n" + events)


@contextmanager
def endpoint(latency_s: float, bytes_per_s: float) -> Iterator[tuple[S3Server, str, list[psutil.Process]]]:
    """The endpoint, the address of the slow line to it, and the processes of both."""
    with ExitStack() as stack:
        found, processes = [], []
        for program, *more in (("s3_process.py",), ("slow_line_process.py", str(latency_s), str(bytes_per_s))):
            command = [sys.executable, str(_SUPPORT / program), *([str(found[0])] if found else []), *more]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            assert process.stdout is not None
            assert process.stdin is not None
            stack.callback(process.stdin.close)
            found.append(int(process.stdout.readline()))
            processes.append(psutil.Process(process.pid))
        yield S3Server(found[0]), f"http://127.0.0.1:{found[1]}", processes


def put(server: S3Server, folder: Path) -> int:
    """Put the dataset into the bucket, past the slow line; its bytes."""
    server.plain_client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "us-east-2"})
    paths = [path for path in folder.rglob("*") if path.is_file()]

    def one(path: Path) -> int:
        key = f"{folder.name}/{path.relative_to(folder).as_posix()}"
        server.plain_client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
        return path.stat().st_size

    with ThreadPoolExecutor(4) as threads:
        return sum(threads.map(one, paths))


class Held:
    """How many conversions held memory at which moment, as the ledger in Postgres says."""

    def __init__(self, url: str) -> None:
        self.samples: list[tuple[float, int]] = []
        self._engine = sqlalchemy.create_engine(url)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Held:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._left.set()
        self._thread.join()
        self._engine.dispose()

    def _run(self) -> None:
        while not self._left.wait(0.05):
            try:
                with self._engine.connect() as c:
                    row = c.execute(sqlalchemy.text(_HELD)).one()
            except sqlalchemy.exc.DBAPIError:  # its tables are not there yet
                continue
            self.samples.append((row.at.timestamp(), int(row.slots)))

    def attempts(self) -> list[Any]:
        """Every attempt that has ended."""
        with self._engine.connect() as c:
            return list(c.execute(sqlalchemy.text(_ATTEMPTS)).all())


def _spent(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _machine() -> tuple[float, float]:
    """Seconds of all cores so far, and of these the idle ones."""
    ticks = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK"), (ticks[3] + ticks[4]) / os.sysconf("SC_CLK_TCK")


def converted(folder: Path, url: str, beside: list[psutil.Process], count: int, workers: int) -> dict[str, Any]:
    """One command; what was spent while it was full, and what held memory when."""
    home = Home(folder / "home")
    keys = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-2"}
    environment = {**os.environ, **keys, "AWS_ENDPOINT_URL": url, "ZARRMILL_HOME": str(folder / "home")}
    command = [str(Path(sys.executable).with_name("zarrmill")), "convert", f"s3://{BUCKET}/xx000001"]
    command += ["--to", f"s3://{BUCKET}/served", "--workers", str(workers), "--json"]
    marks: list[tuple[float, dict[str, float], float, tuple[float, float]]] = []
    started: dict[str, float] = {}
    ended = 0
    with in_use(home, "postgres") as database, Held(database) as held:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "recording_started":
                started[event["path"]] = time.time()
                if len(started) in (1, count):
                    marks.append((time.monotonic(), cpu_seconds(process.pid), _spent(beside), _machine()))
            elif event["event"] == "recording_ended":
                ended += event["outcome"] == "done"
        if process.wait() != 0 or ended != count or len(marks) != 2:
            raise SystemExit(
                f"zarrmill ended with {process.returncode}; {len(started)} began and {ended} of {count} were served"
            )
        attempts = held.attempts()
    with stopped(home):
        pass
    (begun, before, beside_before, machine_before), (full, after, beside_after, machine_after) = marks
    wall, cores = full - begun, len(os.sched_getaffinity(0))
    spent = {role: round(seconds - before.get(role, 0.0), 2) for role, seconds in after.items()}
    beside_s = beside_after - beside_before
    had = cores * wall - beside_s
    idle_s = (machine_after[1] - machine_before[1]) * cores / (os.cpu_count() or cores)
    worked = spent.get("children", 0.0) + spent.get("worker", 0.0)
    return {
        "full_s": round(wall, 2),
        "cores": cores,
        "cpu_s": spent,
        "endpoint_and_proxy_cpu_s": round(beside_s, 2),
        "busy": round(worked / had, 3),
        "of_ours": round(worked / (sum(spent.values()) + idle_s), 3),
        "all_of_zarrmill": round(sum(spent.values()) / had, 3),
        "idle": round((machine_after[1] - machine_before[1]) / (machine_after[0] - machine_before[0]), 3),
        **_waits(attempts, started, held.samples),
    }


def _waits(attempts: list[Any], started: dict[str, float], samples: list[tuple[float, int]]) -> dict[str, Any]:
    """What held memory outside its conversion, and the medians of the stages."""
    stages: dict[str, list[float]] = {}
    may_hold: list[tuple[float, float]] = []
    for one in attempts:
        for name, seconds in one.stage_seconds.items():
            stages.setdefault(name, []).append(seconds)
        come = one.started_at.timestamp() + one.stage_seconds.get("fetch", 0.0)
        may_hold.append((come, one.ended_at.timestamp() - one.stage_seconds.get("upload", 0.0) + 0.5))
    fetched = {one.path: begun for one, (begun, _end) in zip(attempts, may_hold, strict=True)}
    beyond = sum(slots > sum(begun <= at <= end for begun, end in may_hold) for at, slots in samples)
    held_s = sum(slots * (later - at) for (at, slots), (later, _) in pairwise(samples))
    return {
        "attempts": len(attempts),
        "held_in_fetch": sum(at < fetched[path] for path, at in started.items() if path in fetched),
        "held_beyond": beyond,
        "samples": len(samples),
        "held_over_child_seconds": round(held_s / sum(stages["child"]), 3),
        "stages": {name: round(statistics.median(values), 3) for name, values in sorted(stages.items())},
    }


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="24 recordings of a minute")
    parser.add_argument("--recordings", type=int)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--seconds", type=int, help="Default: 120, or 60 with --quick.")
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--mb-s", type=float, default=50.0)
    given = parser.parse_args()
    count = given.recordings or (24 if given.quick else 200)
    seconds = given.seconds or (60 if given.quick else 120)
    with tempfile.TemporaryDirectory() as folder, endpoint(given.latency_ms / 1000, given.mb_s * 1e6) as there:
        server, url, processes = there
        source = Path(folder) / "xx000001"
        dataset(source, count, given.channels, seconds)
        size = put(server, source)
        found = converted(Path(folder), url, processes, count, len(os.sched_getaffinity(0)))
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    shape = {"recordings": count, "channels": given.channels, "seconds_each": seconds, "rate_hz": RATE_HZ}
    line = {"source_bytes": size, "latency_ms": given.latency_ms, "mb_s": given.mb_s}
    if given.json:
        print(json.dumps({"commit": commit, **shape, **line, **found}, indent=1))
        return
    print(
        f"{count} recordings of {given.channels} channels x {seconds} s, {size / 1e6:.0f} MB, {given.latency_ms:g} ms, {given.mb_s:g} MB/s"
    )
    print(
        f"full for {found['full_s']} s on {found['cores']} cores: busy {found['busy']}, of ours {found['of_ours']}, idle {found['idle']}, all of zarrmill {found['all_of_zarrmill']}"
    )
    print(
        f"held in fetch {found['held_in_fetch']} of {found['attempts']}, held beyond {found['held_beyond']} of {found['samples']} samples; "
        f"held over child seconds {found['held_over_child_seconds']}"
    )
    print("stages " + ", ".join(f"{name} {seconds}" for name, seconds in found["stages"].items()))
    print(
        "processor seconds "
        + ", ".join(f"{role} {seconds}" for role, seconds in found["cpu_s"].items())
        + f", endpoint and proxy {found['endpoint_and_proxy_cpu_s']}"
    )


if __name__ == "__main__":
    main()
