"""Questions over HTTP to a database of 1,000 datasets and 1,000,000 recordings: milliseconds of each, and its statements.

Each question is asked of the application by a client in the same process, so what is timed is the routing, the statements and the
JSON, and no network. ``--quick`` has 100 datasets and 10,000 recordings.

    python benchmarks/questions.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asked_application import application, first_answer

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

ROUNDS = 30
QUESTIONS = (
    "/datasets?limit=200",
    "/datasets?has_zarr=1",
    "/datasets?has_zarr_verified=1",
    "/datasets?code=not_continuous",
    "/datasets?search=data&sort=newest&offset=40",
    "/datasets/xx000007",
    "/datasets/xx000007/recordings?limit=200",
    "/datasets/xx000007/recordings?state=failed",
    "/datasets/xx000007/recordings?state=pending&after=sub-00050",
    "/datasets/xx000007/recordings/sub-00010_eeg.edf",
    "/xx000007/zarr/sub-00010_eeg.zarr/zarr.json",
    "/metrics",
)


@dataclass(frozen=True)
class Row:
    """One question: median and worst milliseconds, SQL statements, bytes answered."""

    question: str
    median_ms: float
    worst_ms: float
    statements: int
    size_bytes: int


def ask(client: TestClient, engine: Engine, question: str) -> Row:
    """Ask it often; the first time is not counted."""
    statements, size_bytes = first_answer(client, engine, question)
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        client.get(question)
        took.append((time.perf_counter() - began) * 1000)
    return Row(question, round(statistics.median(took), 2), round(max(took), 2), statements, size_bytes)


def measure(datasets: int, each: int) -> list[Row]:
    """The rows of one size."""
    from filled_state import fill

    def put(engine: Engine, target: str) -> None:
        with engine.begin() as c:
            fill(c, datasets=datasets, each=each, target=target)

    with application(put) as (client, engine):
        return [ask(client, engine, question) for question in QUESTIONS]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="100 datasets of 100 recordings")
    asked = parser.parse_args()
    datasets, each = (100, 100) if asked.quick else (1_000, 1_000)
    rows = measure(datasets, each)
    if asked.json:
        head = {"cpus": os.cpu_count(), "datasets": datasets, "recordings": datasets * each}
        print(json.dumps({**head, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(f"{datasets:,} datasets, {datasets * each:,} recordings")
    print(f"{'question':<64} {'median ms':>9} {'worst ms':>9} {'statements':>10} {'bytes':>8}")
    for row in rows:
        print(f"{row.question:<64} {row.median_ms:>9} {row.worst_ms:>9} {row.statements:>10} {row.size_bytes:>8,}")


if __name__ == "__main__":
    main()
