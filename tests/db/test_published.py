"""What a snapshot for publishing holds: one moment, ordered, streamed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import InternalError
from state_bench import Bench, fingerprint, path_of, planned

from contract.codes import FailureCode, PendingReason, WhyDue
from db import recordings
from db.coverage import Coverage
from db.published import FailureRow, ManifestRow, PendingRow, published_snapshot
from db.recordings import PlannedAction
from db.runs import Run


def with_one_of_each(bench: Bench) -> Run:
    """Three stores, a failure and three pending, one of them converting."""
    run = bench.start()
    names = ["ö", "Z", "a", "_", "é", "b"]
    bench.apply(
        run,
        *(planned(name) for name in names),
        planned("x", PlannedAction.FAIL, code=FailureCode.STORE_PATH_COLLISION, detail="twin"),
    )
    bench.convert(run, "ö", events_row_count=2, duration_s=1.5)
    bench.convert(run, "Z", events=None, events_row_count=0, source_key="MD5E-s1--x.edf", duration_s=2.0)
    bench.convert(run, "é")
    for name in ("a", "b"):
        attempt = bench.claim(run, name)
        with bench.begin() as c:
            recordings.postpone(
                c,
                attempt_id=attempt,
                run_number=run.number,
                reason=PendingReason.MEMORY_BUDGET,
                error="MemoryError",
                counted=True,
            )
    bench.claim(run, "a")
    return run


def test_every_list_is_of_one_moment_and_ordered_by_code_point(bench: Bench) -> None:
    run = with_one_of_each(bench)
    with published_snapshot(bench.engine, bench.dataset) as published:
        bench.end(run)
        later = bench.start()
        bench.apply(later, planned("_", why=WhyDue.NEW))
        assert published.coverage == Coverage(discovered=7, stores=3, failures=1, pending=3)
        assert (published.duration_s, published.events_row_count, published.stores_with_events) == (63.5, 5, 2)
        assert published.biosigio_version == "1.2.13"
        entries = dict(published.stores())
        assert list(entries) == sorted(path_of(name).replace(".edf", ".zarr") for name in ("ö", "Z", "é"))
        assert entries[path_of("Z").replace(".edf", ".zarr")] == f'{{"path":"{path_of("Z")}"}}'.encode()
        assert [zarr for zarr, _ in published.events()] == sorted(zarr for zarr in entries if "Z" not in zarr)
        assert next(iter(published.manifest())) == ManifestRow(
            zarr=path_of("Z").replace(".edf", ".zarr"), source_key="MD5E-s1--x.edf", size_bytes=1000
        )
        assert list(published.failures()) == [
            FailureRow(
                path=path_of("x"),
                zarr=path_of("x").replace(".edf", ".zarr"),
                code=FailureCode.STORE_PATH_COLLISION,
                detail="twin",
                attempts=0,
            )
        ]
        pending = list(published.pending())
        assert [row.path for row in pending] == sorted(path_of(name) for name in ("_", "a", "b"))
        assert pending[1] == PendingRow(
            path=path_of("a"),
            zarr=path_of("a").replace(".edf", ".zarr"),
            reason=PendingReason.MEMORY_BUDGET,
            attempts=1,
            last_error="MemoryError",
            last_attempt_at=bench.now,
        )
        assert (pending[0].reason, pending[0].last_attempt_at) == (PendingReason.NOT_ATTEMPTED, None)
    with published_snapshot(bench.engine, bench.dataset) as published:
        assert published.coverage.discovered == 1


def test_stores_of_different_releases_name_none(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"), planned("02"))
    with published_snapshot(bench.engine, bench.dataset) as published:
        assert (published.biosigio_version, list(published.stores())) == (None, [])
    bench.convert(run, "01")
    bench.convert(run, "02", biosigio="1.2.14")
    with published_snapshot(bench.engine, bench.dataset) as published:
        assert published.biosigio_version is None


def test_a_snapshot_cannot_write_and_leaves_its_connection_as_it_was(bench: Bench) -> None:
    with published_snapshot(bench.engine, bench.dataset) as published, pytest.raises(InternalError, match="read-only"):
        published.connection.execute(text("DELETE FROM datasets"))
    with bench.begin() as c:
        c.execute(text("UPDATE datasets SET name = 'x' WHERE pk = :pk"), {"pk": bench.dataset.pk})
        assert c.scalar(text("SHOW transaction_isolation")) == "read committed"


def test_an_engine_that_fails_again_leaves_what_it_served_in_the_index(bench: Bench) -> None:
    run = bench.start()
    bench.apply(run, planned("01"))
    bench.convert(run)
    bench.end(run)
    newer = replace(bench.start().versions, engine="4")
    bench.wait(seconds=61)
    run = bench.start(versions=newer)
    bench.apply(run, planned("01", why=WhyDue.ENGINE))
    attempt = bench.claim(run)
    with bench.begin() as c:
        recordings.fail(c, attempt_id=attempt, run_number=run.number, code=FailureCode.NOT_CONTINUOUS, detail=None)
    state = bench.state()
    assert (state.due, state.published_as, state.verdict and state.verdict.engine) == ("failed", "stores", "4")
    assert state.served is not None
    assert (state.served.engine, state.served.source) == ("3", fingerprint("s1"))
    assert state.last_attempt_at == bench.now
