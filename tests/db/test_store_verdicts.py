"""Verdicts on stores: which are due, which are kept, and which stand after what happens next."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import text
from state_bench import Bench, fingerprint, planned

from db import datasets, store_objects, store_verdicts, stores, verdicts
from db.coverage import Coverage
from db.runs import Run
from db.store_verdicts import ServedStoreRow

pytestmark = pytest.mark.postgres_versions


def published(bench: Bench, *names: str) -> Run:
    """Each recording is converted and the dataset published; the run holds it still."""
    run = bench.start()
    bench.apply(run, *(planned(name) for name in names))
    for name in names:
        bench.convert(run, name)
    publish(bench, run, len(names))
    return run


def publish(bench: Bench, run: Run, stores_count: int, etag: str = "e1") -> None:
    counts = Coverage(discovered=stores_count, stores=stores_count, failures=0, pending=0)
    with bench.begin() as c:
        datasets.note_published(
            c, run=run, source_commit="a" * 40, index_etag=etag, counts=counts, duration_s=1.0, errors=0
        )


def due(bench: Bench, **more: object) -> list[str]:
    with bench.begin() as c:
        return [path.split("/")[0] for _, path in store_verdicts.stores_to_check(c, dataset=bench.dataset, **more)]  # type: ignore[arg-type]  # its own keywords


def row(bench: Bench, name: str) -> ServedStoreRow:
    with bench.begin() as c:
        found = store_verdicts.served_store(c, dataset=bench.dataset, recording_id=bench.state(name).id)
    assert found is not None
    return found


def keep(bench: Bench, store: ServedStoreRow, status: str = "verified") -> bool:
    with bench.begin() as c:
        return store_verdicts.found(
            c,
            store=store,
            body_digest="body",
            status=status,
            why="no" if status == "unverifiable" else None,
            checked=3,
            mismatches=int(status == "failed"),
            examples=[{"check": "x", "path": "p", "detail": "d"}] if status == "failed" else [],
            seed=0,
        )


def test_a_verdict_stands_until_its_store_is_another(bench: Bench) -> None:
    run = published(bench, "01", "02")
    bench.end(run)
    assert due(bench) == ["sub-01", "sub-02"]
    first = row(bench, "01")
    assert keep(bench, first)
    assert due(bench) == ["sub-02"]
    assert due(bench, every=True) == ["sub-01", "sub-02"]
    assert keep(bench, row(bench, "02"), "unverifiable")
    assert due(bench) == []
    with bench.begin() as c:
        stores_changed = {first.zarr: (9, fingerprint("another root"), "etag")}
        store_objects.note_object(c, dataset=bench.dataset, name="zarr.json", objects=stores_changed)
    assert due(bench) == ["sub-01"]
    assert row(bench, "01").proved_body == "body", "its body was verified, and may be known to be the same"
    assert not keep(bench, first), "it is about a store that is served no longer"
    with bench.begin() as c:
        old = store_verdicts.verdict_of(c, recording_id=first.recording_id)
    assert old is not None
    assert (old.status, old.stands) == ("verified", False)


def test_old_verdicts_come_up_again_a_part_at_a_time(bench: Bench) -> None:
    bench.end(published(bench, "01", "02", "03"))
    for name in ("02", "03", "01"):
        assert keep(bench, row(bench, name))
        bench.wait(hours=1)
    assert due(bench, again_days=2) == []
    assert row(bench, "02").proved_body is None, "what is compared although its verdict stands is compared whole"
    bench.wait(days=2)
    assert due(bench) == [], "a verdict does not fall by its age"
    assert due(bench, again_days=3) == []
    assert due(bench, again_days=2) == ["sub-02", "sub-03"], "one in two of three stores, rounded up: the oldest"
    assert due(bench, again_days=1) == ["sub-01", "sub-02", "sub-03"]
    assert keep(bench, row(bench, "02"))
    assert due(bench, again_days=2) == ["sub-01", "sub-03"]
    assert keep(bench, row(bench, "01"), "failed")
    assert due(bench, again_days=2) == ["sub-01", "sub-03"], "what is due by itself takes nobody's turn"


def test_what_is_being_replaced_is_not_judged(bench: Bench) -> None:
    run = published(bench, "01")
    store = row(bench, "01")
    assert not keep(bench, store, "failed"), "a run holds the dataset, and may write before it notes"
    assert keep(bench, store), "what holds, holds"
    bench.apply(run, planned("01", source="s2"))
    assert due(bench, every=True) == [], "what is no longer true to its source is not published"
    bench.apply(run, planned("01"))
    attempt = bench.claim(run, "01")
    with bench.begin() as c:
        stores.open_intent(c, attempt_id=attempt, run_number=run.number)
    assert not keep(bench, store), "it is being put anew"


def test_a_dataset_follows_its_stores(bench: Bench) -> None:
    run = published(bench, "01", "02")
    bench.end(run)

    def waits() -> bool:
        with bench.begin() as c:
            return bench.dataset.pk in {one.pk for one in verdicts.to_verify(c)}

    def verified() -> bool:
        with bench.begin() as c:
            sql = f"SELECT {verdicts.HAS_ZARR_VERIFIED} FROM datasets d WHERE d.pk = :pk"
            return bool(c.scalar(text(sql), {"pk": bench.dataset.pk}))

    def record(**more: object) -> str | None:
        with bench.begin() as c:
            found = verdicts.tally(c, dataset=bench.dataset)
            return verdicts.record(
                c,
                dataset=bench.dataset,
                source_commit="a" * 40,
                checked=found.checked,
                mismatches=found.mismatches,
                stores=(found.verified, found.failed, found.unverifiable),
                **more,  # type: ignore[arg-type]  # its own keywords
            )

    assert waits()
    assert keep(bench, row(bench, "01"))
    assert record() == "verified"
    assert not verified(), "a store has no verdict yet"
    assert keep(bench, row(bench, "02"))
    assert record(index_etag="another") is None, "another index was published meanwhile"
    assert record(index_etag="e1") == "verified"
    assert (verified(), waits()) == (True, False)
    assert keep(bench, row(bench, "02"), "failed")
    assert record(index_etag="e1") == "failed"
    assert (verified(), waits()) == (False, True), "what has failed is looked at again"
    assert due(bench) == ["sub-02"]
    assert keep(bench, row(bench, "02"))
    assert record(index_etag="e1") == "verified"
    again = bench.start()
    publish(bench, again, 2, etag="e2")
    bench.end(again)
    assert (verified(), waits()) == (False, True), "the index is another"
    assert due(bench) == [], "its stores are not"


def test_the_digest_of_a_store_is_that_of_its_objects(bench: Bench) -> None:
    other = stores.pack_digests({"zarr.json": (3, fingerprint("other"))})
    run = bench.start()
    bench.apply(run, *(planned(name) for name in ("01", "02", "03")))
    for name, more in (("01", {}), ("02", {}), ("03", {"digests": other})):
        bench.convert(run, name, **more)
    digests = [row(bench, name).digest for name in ("01", "02", "03")]
    assert digests[0] == digests[1] != digests[2]
    assert digests[2] == hashlib.sha256(other).hexdigest()
