"""Datasets, documents, the catalog, the outbox, the ledger of machines, verdicts of fidelity."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, text
from state_bench import Bench

from contract.errors import LostLease, Refused
from db import catalog, datasets, documents, ledger, outbox, stores, verdicts
from db.callbacks_waiting import waiting_callbacks
from db.coverage import Coverage
from db.datasets import DatasetFacts
from db.leases import Owner
from db.ledger import Part
from db.runs import Run

COUNTS = Coverage(discovered=6, stores=3, failures=2, pending=1)
ME = Owner(host="here", pid=1, lock_path="/home/locks/1")


def publish(bench: Bench, run: Run, counts: Coverage = COUNTS) -> None:
    with bench.begin() as c:
        datasets.note_published(
            c, run=run, source_commit="a" * 40, index_etag=str(uuid4()), counts=counts, duration_s=90.5, errors=3
        )


def test_datasets_are_found_by_id_target_and_source(bench: Bench) -> None:
    target, source = f"/target/{uuid4()}", f"/source/{uuid4()}"
    with bench.begin() as c:
        assert datasets.find(c, target=target) is None
        assert datasets.next_free_id(c, target=target) == "xx000001"
        one = datasets.register(c, dataset_id="xx000007", target=target, source=source)
        other = datasets.register(c, dataset_id="ab000001", target=target, source=source)
        assert datasets.next_free_id(c, target=target) == "xx000008"
        assert datasets.find(c, source=source) == other
        assert datasets.find(c, dataset_id="xx000007", target=target) == one
        moved = datasets.register(c, dataset_id="xx000007", target=target, source="/elsewhere")
        assert (moved.pk, moved.source) == (one.pk, "/elsewhere")
        assert [found.dataset_id for found in datasets.list_datasets(c, target=target)] == ["ab000001", "xx000007"]
        datasets.register(c, dataset_id="xx999999", target=target, source=source)
        with pytest.raises(Refused, match="--dataset-id"):
            datasets.next_free_id(c, target=target)


def test_two_commands_are_given_different_ids(bench: Bench) -> None:
    target = f"/target/{uuid4()}"

    def take() -> str:
        with bench.begin() as c:
            found = datasets.next_free_id(c, target=target)
            datasets.register(c, dataset_id=found, target=target, source="/source")
            return found

    with ThreadPoolExecutor(3) as pool:
        taken = [future.result() for future in [pool.submit(take) for _ in range(3)]]
    assert sorted(taken) == ["xx000001", "xx000002", "xx000003"]


def test_the_catalog_lists_public_active_ready_datasets_with_stores(bench: Bench) -> None:
    target = f"/target/{uuid4()}"
    with bench.begin() as c:
        made = {
            name: datasets.register(c, dataset_id=f"xx00000{number}", target=target, source="/s")
            for number, name in enumerate(["good", "private", "parked", "empty", "failed", "never"], start=1)
        }
    for name in ("good", "private", "parked", "failed", "empty"):
        bench.dataset = made[name]
        none = Coverage(discovered=2, stores=0, failures=2, pending=0)
        publish(bench, bench.start(), none if name == "empty" else COUNTS)
    facts = DatasetFacts(
        name="Rest", doi="10.1/x", license="CC0", modalities=("eeg", "meg"), subject_count=4, has_hed=False
    )
    with bench.begin() as c:
        assert datasets.set_facts(c, dataset=made["good"], facts=facts)
        assert not datasets.set_facts(c, dataset=made["good"], facts=facts)
        c.execute(text("UPDATE datasets SET visibility = 'private' WHERE pk = :pk"), {"pk": made["private"].pk})
        c.execute(text("UPDATE datasets SET active = false WHERE pk = :pk"), {"pk": made["parked"].pk})
        c.execute(
            text("UPDATE datasets SET status = 'failed', failed_at = now() WHERE pk = :pk"), {"pk": made["failed"].pk}
        )
        [row] = catalog.catalog_rows(c, target=target)
        assert row.zarr_verify_status is None
        status = verdicts.record(
            c, dataset=made["good"], source_commit="a" * 40, checked=5, mismatches=0, stores=(3, 0, 0)
        )
        [verified] = catalog.catalog_rows(c, target=target)
        found = datasets.find(c, dataset_id="xx000001", target=target)
    assert found is not None
    assert found.facts == facts
    assert (row.dataset_id, row.name, row.doi, row.modalities, row.subject_count) == (
        "xx000001",
        "Rest",
        "10.1/x",
        ("eeg", "meg"),
        4,
    )
    assert (row.store_count, row.recording_count, row.recordings_unavailable, row.total_recording_duration) == (
        3,
        5,
        2,
        90.5,
    )
    assert (row.zarr_converted_at, row.zarr_source_commit, row.zarr_errors) == (bench.now, "a" * 40, 3)
    assert (status, verified.zarr_verify_status, verified.zarr_verified_at) == ("verified", "verified", bench.now)


def test_a_verdict_follows_from_what_was_checked_and_stays_small(bench: Bench) -> None:
    with bench.begin() as c:
        assert verdicts.latest(c, dataset=bench.dataset) is None
        for checked, mismatches, expected in ((0, 0, "unverifiable"), (4, 0, "verified"), (4, 1, "failed")):
            examples = [{"path": "x" * 900, "n": n} for n in range(40)]
            status = verdicts.record(
                c,
                dataset=bench.dataset,
                source_commit="b" * 40,
                checked=checked,
                mismatches=mismatches,
                examples=examples,
            )
            assert status == expected
        found = verdicts.latest(c, dataset=bench.dataset)
    assert found is not None
    assert (found.status, len(found.examples), found.examples[0]["n"]) == ("failed", 4, 0)


def test_documents_are_remembered_by_target_and_key(bench: Bench) -> None:
    target = f"/target/{uuid4()}"
    with bench.begin() as c:
        assert documents.find(c, target=target, key="k") is None
        documents.note(c, target=target, key="k", etag="1", size_bytes=5, sha256="a", row_count=7)
        documents.note(c, target=target, key="k", etag="2", size_bytes=6, sha256="b", comparable_sha256="c")
        found = documents.find(c, target=target, key="k")
        assert found is not None
        assert (
            found.etag,
            found.size_bytes,
            found.sha256,
            found.comparable_sha256,
            found.row_count,
            found.written_at,
        ) == (
            "2",
            6,
            "b",
            "c",
            None,
            bench.now,
        )
        documents.forget(c, target=target, key="k")
        documents.forget(c, target=target, key="k")
        assert documents.find(c, target=target, key="k") is None


def test_a_run_tells_one_end_and_drops_a_beginning_that_nobody_heard(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        assert outbox.enqueue(c, run=run, status="converting", body=b"1")
        assert not outbox.enqueue(c, run=run, status="converting", body=b"1")
        assert outbox.enqueue(c, run=run, status="ready", body=b"2")
        assert not outbox.enqueue(c, run=run, status="ready", body=b"2")
        with pytest.raises(LostLease):
            outbox.enqueue(c, run=run, status="failed", body=b"3")
        with pytest.raises(LostLease):
            outbox.enqueue(c, run=run, status="converting", body=b"1")
        assert [delivery.status for delivery in due(c, bench)] == ["ready"]


A, B = "https://a.example.org#1", "https://b.example.org#2"


def due(c: Connection, bench: Bench, endpoint: str = A) -> list[outbox.Delivery]:
    found = outbox.due_deliveries(c, endpoint=endpoint, limit=1000)
    return [delivery for delivery in found if delivery.dataset_id == bench.dataset.dataset_id]


def test_callbacks_of_a_dataset_are_delivered_in_order_and_again_until_accepted(bench: Bench) -> None:
    first = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=first, status="ready", body=b"1")
    second = bench.start(owner_is_gone=True)
    with bench.begin() as c:
        outbox.enqueue(c, run=second, status="failed", body=b"2")
        [one] = due(c, bench)
        assert (one.body, one.tries, one.run_id) == (b"1", 1, first.id)
        assert due(c, bench) == []
        outbox.failed_delivery(c, pk=one.pk, endpoint=A, error="503")
        assert due(c, bench) == []
    bench.wait(seconds=44)
    with bench.begin() as c:
        assert due(c, bench) == []
    bench.wait(seconds=31)  # a minute, and a quarter more or less
    with bench.begin() as c:
        [again] = due(c, bench)
        assert (again.pk, again.tries) == (one.pk, 2)
        outbox.failed_delivery(c, pk=one.pk, endpoint=A, error="503")
    bench.wait(seconds=89)
    with bench.begin() as c:
        assert due(c, bench) == []
    bench.wait(seconds=61)
    with bench.begin() as c:
        [third] = due(c, bench)
        outbox.delivered(c, pk=third.pk, endpoint=A)
        outbox.delivered(c, pk=third.pk, endpoint=A)
        [other] = due(c, bench)
        assert other.body == b"2"
        outbox.delivered(c, pk=other.pk, endpoint=A)
        assert due(c, bench) == []
        assert outbox.close_told(c, endpoints=[A]) >= 2
        assert c.scalar(text("SELECT count(body) FROM callbacks WHERE dataset_pk = :pk"), {"pk": bench.dataset.pk}) == 0


def test_a_beginning_that_is_being_delivered_is_told_before_the_end_or_dropped(bench: Bench) -> None:
    for accepted in (True, False):
        run = bench.start(owner_is_gone=True)
        with bench.begin() as c:
            outbox.enqueue(c, run=run, status="converting", body=b"1")
            [beginning] = due(c, bench)
            outbox.enqueue(c, run=run, status="ready", body=b"2")
            assert due(c, bench) == []
            if accepted:
                outbox.delivered(c, pk=beginning.pk, endpoint=A)
            else:
                outbox.failed_delivery(c, pk=beginning.pk, endpoint=A, error="503")
            [end] = due(c, bench)
            assert end.body == b"2"
            outbox.delivered(c, pk=end.pk, endpoint=A)
        bench.wait(hours=1)


def test_each_address_is_told_on_its_own_and_a_callback_is_over_when_all_have_it(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="converting", body=b"1")
        [first] = due(c, bench)
        outbox.delivered(c, pk=first.pk, endpoint=A)
        outbox.enqueue(c, run=run, status="ready", body=b"2")
        # the beginning is stale for those who have not heard it, and stays as history because one has
        [at_a], [at_b] = due(c, bench), due(c, bench, B)
        assert (at_a.body, at_b.body) == (b"2", b"2")
        outbox.delivered(c, pk=at_a.pk, endpoint=A)
        outbox.failed_delivery(c, pk=at_b.pk, endpoint=B, error="503")
        outbox.close_told(c, endpoints=[A, B])
        [owed] = outbox.owed(c, dataset_pk=bench.dataset.pk)
        assert (owed.status, owed.endpoint, owed.tries, owed.last_error) == ("ready", B, 1, "503")
        assert due(c, bench) == []
    bench.wait(minutes=2)
    with bench.begin() as c:
        assert due(c, bench) == []
        [again] = due(c, bench, B)
        assert again.tries == 2
        # an address that is taken out of the setting is waited for no longer
        outbox.close_told(c, endpoints=[A])
        assert outbox.owed(c, dataset_pk=bench.dataset.pk) == []
        assert [
            row[0]
            for row in c.execute(
                text("SELECT status FROM callbacks WHERE dataset_pk = :pk ORDER BY pk"), {"pk": bench.dataset.pk}
            )
        ] == ["converting", "ready"]


def test_what_two_take_at_the_same_moment_only_one_is_given(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="ready", body=b"1")
    barrier = threading.Barrier(3)

    def take() -> int:
        with bench.begin() as c:
            barrier.wait(timeout=90)
            return len(due(c, bench))

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(lambda _n: take(), range(3))) == [0, 0, 1]


def test_a_delivery_whose_command_died_is_given_to_the_next(bench: Bench) -> None:
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="converting", body=b"1")
        assert len(due(c, bench)) == 1
    bench.wait(minutes=2)
    with bench.begin() as c:
        assert [delivery.tries for delivery in due(c, bench)] == [2]


WHOLE = Part(memory_bytes=100, scratch_bytes=1000, slots=4)


def test_no_more_of_a_machine_is_reserved_than_it_has(bench: Bench) -> None:
    host = str(uuid4())
    with bench.begin() as c:
        ledger.declare_host(c, key=host, name="here", whole=WHOLE)
        assert ledger.free(c, host="unknown") is None
    barrier = threading.Barrier(4)

    def take() -> int:
        barrier.wait(timeout=90)
        got = 0
        for _ in range(5):
            with bench.begin() as c:
                got += (
                    ledger.reserve(c, host=host, part=Part(memory_bytes=9, scratch_bytes=1, slots=0), owner=ME)
                    is not None
                )
        return got

    with ThreadPoolExecutor(4) as pool:
        assert sum(future.result() for future in [pool.submit(take) for _ in range(4)]) == 11
    with bench.begin() as c:
        assert ledger.free(c, host=host) == Part(memory_bytes=1, scratch_bytes=989, slots=4)


def test_parts_come_back_when_given_back_or_their_owner_is_gone_or_silent(bench: Bench) -> None:
    host = str(uuid4())
    part = Part(memory_bytes=40, scratch_bytes=10, slots=1)
    with bench.begin() as c:
        ledger.declare_host(c, key=host, name="here", whole=WHOLE)
        mine = ledger.reserve(c, host=host, part=part, owner=ME)
        dead = ledger.reserve(c, host=host, part=part, owner=replace(ME, pid=2))
        assert mine is not None
        assert dead is not None
        assert ledger.reserve(c, host=host, part=part, owner=ME) is None
        assert ledger.reap(c, host=host, owner_is_gone=lambda owner: owner.pid == 2) == 1
        assert ledger.free(c, host=host) == Part(memory_bytes=60, scratch_bytes=990, slots=3)
        with pytest.raises(LostLease):
            ledger.renew(c, reservations=[mine, dead])
    bench.wait(seconds=50)
    with bench.begin() as c:
        ledger.renew(c, reservations=[mine])
    bench.wait(seconds=50)
    with bench.begin() as c:
        assert ledger.reap(c, host=host, owner_is_gone=lambda _: False) == 0
    bench.wait(seconds=10)
    with bench.begin() as c:
        assert ledger.reap(c, host=host, owner_is_gone=lambda _: False) == 1
        ledger.release(c, reservation=mine)
        assert ledger.free(c, host=host) == WHOLE


def test_a_machine_that_is_declared_again_keeps_what_is_reserved(bench: Bench) -> None:
    host = str(uuid4())
    with bench.begin() as c:
        ledger.declare_host(c, key=host, name="here", whole=WHOLE)
        reservation = ledger.reserve(c, host=host, part=Part(memory_bytes=60, scratch_bytes=0, slots=1), owner=ME)
        assert reservation is not None
        for memory, free in ((100, 40), (150, 90), (70, 10), (30, 0)):
            ledger.declare_host(c, key=host, name="here", whole=replace(WHOLE, memory_bytes=memory))
            assert ledger.free(c, host=host) == Part(memory_bytes=free, scratch_bytes=1000, slots=3)
        ledger.release(c, reservation=reservation)
        ledger.declare_host(c, key=host, name="here", whole=WHOLE)
        assert ledger.free(c, host=host) == WHOLE


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.tuples(st.integers(min_value=0, max_value=2**53), st.text("0123456789abcdef")),
        max_size=6,
    )
)
def test_digests_survive_packing_and_equal_ones_give_equal_bytes(objects: dict[str, tuple[int, str]]) -> None:
    packed = stores.pack_digests(objects)
    assert stores.unpack_digests(packed) == objects
    assert stores.pack_digests(dict(reversed(objects.items()))) == packed


def test_what_waits_for_long_is_counted_once_with_the_reason_of_the_oldest(bench: Bench) -> None:
    bench.wait(hours=2)
    with bench.begin() as c:
        before = waiting_callbacks(c, older_than=timedelta(hours=1)).count
    bench.wait(hours=-2)
    run = bench.start()
    with bench.begin() as c:
        outbox.enqueue(c, run=run, status="ready", body=b"1")
        for endpoint in (A, B):
            [one] = due(c, bench, endpoint)
            outbox.failed_delivery(c, pk=one.pk, endpoint=endpoint, error="503")
    bench.wait(hours=2)
    with bench.begin() as c:
        found = waiting_callbacks(c, older_than=timedelta(hours=1))
        assert (found.count - before, found.last_error) == (1, "503")
        outbox.close_told(c, endpoints=[])
        assert waiting_callbacks(c, older_than=timedelta(hours=1)).count == 0
