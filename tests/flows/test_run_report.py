"""When a run's report is written, where it may lie, and when it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from s3_server import KEY_ID, SECRET, S3Server, s3_server_process
from sqlalchemy import Engine, event, text
from state_bench import Bench, planned

from contract.codes import FailureCode, PendingReason
from contract.errors import PublishError
from contract.layout import run_report_key
from db import datasets, recordings, retention, run_reports, runs
from db.datasets import Dataset
from flows.initialise import initialise
from flows.run_report import leave_owed_reports, leave_reports, made_report, remove_old_reports
from infra.settings import Settings, load_settings
from infra.storage import open_target
from infra.storage.folder import FolderTarget
from infra.storage.private import put_private

TAG = "<script>alert(1)"


class Place:
    """A dataset at a folder of this test, with runs made by hand."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.bench = Bench(engine)
        self.bench.now = datetime.now(UTC)
        self.engine = engine
        folder.mkdir()
        self.target = FolderTarget(folder, port=8321)
        with engine.begin() as c:
            self.bench.dataset = datasets.register(
                c, dataset_id="xx000042", target=self.target.url, source="/data/secret-place"
            )

    @property
    def dataset(self) -> Dataset:
        return self.bench.dataset

    def run(self, *, state: str = "completed", counts: dict[str, int] | None = None, error: str | None = None) -> Any:
        run = self.bench.start()
        with self.bench.begin() as c:
            runs.note_asked(c, run=run, source_commit="ab" * 20, asked={"by": f"ada {TAG}", "priority": 10})
            runs.finish(c, run=run, state=state, counts=counts, error=error)  # type: ignore[arg-type]  # a word of the table
        self.bench.end(run)
        return run

    def file(self, run: Any) -> Path:
        return self.target.root / run_report_key(run.id)

    def leave(self) -> tuple[str, ...]:
        return leave_reports(self.engine, self.target, self.dataset)


@pytest.fixture
def place(engine: Engine, tmp_path: Path) -> Place:
    return Place(engine, tmp_path / "served")


def test_a_report_lies_beside_the_datasets_for_its_owner_alone_and_is_written_once(place: Place) -> None:
    run = place.run(counts={"discovered": 3, "stores": 1, "failures": 1, "pending": 1})
    assert place.leave() == ()
    file = place.file(run)
    assert file.relative_to(place.target.root).as_posix() == f"_runs/{run.id}/report.html"
    assert (place.target.root / "_runs").stat().st_mode & 0o777 == 0o700
    page = file.read_text()
    assert re.search(r"<b>3</b> discovered.*<b>1</b> stores.*<b>1</b>\s*failures.*<b>1</b> pending", page, re.DOTALL)
    assert "/data/secret-place" not in page
    before = file.stat().st_mtime_ns
    assert place.leave() == (), "it stands"
    assert file.stat().st_mtime_ns == before


def test_a_run_that_was_killed_gets_its_report_from_the_one_that_takes_over(place: Place) -> None:
    killed = place.bench.start()
    taker = place.bench.start(owner_is_gone=True)
    assert place.leave() == ()
    assert place.file(killed).is_file(), "how it ended is known: it was killed"
    assert not place.file(taker).exists(), "this one runs"
    assert ">killed</span>" in place.file(killed).read_text()


def test_where_it_cannot_be_written_that_is_disclosed_and_upkeep_tries_again(place: Place, home: Path) -> None:
    (place.target.root / "_runs").write_text("in the way")
    run = place.run(error=f"it went wrong {TAG}", state="failed")
    (said,) = place.leave()
    assert said.startswith("the report of run 1 could not be written: Something that is not a folder is in the way")
    with place.engine.connect() as c:
        noted = run_reports.of_run(c, run_id=run.id)
    assert noted is not None
    assert (noted.size_bytes, noted.tries, noted.trouble) == (None, 1, said.partition("written: ")[2])
    (place.target.root / "_runs").unlink()
    assert leave_owed_reports(load_settings(), place.engine) == 1
    with place.engine.connect() as c:
        noted = run_reports.of_run(c, run_id=run.id)
    assert noted is not None
    assert (noted.size_bytes, noted.tries) == (place.file(run).stat().st_size, 2)
    page = place.file(run).read_text()
    assert TAG not in page, "whoever asked, and whatever went wrong, is text"
    assert page.count("&lt;script&gt;alert(1)") == 2


def test_it_is_tried_five_times_in_a_day_and_not_for_runs_of_before(place: Place) -> None:
    (place.target.root / "_runs").write_text("in the way")
    place.run()
    assert [len(place.leave()) for _ in range(6)] == [1, 1, 1, 1, 1, 0]
    with place.engine.begin() as c:
        c.execute(
            text(
                "UPDATE runs SET started_at = zarrmill_now() - interval '3 days', ended_at = zarrmill_now() - interval '2 days'"
            )
        )
        c.execute(text("DELETE FROM run_reports"))
    assert place.leave() == ()


def test_a_report_goes_with_its_run_when_that_is_old_enough(place: Place) -> None:
    old, young = place.run(), place.run()
    place.leave()
    with place.engine.begin() as c:
        c.execute(text("UPDATE runs SET ended_at = zarrmill_now() - interval '40 days' WHERE id = :id"), {"id": old.id})
    with place.engine.begin() as c:
        assert retention.trim(c, dataset=place.dataset, keep_days=30).runs == 0, "its report still stands"
    assert remove_old_reports(place.engine, place.target, place.dataset, keep_days=30) == 1
    assert [path.name for path in (place.target.root / "_runs").iterdir()] == [str(young.id)]
    with place.engine.begin() as c:
        assert retention.trim(c, dataset=place.dataset, keep_days=30).runs == 1
    assert remove_old_reports(place.engine, place.target, place.dataset, keep_days=30) == 0


def test_what_changed_is_told_against_the_run_before(place: Place) -> None:
    bench = place.bench
    first = bench.start()
    bench.apply(first, *(planned(name) for name in ("01", "02", "03")))
    bench.convert(first, "01")
    bench.convert(first, "02")
    failed = bench.claim(first, "03")
    with bench.begin() as c:
        recordings.fail(
            c, attempt_id=failed, run_number=first.number, code=FailureCode.NOT_CONTINUOUS, detail="20 epochs"
        )
        runs.finish(c, run=first, state="completed", counts={"discovered": 3, "stores": 2, "failures": 1, "pending": 0})
    bench.end(first)
    bench.wait(minutes=1)
    second = bench.start(versions=replace(first.versions, biosigio="1.3.0"))
    bench.apply(second, *(planned(name, source="s2") for name in ("01", "02", "03")))
    bench.convert(second, "01", source="s2")
    bench.convert(second, "03", source="s2")
    lost = bench.claim(second, "02")
    with bench.begin() as c:
        recordings.postpone(
            c,
            attempt_id=lost,
            run_number=second.number,
            reason=PendingReason.MEMORY_BUDGET,
            error="it ran out",
            counted=True,
        )
        runs.finish(
            c, run=second, state="completed", counts={"discovered": 3, "stores": 2, "failures": 0, "pending": 1}
        )
    with bench.engine.connect() as c:
        page = (made_report(c, run_id=second.id) or b"").decode()
    assert ">1 made again</h3>" in page
    assert ">1 converted, after an attempt that had not succeeded</h3>" in page
    assert ">1 not converted, though an earlier attempt had succeeded</h3>" in page
    assert re.search(r"biosigio</th><td[^>]*>1\.2\.13</td><td[^>]*>1\.3\.0<", page)
    assert re.search(r"failures</th><td[^>]*>1</td><td[^>]*>0<", page)
    assert "The recording or one of its sidecars changed." not in page, "it was planned as new by hand"
    assert "Not tried again before" in page


def _statements(engine: Engine, run_id: Any) -> tuple[int, bytes]:
    asked: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        with engine.connect() as c:
            page = made_report(c, run_id=run_id)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert page is not None
    return len(asked), page


def test_a_run_of_25_000_recordings_leaves_no_more_than_two_megabytes_by_as_many_statements(place: Place) -> None:
    bench = place.bench
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run, "01")
    few, small = _statements(place.engine, run.id)
    with place.engine.begin() as c:
        c.execute(
            text("""
                INSERT INTO recordings (dataset_pk, path, zarr, format, modality, size_bytes, discovered, source, inputs, due, code, detail,
                                        verdict_options, verdict_engine, verdict_biosigio)
                SELECT :dataset, 'sub-' || n || '/eeg/sub-' || n || '_task-' || repeat('x', 100) || '_eeg.edf', 'sub-' || n || '.zarr', 'edf', 'eeg',
                       1000 * n, true, 's', '', 'failed', (ARRAY['not_continuous', 'corrupt_or_truncated'])[1 + n % 2], repeat('why ', 200), 'o', 'e', 'b'
                FROM generate_series(1, 25000) n
            """),
            {"dataset": place.dataset.pk},
        )
        c.execute(
            text("""
                INSERT INTO attempts (id, recording_pk, run_id, worker, format, route, floor_bytes, projected_bytes, permitted_bytes, scratch_bytes,
                                      measured_bytes, outcome, code, error, started_at, ended_at, stage_seconds, stage_bytes)
                SELECT gen_random_uuid(), r.pk, :run, 'host/' || n % 20, (ARRAY['edf', 'bdf', 'fif'])[1 + n % 3], 'streamed', 100, 1e6 * (1 + n),
                       2e6 * (1 + n), 1, 1e6 * (1 + (n * 7919) % (n + 1)), CASE n % 5 WHEN 0 THEN 'failed' ELSE 'done' END,
                       CASE n % 5 WHEN 0 THEN 'not_continuous' END, CASE n % 5 WHEN 0 THEN repeat('why ', 200) END,
                       zarrmill_now() - make_interval(secs => 30000 - n), zarrmill_now() - make_interval(secs => 29990 - n),
                       '{"fetch": 1, "child": 8, "upload": 1}', '{"upload": 1000}'
                FROM (SELECT pk, row_number() OVER (ORDER BY pk) AS n FROM recordings WHERE source = 's') r
            """),
            {"run": run.id},
        )
    many, large = _statements(place.engine, run.id)
    assert many == few <= 20
    assert len(small) < 30_000
    assert 200_000 < len(large) < 2_000_000, f"{len(large):,} bytes"
    assert large.count(b'class="pt ') > 1000
    assert b"25,001 attempts" in large
    assert b"5 more workers are not drawn" in large
    assert b"and 12,490 more" in large


@pytest.fixture(scope="module")
def guarded() -> Iterator[S3Server]:
    with s3_server_process(guarded=True) as server:
        yield server


def test_in_a_bucket_that_is_open_below_the_prefix_nothing_is_written_until_it_is_narrowed(
    guarded: S3Server, database_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        database_url=database_url,
        s3_endpoint=guarded.url,
        s3_region="us-east-2",
        s3_access_key_id=KEY_ID,
        s3_secret_access_key=SECRET,
        s3_tries=1,
    )
    name, client = "bucket-of-reports", guarded.plain_client
    list(initialise(settings, f"s3://{name}/served", public=True))
    target = open_target(f"s3://{name}/served", settings)
    key, public = "_runs/1/report.html", "xx000001/zarr/index.json"
    # as this product opened buckets before there were reports
    policy = json.loads(client.get_bucket_policy(Bucket=name)["Policy"])
    (ours,) = policy["Statement"]
    client.put_bucket_policy(
        Bucket=name,
        Policy=json.dumps({**policy, "Statement": [{**ours, "Resource": [f"arn:aws:s3:::{name}/served/*"]}]}),
    )
    with pytest.raises(PublishError, match=r"Anybody can read .*_runs/.*zarrmill init --public"):
        put_private(target, key, b"for operators")
    assert "Contents" not in client.list_objects_v2(Bucket=name, Prefix="served/_runs/")
    list(initialise(settings, f"s3://{name}/served", public=True))
    assert json.loads(client.get_bucket_policy(Bucket=name)["Policy"])["Statement"] == [ours], (
        "narrowed, and nothing left of the old one"
    )
    put_private(target, key, b"for operators")
    target.put(public, b"{}", content_type="application/json")
    assert httpx.get(f"{guarded.url}/{name}/served/{key}").status_code == httpx.codes.FORBIDDEN
    assert httpx.get(f"{guarded.url}/{name}/served/{public}").status_code == httpx.codes.OK
    kept = client.get_object(Bucket=name, Key=f"served/{key}")
    assert (kept["Body"].read(), kept["ContentType"], kept["CacheControl"]) == (
        b"for operators",
        "text/html; charset=utf-8",
        "private, no-store",
    )
    assert [one["Key"] for one in client.list_objects_v2(Bucket=name, Prefix="served/_runs/")["Contents"]] == [
        f"served/{key}"
    ]
