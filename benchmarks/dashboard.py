"""Pages of the dashboard over a database of 1,000,000 recordings and 5,000,000 attempts: milliseconds of each against a page of ``SELECT 1``.

Each page is asked of the application by a client in the same process: what is timed is the routing, the statements and the template, and
no network. Beside it stands a page that only asks ``SELECT 1`` through the same driver, served in the same way and asked in turn with it, so
that the ratio means the same on every machine. One dataset has 25,000 recordings in every state, one has 25,000 of which each is served and
verified; ``--quick`` has 58,000 recordings and 61,000 attempts in all.

    python benchmarks/dashboard.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from asked_application import application, first_answer
from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

ROUNDS = 15
TOKEN = "a-token-of-the-benchmark"  # noqa: S105 it opens nothing but this benchmark's own server
LARGE = "/dashboard/datasets/xx000001"
VERIFIED = "/dashboard/datasets/zv000001"
PAGES = (
    "/dashboard",
    "/dashboard?sort=missing&offset=500",
    "/dashboard?search=study&standing=partial",
    "/dashboard/plots",
    "/dashboard/plots/coverage.csv",
    "/dashboard/runs",
    "/dashboard/runs?state=completed&offset=50",
    f"{LARGE}/runs/1",
    f"{LARGE}/runs/2",
    LARGE,
    f"{LARGE}?state=failed&code=not_continuous",
    f"{LARGE}?q=run-3&sort=-tried",
    f"{LARGE}/recordings/sub-00002/eeg/sub-00002_task-rest_run-2_eeg.eeglab",
    VERIFIED,
    f"{VERIFIED}?state=verified&sort=-tried",
)
_ELSEWHERE, _VERIFIED = "/elsewhere", "/verified"
_ONLY_VERIFIED = (
    "INSERT INTO policies (dataset_pk) SELECT pk FROM datasets WHERE target = :target ON CONFLICT DO NOTHING",
    "DELETE FROM recordings r USING datasets d WHERE d.pk = r.dataset_pk AND d.target = :target AND r.served_source IS NULL",
    """
    UPDATE datasets SET store_count = 25000, failure_count = 0, pending_count = 0, discovered_count = 25000, errors = 0
    WHERE target = :target
    """,
    """
    INSERT INTO store_verdicts (recording_pk, dataset_pk, digest, body_digest, source, status, checked, mismatches, seed, revision)
    SELECT s.recording_pk, s.dataset_pk, s.digest, 'b', s.source, 'verified', 100, 0, 0, 1
    FROM stores s JOIN datasets d ON d.pk = s.dataset_pk AND d.target = :target
    """,
)
_ATTEMPTS = text("""
    INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, floor_bytes, projected_bytes, permitted_bytes, scratch_bytes,
                          measured_bytes, outcome, code, started_at, ended_at, stage_seconds)
    SELECT gen_random_uuid(), r.pk, u.id, 'w/' || r.pk % 8, 'edf', (ARRAY['in_memory', 'streamed'])[1 + r.pk % 2], 100000000, 120000000, 120000000, 0,
           60000000 + abs(hashint8(r.pk)) % 60000000, CASE WHEN r.code IS NULL THEN 'done' ELSE 'failed' END, r.code,
           at - interval '20 seconds', at, '{"fetch": 4, "child": 14, "upload": 2}'
    FROM recordings r JOIN datasets d ON d.pk = r.dataset_pk AND d.target = :target JOIN runs u ON u.dataset_pk = d.pk,
         LATERAL (SELECT zarrmill_now() - make_interval(secs => 10 + abs(hashint8(r.pk * 8 + :nth)) % 5184000) AS at) moments
""")


@dataclass(frozen=True)
class Row:
    """One page: median and worst milliseconds, the median over that of the page of SELECT 1, SQL statements, bytes."""

    page: str
    median_ms: float
    worst_ms: float
    ratio: float
    statements: int
    size_bytes: int


def fill_state(engine: Engine, target: str, *, datasets: int, each: int, attempts: int) -> None:
    """The archive of the tests, beside it ``datasets`` of ``each`` recordings with ``attempts`` each, over sixty days, and a verified one."""
    from filled_state import fill
    from large_archive import build

    with engine.begin() as c:
        fill(c, datasets=datasets, each=each, target=_ELSEWHERE, prefix="yy", attempted=False)
        for nth in range(attempts):
            c.execute(_ATTEMPTS, {"target": _ELSEWHERE, "nth": nth})
        # of ten recordings that ``fill`` makes, eight are served
        fill(c, datasets=1, each=25_000 * 10 // 8, target=_VERIFIED, prefix="zv", attempted=False)
        for statement in _ONLY_VERIFIED:
            c.execute(text(statement), {"target": _VERIFIED})
    build(engine, target=target)
    with engine.begin() as c:
        c.execute(
            text("UPDATE datasets SET target = :target WHERE target IN (:elsewhere, :verified)"),
            {"target": target, "elsewhere": _ELSEWHERE, "verified": _VERIFIED},
        )
    with engine.connect() as c:
        c.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE"))


def timed(client: TestClient, page: str) -> float:
    """Milliseconds of one answer."""
    began = time.perf_counter()
    answer = client.get(page)
    took = (time.perf_counter() - began) * 1000
    assert answer.status_code == 200, f"{page}: {answer.status_code}"
    return took


def ask(client: TestClient, plain: TestClient, engine: Engine, page: str) -> Row:
    """Ask for it and for the page of SELECT 1 in turn; the first time of each is not counted."""
    statements, size_bytes = first_answer(client, engine, page)
    timed(plain, "/")
    took, alone = [], []
    for _ in range(ROUNDS):
        took.append(timed(client, page))
        alone.append(timed(plain, "/"))
    median = statistics.median(took)
    return Row(
        page,
        round(median, 1),
        round(max(took), 1),
        round(median / statistics.median(alone), 1),
        statements,
        size_bytes,
    )


def plain_page(engine: Engine) -> TestClient:
    """A client of an application with one page, which asks SELECT 1."""
    from fastapi import FastAPI
    from starlette.responses import HTMLResponse
    from starlette.testclient import TestClient

    app = FastAPI()

    @app.get("/")
    def one() -> HTMLResponse:
        with engine.connect() as c:
            return HTMLResponse(f"<p>{c.scalar(text('SELECT 1'))}</p>")

    return TestClient(app)


def measure(*, datasets: int, each: int, attempts: int) -> list[Row]:
    """The rows of one size."""
    put = partial(fill_state, datasets=datasets, each=each, attempts=attempts)
    with application(put, admin_tokens=f"bench:operate:{TOKEN}") as (client, engine):
        signed = client.post("/dashboard/sign-in", data={"token": TOKEN}, headers={"sec-fetch-site": "same-origin"})
        assert signed.status_code == 200, signed.status_code
        plain = plain_page(engine)
        return [ask(client, plain, engine, page) for page in PAGES]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quick", action="store_true", help="100 datasets of 50 recordings beside the large one")
    asked = parser.parse_args()
    datasets, each, attempts = (100, 50, 5) if asked.quick else (975, 1_000, 5)
    rows = measure(datasets=datasets, each=each, attempts=attempts)
    if asked.json:
        size = {
            "datasets": datasets + 81,
            "recordings": datasets * each + 52_881,
            "attempts": datasets * each * attempts + 36_000,
        }
        print(json.dumps({"cpus": os.cpu_count(), **size, "rows": [asdict(row) for row in rows]}, indent=1))
        return
    print(f"{'page':<72} {'median ms':>9} {'worst ms':>9} {'ratio':>6} {'statements':>10} {'bytes':>9}")
    for row in rows:
        print(
            f"{row.page:<72} {row.median_ms:>9} {row.worst_ms:>9} {row.ratio:>6} {row.statements:>10} {row.size_bytes:>9,}"
        )


if __name__ == "__main__":
    main()
