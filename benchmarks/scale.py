"""A dataset as large as they come: the seconds and the memory of its plan, its rerun and its documents, and whether they grow linearly.

Each row of the table is a process of its own, so that its peak memory is its own; the embedded Postgres is another and is not counted.

- ``plan``: ``zarrmill plan`` of a dataset that nobody has seen, its headers read: discovery, sidecars, fingerprints, projections.
- ``documents``: index.json, manifest.json and events.parquet (50 events a recording) of stores that the database holds.
- ``rerun``: ``zarrmill convert`` with nothing changed. Neither Prefect nor Dask starts, and no document is written.
- ``edit``: ``zarrmill plan`` after one channels.tsv was edited; it must name exactly that recording.

    python benchmarks/scale.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SIZES = (1_000, 5_000, 25_000)
QUICK_SIZES = (250, 1_000)
BARS = {"plan": (20, 500), "documents": (30, 500), "rerun": (10, 300), "edit": (20, 500)}  # seconds, MB; at 25,000


@dataclass(frozen=True)
class Row:
    """One process: wall and CPU seconds, peak resident MB (10**6 bytes), and the wall seconds of a thousand recordings."""

    step: str
    recordings: int
    seconds: float
    cpu_seconds: float
    peak_mb: float
    seconds_per_1000: float


def _timed(step: str, count: int, command: list[str], environment: dict[str, str]) -> tuple[Row, str]:
    """One command as a process: its row and what it printed."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, env=environment, stdout=printed)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        printed.seek(0)
        text = printed.read()
    if process.returncode != 0:
        sys.exit(f"{step} ended with {process.returncode}: {text[-2000:]}")
    peak_mb = usage.ru_maxrss * 1024 / 1e6
    cpu = usage.ru_utime + usage.ru_stime
    return Row(step, count, round(seconds, 2), round(cpu, 2), round(peak_mb, 1), round(seconds / count * 1000, 3)), text


def _in_database(step: str) -> None:
    """Run one step of ``benchmarks.archive`` in this process; source and target are given by the environment of the table."""
    import archive

    from flows.preview import opened_database
    from flows.survey import survey
    from infra.settings import load_settings

    source, target = Path(sys.argv[2]), Path(sys.argv[3])
    settings = load_settings()
    with opened_database(settings) as (engine, _url):
        if step == "fill":
            archive.fill(settings, engine, source, target)
            return
        for name in ("index.json", "manifest.json", "events.parquet"):
            (target / archive.DATASET_ID / "zarr" / name).unlink()
        surveyed = survey(settings, engine, archive.request_of(source, target))
        archive.publish_now(settings, engine, surveyed, archive.began_run(engine, surveyed))


def measure(count: int) -> list[Row]:
    """The rows of one size."""
    import archive

    from infra.home import Home
    from infra.services import stopped

    with tempfile.TemporaryDirectory(prefix="zarrmill-scale-") as place:
        source, target, home = (Path(place) / name for name in ("source", "served", "home"))
        archive.write_dataset(source, count)
        environment = {**os.environ, "ZARRMILL_HOME": str(home)}
        zarrmill = [str(Path(sys.executable).parent / "zarrmill")]
        again = [sys.executable, __file__]
        here = [str(source), str(target)]
        to = [str(source), "--to", str(target), "--dataset-id", archive.DATASET_ID]
        # the first command sets up the database, which is no part of a plan
        _timed("status", count, [*zarrmill, "status"], environment)
        plan, printed = _timed("plan", count, [*zarrmill, "plan", *to, "--json"], environment)
        assert json.loads(printed)["totals"]["actions"] == {"convert": count}
        _timed("fill", count, [*again, "fill", *here], environment)
        documents, _ = _timed("documents", count, [*again, "documents", *here], environment)
        rerun, printed = _timed("rerun", count, [*zarrmill, "convert", *to, "--json"], environment)
        assert json.loads(printed.splitlines()[-1])["changed"] is False, printed[-500:]
        edited = next(iter(sorted(source.glob("sub-*/ses-*/eeg/*_channels.tsv"))))
        edited.write_bytes(edited.read_bytes() + b"extra\tEEG\tuV\n")
        edit, printed = _timed("edit", count, [*zarrmill, "plan", *to, "--json"], environment)
        assert json.loads(printed)["totals"]["actions"] == {"convert": 1, "carry": count - 1}
        with stopped(Home(home)):
            pass
        return [plan, documents, rerun, edit]


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SIZES} recordings only")
    asked = parser.parse_args()
    sizes = QUICK_SIZES if asked.quick else SIZES
    rows = [row for count in sizes for row in measure(count)]
    if asked.json:
        machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
        print(json.dumps({"commit": _commit(), "machine": machine, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(f"{'step':<10} {'recordings':>10} {'seconds':>8} {'CPU':>6} {'peak MB':>8} {'s/1000':>7}  bar at 25,000")
    for row in sorted(rows, key=lambda row: (row.step, row.recordings)):
        seconds, megabytes = BARS[row.step]
        print(
            f"{row.step:<10} {row.recordings:>10,} {row.seconds:>8.2f} {row.cpu_seconds:>6.2f} {row.peak_mb:>8.1f} {row.seconds_per_1000:>7.3f}"
            f"  {seconds} s, {megabytes} MB"
        )


if __name__ == "__main__":
    if sys.argv[1:2] in (["fill"], ["documents"]):
        _in_database(sys.argv[1])
    else:
        main()
