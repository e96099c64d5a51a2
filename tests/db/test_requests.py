"""The queue of requests: one waits and one runs per dataset and kind of work, whatever is asked in which order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from state_bench import VERSIONS, Bench

from db import datasets, drains, leases, pauses, policies, requests
from db.leases import Owner
from db.requests import Asked, Request, RequestMode

STRENGTH = {mode: number for number, mode in enumerate(requests.MODES)}


def ask(bench: Bench, mode: RequestMode = "auto", **more: object) -> Asked:
    with bench.begin() as c:
        return requests.ask(c, **({"dataset_pk": bench.dataset.pk, "mode": mode, "asked_by": "test"} | more))  # type: ignore[arg-type]  # tests name what differs


def start(bench: Bench, mode: RequestMode, *, gone: bool = False) -> tuple[object, Request | None]:
    with bench.begin() as c:
        run = leases.acquire(
            c,
            dataset=bench.dataset,
            owner=Owner(host="here", pid=1, lock_path="/l"),
            mode=mode,  # type: ignore[arg-type]  # every mode of a request but verify is one of a run
            versions=VERSIONS,
            owner_is_gone=lambda _owner: gone,
        )
        return run, requests.claim(c, run=run)


def standing(bench: Bench) -> list[Request]:
    with bench.begin() as c:
        return [one for one in requests.listed(c) if one.dataset_pk == bench.dataset.pk]


IMPOSSIBLE = {
    "two waiting": "INSERT INTO requests (dataset_pk, work, mode, why, asked_by) SELECT :pk, 'convert', 'full', 'new', 'x'",
    "a conversion to verify": "UPDATE requests SET mode = 'verify' WHERE dataset_pk = :pk",
    "ended at no moment": "UPDATE requests SET state = 'done' WHERE dataset_pk = :pk",
    "failed without an error": "UPDATE requests SET state = 'failed', ended_at = now() WHERE dataset_pk = :pk",
    "done with an error": "UPDATE requests SET state = 'done', ended_at = now(), error = 'x' WHERE dataset_pk = :pk",
    "running and never begun": "UPDATE requests SET state = 'running' WHERE dataset_pk = :pk",
    "an unknown why": "UPDATE requests SET why = 'mood' WHERE dataset_pk = :pk",
    "rebuilt on the source": "UPDATE requests SET rebuild_on = '{source}' WHERE dataset_pk = :pk",
    "waits at no moment": "UPDATE policies SET state = 'round', retry_round = 1 WHERE dataset_pk = :pk",
    "clean in a round": "UPDATE policies SET retry_round = 1 WHERE dataset_pk = :pk",
    "exhausted after four": "UPDATE policies SET state = 'exhausted', retry_round = 4 WHERE dataset_pk = :pk",
    "six rounds": "UPDATE policies SET state = 'exhausted', retry_round = 6 WHERE dataset_pk = :pk",
    "given up after one": "UPDATE policies SET state = 'given_up', infra_failures = 1 WHERE dataset_pk = :pk",
    "half a stamp": "UPDATE policies SET engine = '3' WHERE dataset_pk = :pk",
    "private and open": "UPDATE datasets SET visibility = 'private', anonymous = true WHERE pk = :pk",
    "withdrawn and active": "UPDATE datasets SET withdrawn_at = now() WHERE pk = :pk",
    "an alarm that ends first": "INSERT INTO alarms (kind, ended_at) SELECT 'x', '2000-01-01' FROM datasets WHERE pk = :pk",
    "an end told first": (
        "INSERT INTO alarms (kind, began_at, ended_at, told_ended) SELECT 'x', '2000-01-01', '2000-01-02', now() FROM datasets WHERE pk = :pk"
    ),
}


@pytest.mark.parametrize("statement", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_the_service_cannot_be(bench: Bench, statement: str) -> None:
    ask(bench)
    with pytest.raises(IntegrityError), bench.begin() as c:
        c.execute(text(statement), {"pk": bench.dataset.pk})


@pytest.mark.postgres_versions
def test_a_second_trigger_is_coalesced_and_told_so(bench: Bench) -> None:
    first = ask(bench, "auto")
    assert (first.coalesced, first.widened, first.request.state) == (False, False, "waiting")
    same = ask(bench, "auto")
    assert (same.coalesced, same.widened, same.request.pk) == (True, False, first.request.pk)
    stronger = ask(bench, "full", commit="main", rebuild_on={"biosigio"})
    assert (stronger.coalesced, stronger.widened) == (True, True)
    weaker = ask(bench, "retry-pending")
    assert not weaker.widened
    (now,) = standing(bench)
    assert (now.mode, now.commit, now.coalesced) == ("full", "main", 3)
    assert now.rebuild_on == {"options", "engine", "biosigio"}
    assert ask(bench, "auto", commit="newer").request.commit == "newer"
    assert not ask(bench, "verify").coalesced, "verifying is other work"


@given(
    asked=st.lists(
        st.tuples(st.sampled_from(requests.MODES[:3]), st.sampled_from([None, "a", "b"])), min_size=1, max_size=6
    )
)
def test_what_waits_does_all_that_was_asked(
    shared_engines: object, asked: list[tuple[RequestMode, str | None]]
) -> None:
    bench = Bench(shared_engines(18))  # type: ignore[operator]  # the fixture is a function of a version
    for mode, commit in asked:
        ask(bench, mode, commit=commit)
    (now,) = standing(bench)
    assert STRENGTH[now.mode] == max(STRENGTH[mode] for mode, _ in asked)
    assert now.commit == next((commit for _, commit in reversed(asked) if commit), None)
    assert now.coalesced == len(asked) - 1


def test_triggers_that_come_together_leave_one_request(bench: Bench) -> None:
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda _: ask(bench), range(6)))
    assert sum(not one.coalesced for one in told) == 1
    assert {one.request.pk for one in told} == {standing(bench)[0].pk}


def test_a_run_takes_up_what_it_does_on_its_way(bench: Bench) -> None:
    ask(bench, "full")
    run, taken = start(bench, "auto")
    assert taken is None, "auto does not do all that full asks"
    bench.end(run)  # type: ignore[arg-type]  # a Run
    run, taken = start(bench, "full")
    assert taken is not None
    assert (taken.state, taken.run_id) == ("running", run.id)  # type: ignore[attr-defined]  # a Run
    later = ask(bench, "auto")
    assert not later.coalesced, "what runs already cannot be widened"
    with bench.begin() as c:
        ended = requests.end_of_run(c, run=run)  # type: ignore[arg-type]  # a Run
    assert ended is not None
    assert (ended.pk, ended.state) == (taken.pk, "done")
    assert [one.pk for one in standing(bench)] == [later.request.pk]


def test_a_named_commit_is_done_by_a_run_at_that_commit_only(bench: Bench) -> None:
    ask(bench, commit="v2")
    run, taken = start(bench, "full")
    assert taken is None
    with bench.begin() as c:
        assert requests.settle(c, dataset_pk=bench.dataset.pk, mode="full") is None
        taken = requests.claim(c, run=run, commits=("f" * 40, "v2"))  # type: ignore[arg-type]  # a Run
    assert taken is not None


def test_a_look_that_finds_nothing_to_do_settles_the_request(bench: Bench) -> None:
    asked = ask(bench)
    with bench.begin() as c:
        done = requests.settle(c, dataset_pk=bench.dataset.pk, mode="auto")
    assert done is not None
    assert (done.pk, done.state, done.run_id) == (asked.request.pk, "done", None)


def test_the_request_of_a_lost_run_is_taken_up_again_and_five_lost_runs_are_trouble(bench: Bench) -> None:
    asked = ask(bench)
    start(bench, "auto")
    for lost in range(1, 5):
        _, taken = start(bench, "auto", gone=True)
        assert taken is not None
        assert (taken.pk, taken.lost_runs) == (asked.request.pk, lost)
    _, taken = start(bench, "auto", gone=True)
    assert taken is None
    with bench.begin() as c:
        told = requests.find(c, pk=asked.request.pk)
        policy = policies.find(c, dataset=bench.dataset)
    assert told is not None
    assert (told.state, told.lost_runs, policy.state, policy.infra_failures) == ("failed", 5, "backoff", 1)


def test_a_request_left_by_a_machine_that_is_gone_is_recovered_into_the_one_that_waits(bench: Bench) -> None:
    first = ask(bench, "full")
    start(bench, "full")
    later = ask(bench, "auto")
    with bench.begin() as c:
        requests.recover(c)
    assert len(standing(bench)) == 2, "its lease may still be renewed"
    bench.wait(minutes=12)
    with bench.begin() as c:
        assert requests.recover(c) >= 1
    (now,) = standing(bench)
    assert (now.pk, now.mode) == (later.request.pk, "full")
    with bench.begin() as c:
        ended = requests.find(c, pk=first.request.pk)
    assert ended is not None
    assert ended.state == "failed"


def test_what_is_paused_inactive_or_held_is_not_due(bench: Bench) -> None:
    pk = ask(bench).request.pk

    def due() -> bool:
        with bench.begin() as c:
            return pk in [one.pk for one in requests.next_due(c, limit=10_000)]

    assert due()
    for subject in (bench.dataset, None):
        with bench.begin() as c:
            assert pauses.pause(c, dataset=subject, paused_by="test", why="quiet")
            assert not pauses.pause(c, dataset=subject, paused_by="again")
        assert not due()
        with bench.begin() as c:
            assert "quiet" in [one.why for one in pauses.current(c)]
            assert pauses.resume(c, dataset=subject)
            assert not pauses.resume(c, dataset=subject)
    with bench.begin() as c:
        datasets.set_standing(c, dataset=bench.dataset, active=False)
    assert not due()
    with bench.begin() as c:
        datasets.set_standing(c, dataset=bench.dataset, active=True)
    run = bench.start()
    assert not due()
    bench.end(run)
    assert due()


def test_what_somebody_asks_for_comes_before_retries_and_a_new_engine_last(bench: Bench) -> None:
    others = [Bench(bench.engine) for _ in range(3)]
    for one, why in zip([bench, *others], ("engine", "retry_round", "version", "requested"), strict=True):
        ask(one, why=why)
    with bench.begin() as c:
        order = [one.dataset_pk for one in requests.next_due(c, limit=10_000)]
    ours = [pk for pk in order if pk in {one.dataset.pk for one in (bench, *others)}]
    assert ours == [one.dataset.pk for one in (*reversed(others), bench)]


def test_work_without_a_run_begins_and_ends(bench: Bench) -> None:
    asked = ask(bench, "verify").request
    with bench.begin() as c:
        assert requests.start(c, pk=asked.pk) is not None
        assert requests.start(c, pk=asked.pk) is None
        ended = requests.end(c, pk=asked.pk, error="the source is away")
        assert requests.end(c, pk=asked.pk) is None
        again = requests.ask(c, dataset_pk=bench.dataset.pk, mode="verify", asked_by="test").request
        refused = requests.refuse(c, pk=again.pk, error="there is nothing to verify")
        newest = requests.latest(c, dataset=bench.dataset, work="verify")
    assert ended is not None
    assert refused is not None
    assert (ended.state, refused.state, newest) == ("failed", "refused", refused)


def due(bench: Bench) -> list[int]:
    with bench.begin() as c:
        return [one.pk for one in requests.next_due(c, limit=1000) if one.dataset_pk == bench.dataset.pk]


def ended_early(bench: Bench, *, unserved: bool) -> int:
    """A request whose run ended before its work; its number."""
    asked = ask(bench, "full").request.pk
    run, _ = start(bench, "full")
    with bench.begin() as c:
        assert requests.wait_again(c, run=run, unserved=unserved)  # type: ignore[arg-type]  # a run
        leases.release(c, run=run)  # type: ignore[arg-type]  # a run, as start gives it
    (now,) = standing(bench)
    assert (now.pk, now.state, now.mode, now.lost_runs, now.run_id) == (asked, "waiting", "full", 0, None)
    return asked


def test_what_was_stopped_waits_again_uncounted_and_is_due_at_once(bench: Bench) -> None:
    for _ in range(6):
        pk = ended_early(bench, unserved=False)
        assert due(bench) == [pk]


def test_what_no_machine_took_is_due_after_minutes_but_not_while_all_is_drained(bench: Bench) -> None:
    pk = ended_early(bench, unserved=True)
    assert due(bench) == []
    bench.wait(minutes=11)
    assert due(bench) == [pk]
    with bench.begin() as c:
        drains.ask(c, worker=drains.EVERY_WORKER, grace_s=0)
    try:
        assert due(bench) == []
    finally:
        with bench.begin() as c:
            drains.undo(c, worker=drains.EVERY_WORKER)
    assert due(bench) == [pk]


@pytest.mark.parametrize("again", ["undo", "trigger"])
def test_what_no_machine_took_is_due_at_once_when_a_drain_ends_or_somebody_asks(bench: Bench, again: str) -> None:
    with bench.begin() as c:
        drains.ask(c, worker="node7", grace_s=0)
    pk = ended_early(bench, unserved=True)
    assert due(bench) == []
    if again == "undo":
        with bench.begin() as c:
            drains.undo(c)
    else:
        assert ask(bench).request.pk == pk
    assert due(bench) == [pk]


def test_a_later_request_stands_for_one_that_ended_early(bench: Bench) -> None:
    ask(bench, "full")
    run, _ = start(bench, "full")
    later = ask(bench, "auto").request.pk
    with bench.begin() as c:
        assert requests.wait_again(c, run=run, unserved=False)  # type: ignore[arg-type]  # a run
    (now,) = standing(bench)
    assert (now.pk, now.mode) == (later, "full")
