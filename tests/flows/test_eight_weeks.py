"""Eight weeks of policy on the database's clock: rounds, promotions, coalesced triggers, the engine gate, pauses.

The edges are the real ones, in a real Postgres; only conversions are told how to end instead of being made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Connection, Engine, text
from state_bench import VERSIONS, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from db import alarms, approvals, datasets, leases, pauses, policies, recordings, requests
from db.leases import Owner
from db.recordings import PlannedAction, PlannedRow, RecordingState
from db.requests import Asked, Request
from db.requeue import Chosen, requeue
from db.runs import Run
from db.standings import standings
from flows import trigger
from flows.reconcile import ReconcileReport, Seen, ask_for_needs

HOUR = timedelta(hours=1)
WEEK_H = 168
NEWER = replace(VERSIONS, engine="4")
Outcome = Callable[["Play", "Actor", Run], None]


@dataclass
class Actor:
    """A dataset with one recording, and how its conversions end; each run that ends leaves a line in ``log``."""

    name: str
    outcome: Outcome
    pk: int = 0
    version: str = "v1"
    log: list[str] = field(default_factory=list)


class Play:
    """The clock, the datasets, and an orchestrator that starts every request that is due at once."""

    def __init__(self, engine: Engine, actors: list[Actor]) -> None:
        self.engine = engine
        self.began = datetime(2026, 3, 1, tzinfo=UTC)
        self.hour = 0.0
        self.versions = VERSIONS
        self.actors = {actor.name: actor for actor in actors}
        with self.begin() as c:
            for number, actor in enumerate(actors, start=1):
                dataset_id = f"xx{number:06d}"
                actor.pk = datasets.register(c, dataset_id=dataset_id, target="/served", source=f"/{actor.name}").pk
        self.by_pk = {actor.pk: actor for actor in actors}

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.begin() as c:
            now = self.began + self.hour * HOUR
            c.execute(text("SELECT set_config('zarrmill.clock', :now, true)"), {"now": now.isoformat()})
            yield c

    def dataset(self, name: str) -> datasets.Dataset:
        with self.begin() as c:
            return next(one for one in datasets.list_datasets(c) if one.pk == self.actors[name].pk)

    def reconcile(self) -> ReconcileReport:
        with self.begin() as c:
            requests.recover(c)
            found = [
                Seen(standing=one, version=self.by_pk[one.dataset.pk].version, index="unknown") for one in standings(c)
            ]
            return ask_for_needs(c, found, versions=self.versions)

    def work(self) -> None:
        """Start whatever is due, and end it at the same moment."""
        with self.begin() as c:
            due = requests.next_due(c, limit=1000)
        for request in due:
            self.run(self.by_pk[request.dataset_pk], request)

    def run(self, actor: Actor, request: Request) -> None:
        dataset = self.dataset(actor.name)
        with self.begin() as c:
            owner = Owner(host="here", pid=1, lock_path="/l")
            mode = trigger.run_request(dataset, request).mode
            run = leases.acquire(
                c, dataset=dataset, owner=owner, mode=mode, versions=self.versions, owner_is_gone=lambda _owner: False
            )
            taken = trigger.claim_for_run(c, run=run, commits=())
            assert taken is not None
            states = recordings.snapshot(c, dataset=dataset)
            recordings.apply_plan(c, dataset=dataset, run=run, rows=[self.row(actor, states, run)])
        actor.outcome(self, actor, run)
        with self.begin() as c:
            leases.release(c, run=run)
            policy = policies.find(c, dataset=dataset)
        actor.log.append(f"{self.hour:g} {request.why} {request.mode}: {policy.state} {policy.retry_round}")

    def row(self, actor: Actor, states: list[RecordingState], run: Run) -> PlannedRow:
        state = next((one for one in states if one.path == path_of(actor.name)), None)
        if state is None:
            return planned(actor.name, source=actor.version)
        is_current = state.served is not None and state.served.engine == run.versions.engine
        if state.source != planned(actor.name, source=actor.version).source:
            return planned(actor.name, source=actor.version, why=WhyDue.SOURCE)
        if is_current and state.due == "none" and run.mode != "full":
            return planned(actor.name, PlannedAction.CARRY, source=actor.version)
        return planned(actor.name, source=actor.version, why=state.why or WhyDue.REQUESTED)

    def end(self, run: Run, *, stopped: bool = False) -> None:
        with self.begin() as c:
            trigger.settle_run(c, run=run, rebuilt=requests.DEFAULT_REBUILD_ON, stopped=stopped)

    def attempt(self, actor: Actor, run: Run, end: Callable[..., object], **more: object) -> None:
        attempt_id = uuid4()
        with self.begin() as c:
            dataset = next(one for one in datasets.list_datasets(c) if one.pk == actor.pk)
            (due,) = recordings.due(c, dataset=dataset)
            recordings.claim(
                c,
                run=run,
                recording_id=due.id,
                attempt_id=attempt_id,
                worker=f"w/{actor.pk}",
                route="memory",
                projected_bytes=10,
                permitted_bytes=20,
            )
            end(c, attempt_id=attempt_id, run_number=run.number, **more)


def converts(play: Play, actor: Actor, run: Run) -> None:
    store = replace(store_row(actor.name, source=actor.version), engine=run.versions.engine)
    play.attempt(actor, run, recordings.done, store=store)
    play.end(run)


def has_trouble(play: Play, actor: Actor, run: Run) -> None:
    play.attempt(actor, run, recordings.postpone, reason=PendingReason.INFRA_FAILURE, error="no network", counted=True)
    play.end(run)


def fits_nowhere(play: Play, actor: Actor, run: Run) -> None:
    with play.begin() as c:
        dataset = next(one for one in datasets.list_datasets(c) if one.pk == actor.pk)
        ids = [one.id for one in recordings.due(c, dataset=dataset)]
        recordings.defer(c, run=run, recording_ids=ids, error="it needs 90 GiB")
    play.end(run)


def is_stopped_three_times(play: Play, actor: Actor, run: Run) -> None:
    if len(actor.log) < 3:
        play.end(run, stopped=True)
    else:
        converts(play, actor, run)


def publishes_nothing_at_first(play: Play, actor: Actor, run: Run) -> None:
    if actor.version == "v1":
        with play.begin() as c:
            trigger.end_without_publishing(c, run=run, error="the target is away", counts=True)
    else:
        converts(play, actor, run)


def has_a_verdict_until_the_next_engine(play: Play, actor: Actor, run: Run) -> None:
    if run.versions.engine == VERSIONS.engine:
        play.attempt(actor, run, recordings.fail, code=FailureCode.CORRUPT_OR_TRUNCATED, detail=None)
        play.end(run)
    else:
        converts(play, actor, run)


PLAIN = 24
APPROVED_H = 5 * WEEK_H
EXPECTED = {
    "good": [
        "0 new auto: clean 0",
        "504 version auto: clean 0",
        "600 requested full: clean 0",
        f"{APPROVED_H} engine auto: clean 0",
    ],
    "troubled": [
        "0 new auto: round 1",
        "1 retry_round retry-pending: round 2",
        "7 retry_round retry-pending: round 3",
        "31 retry_round retry-pending: round 4",
        "199 retry_round retry-pending: terminal 0",
        # the newer engine lifts the verdict of five runs, and everything begins anew
        f"{APPROVED_H} engine auto: round 1",
        f"{APPROVED_H + 1} retry_round retry-pending: round 2",
        f"{APPROVED_H + 7} retry_round retry-pending: round 3",
        f"{APPROVED_H + 31} retry_round retry-pending: round 4",
        f"{APPROVED_H + 199} retry_round retry-pending: terminal 0",
    ],
    "large": [
        "0 new auto: round 1",
        "1 retry_round retry-pending: round 2",
        "7 retry_round retry-pending: round 3",
        "31 retry_round retry-pending: round 4",
        "199 retry_round retry-pending: round 5",
        "367 retry_round retry-pending: exhausted 5",
        f"{APPROVED_H} requested auto: round 1",
        f"{APPROVED_H + 1} retry_round retry-pending: round 2",
        f"{APPROVED_H + 7} retry_round retry-pending: round 3",
        f"{APPROVED_H + 31} retry_round retry-pending: round 4",
        f"{APPROVED_H + 199} retry_round retry-pending: round 5",
        f"{APPROVED_H + 367} retry_round retry-pending: exhausted 5",
    ],
    "stopped": [
        "0 new auto: soon 0",
        "1 not_attempted auto: soon 0",
        "2 not_attempted auto: soon 0",
        "3 not_attempted auto: clean 0",
        f"{APPROVED_H} engine auto: clean 0",
    ],
    "unpublished": [
        "0 new auto: backoff 0",
        "1 backoff auto: backoff 0",
        "2 backoff auto: backoff 0",
        "4 backoff auto: backoff 0",
        "8 backoff auto: given_up 0",
        "500 version auto: clean 0",
        f"{APPROVED_H} engine auto: clean 0",
    ],
    "broken": ["0 new auto: terminal 0", f"{APPROVED_H} engine auto: clean 0"],
    # the run for its new version was with the newer engine already
    "paused": ["0 new auto: clean 0", "700 version auto: clean 0"],
} | {f"plain{n}": ["0 new auto: clean 0", f"{APPROVED_H} engine auto: clean 0"] for n in range(PLAIN)}


def actors() -> list[Actor]:
    outcomes: dict[str, Outcome] = {
        "troubled": has_trouble,
        "large": fits_nowhere,
        "stopped": is_stopped_three_times,
        "unpublished": publishes_nothing_at_first,
        "broken": has_a_verdict_until_the_next_engine,
    }
    return [Actor(name, outcomes.get(name, converts)) for name in EXPECTED]


def script(play: Play, reports: dict[float, ReconcileReport], told: list[Asked]) -> dict[float, Callable[[], None]]:
    """What happens from outside, by hour."""

    def set_version(name: str, version: str) -> Callable[[], None]:
        return lambda: setattr(play.actors[name], "version", version)

    def set_pause(*, paused: bool) -> None:
        dataset = play.dataset("paused")
        with play.begin() as c:
            if paused:
                assert pauses.pause(c, dataset=dataset, paused_by="ana")
            else:
                assert pauses.resume(c, dataset=dataset)

    def trigger_twice() -> None:
        dataset = play.dataset("good")
        told.extend(
            trigger.trigger(play.engine, dataset, asked_by="ana", mode=mode) for mode in ("auto", "full", "auto")
        )

    def bump() -> None:
        play.versions = NEWER

    def approve() -> None:
        assert reports[APPROVED_H - 24].engine_held > approvals.GATED_ABOVE
        with play.begin() as c:
            stale = approvals.stale(c, versions=NEWER, columns=["options", "engine"])
            assert len(stale) == len(EXPECTED) - 1
            cost = approvals.preview(c, datasets=list(stale))
            assert cost.recordings == len(EXPECTED) - 1
            approvals.approve(c, versions=NEWER, columns=["engine"], approved_by="ana", why="read the notes", cost=cost)
            requeue(c, chosen=Chosen(datasets=frozenset({play.actors["large"].pk})), asked_by="ana")

    return {
        336: lambda: set_pause(paused=True),
        400: set_version("paused", "v2"),
        500: set_version("unpublished", "v2"),
        504: set_version("good", "v2"),
        600: trigger_twice,
        4 * WEEK_H: bump,
        700: lambda: set_pause(paused=False),
        APPROVED_H: approve,
    }


def test_eight_weeks_of_policy_go_as_the_table_says(engine: Engine) -> None:
    play = Play(engine, actors())
    reports: dict[float, ReconcileReport] = {}
    told: list[Asked] = []
    happens = script(play, reports, told)
    while play.hour <= 8 * WEEK_H:
        happens.get(play.hour, lambda: None)()
        reports[play.hour] = play.reconcile()
        play.work()
        play.hour = next_hour(play, happens)
    assert {name: actor.log for name, actor in play.actors.items()} == EXPECTED
    assert [(one.coalesced, one.widened) for one in told] == [(False, False), (True, True), (True, False)]
    gate = [one for one in every_alarm(engine) if one.kind == "engine_gate"]
    assert [(hours(play, one.began_at), hours(play, one.ended_at)) for one in gate] == [(4 * WEEK_H, APPROVED_H)]
    given_up = [one for one in every_alarm(engine) if one.kind == "given_up"]
    assert [(one.subject.split()[0], hours(play, one.ended_at)) for one in given_up] == [("xx000005", 504)]
    last = reports[max(reports)]
    assert (last.seen, last.pending_exhausted, last.engine_stale, last.given_up) == (len(EXPECTED), 1, 0, 0)
    with play.begin() as c:
        assert requests.listed(c) == [], "nothing waits and nothing runs"


def next_hour(play: Play, happens: dict[float, Callable[[], None]]) -> float:
    """The next whole hour at which something happens, or somebody's waiting time is over, or a day has gone."""
    with play.begin() as c:
        waits = [one.policy.next_at for one in standings(c) if one.policy.next_at is not None]
    dues = [-(-(moment - play.began) // HOUR) for moment in waits]
    later = [hour for hour in [*happens, *dues, (play.hour // 24 + 1) * 24] if hour > play.hour]
    return min(later)


def every_alarm(engine: Engine) -> list[alarms.Alarm]:
    """All of them, since nobody was told of any."""
    with engine.begin() as c:
        return [one.alarm for one in alarms.untold(c, limit=1000)]


def hours(play: Play, moment: datetime | None) -> float | None:
    return None if moment is None else (moment - play.began) / HOUR


def test_a_few_stale_datasets_wait_for_nobody(engine: Engine) -> None:
    play = Play(engine, [Actor(f"plain{n}", converts) for n in range(3)])
    play.reconcile()
    play.work()
    play.versions, play.hour = NEWER, 1
    report = play.reconcile()
    assert (report.engine_stale, report.engine_requeued, report.engine_held) == (3, 3, 0)


def test_a_whole_stop_starts_nothing_and_forgets_nothing(engine: Engine) -> None:
    play = Play(engine, [Actor("one", converts)])
    with play.begin() as c:
        pauses.pause(c, dataset=None, paused_by="ana")
    assert play.reconcile().enqueued == 0
    asked = trigger.trigger(engine, play.dataset("one"), asked_by="ana")
    play.work()
    assert play.actors["one"].log == []
    with play.begin() as c:
        pauses.resume(c, dataset=None)
    play.work()
    assert play.actors["one"].log == ["0 requested auto: clean 0"]
    assert asked.request.state == "waiting"


@pytest.mark.parametrize("mode", ["auto", "retry-pending", "full"])
def test_a_run_request_says_what_the_dataset_remembers(engine: Engine, mode: str) -> None:
    with engine.begin() as c:
        dataset = datasets.register(c, dataset_id="xx000001", target="/t", source="/s", annex="s3://b/p")
    request = trigger.trigger(engine, dataset, asked_by="api", mode=mode, commit="v2", rebuild_on={"biosigio"}).request
    asked = trigger.run_request(dataset, request)
    assert (asked.source, asked.target, asked.dataset_id, asked.annex) == ("/s", "/t", "xx000001", "s3://b/p")
    assert (asked.mode, asked.commit, asked.rebuild_on) == (mode, "v2", {"biosigio"})
