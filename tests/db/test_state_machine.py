"""The edges in any order against a small model of them: the database never believes anything else, and always adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from counting import counted, kept
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import Engine, text
from state_bench import Bench, fingerprint, path_of, planned, store_row

from contract.codes import FailureCode, PendingReason, WhyDue
from contract.errors import Busy, LostLease
from db import leases, recordings
from db.recordings import PlannedAction, PlannedRow
from db.runs import Run

NAMES = ("01", "02", "03")
names = st.sampled_from(NAMES)
WAITS_H = (1, 6, 24, 168, 168)


@dataclass
class Claim:
    attempt: UUID
    number: int
    worker: str
    expires: datetime


@dataclass
class Believed:
    """One recording as the model believes it to be."""

    source: str = "s1"
    present: bool = True
    served: str | None = None
    due: str = "pending"
    reason: str | None = "not_attempted"
    code: str | None = None
    attempts: int = 0
    counted_run: int = 0
    deaths: int = 0
    next_at: datetime | None = None
    claim: Claim | None = None

    def begin_afresh(self) -> None:
        self.due, self.reason, self.code, self.attempts, self.deaths, self.next_at = (
            "pending",
            "not_attempted",
            None,
            0,
            0,
            None,
        )

    def clear(self) -> None:
        self.due, self.reason, self.code, self.attempts, self.deaths, self.next_at = "none", None, None, 0, 0, None


class Machine(RuleBasedStateMachine):
    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.bench = Bench(engine)
        self.believed = {name: Believed() for name in NAMES}
        self.run: Run = self.bench.start()
        self.held = True
        self.run_expires = self.bench.now + timedelta(seconds=leases.LEASE_S)
        self.claimed: list[tuple[str, UUID, int]] = []
        self.ended: dict[UUID, str] = {}
        self.counted: set[tuple[str, int]] = set()
        self.bench.apply(self.run, *(planned(name) for name in NAMES))
        self.ids = {name: self.bench.state(name).id for name in NAMES}

    # what the model says of giving a recording back

    def _give_back(self, name: str, outcome: str, *, counted: bool, reason: str | None) -> None:
        it = self.believed[name]
        assert it.claim is not None
        number, attempt = it.claim.number, it.claim.attempt
        it.claim, it.due = None, "pending"
        it.reason = reason or it.reason
        self.ended[attempt] = outcome
        if counted and it.counted_run != number:
            assert (name, number) not in self.counted
            self.counted.add((name, number))
            it.attempts, it.counted_run = it.attempts + 1, number
            it.next_at = self.bench.now + timedelta(hours=WAITS_H[it.attempts - 1])
            if it.attempts == 5:
                it.due, it.reason, it.code, it.next_at = "failed", None, "retry_exhausted", None

    def _lose(self, lost: list[str]) -> None:
        workers = [it.claim.worker for it in self.believed.values() if it.claim]
        for name in lost:
            it = self.believed[name]
            assert it.claim is not None
            alone = workers.count(it.claim.worker) == 1
            blamed = alone and it.deaths > 0
            it.deaths += alone
            self._give_back(name, "expired", counted=blamed, reason="infra_failure" if blamed else None)

    def _alive(self, name: str) -> Claim | None:
        claim = self.believed[name].claim
        return claim if claim and claim.expires > self.bench.now else None

    # runs

    @rule(owner_is_gone=st.sampled_from([False, False, True]))
    def another_run_begins(self, owner_is_gone: bool) -> None:
        if self.held and not owner_is_gone and self.run_expires > self.bench.now:
            with pytest.raises(Busy, match=f"run {self.run.number} of {self.bench.dataset.dataset_id}"):
                self.bench.start(pid=2)
            return
        began = self.bench.start(owner_is_gone=owner_is_gone, pid=2)
        assert began.number == self.run.number + 1
        self._lose([name for name in NAMES if self.believed[name].claim])
        self.run, self.held = began, True
        self.run_expires = self.bench.now + timedelta(seconds=leases.LEASE_S)

    def the_run_is_renewed(self) -> None:
        with self.bench.begin() as c:
            leases.renew(c, run=self.run)
        self.run_expires = self.bench.now + timedelta(seconds=leases.LEASE_S)

    @precondition(lambda self: self.held)
    @rule(really=st.sampled_from([False, False, True]))
    def the_run_ends(self, really: bool) -> None:
        if not really:
            return
        self.bench.end(self.run)
        self.held = False
        for name in NAMES:
            if self.believed[name].claim:
                self._give_back(name, "released", counted=False, reason=None)

    @rule(seconds=st.sampled_from([5, 61]), run_is_renewed=st.sampled_from([True, True, True, False]))
    def time_passes(self, seconds: int, run_is_renewed: bool) -> None:
        self.bench.wait(seconds=seconds)
        if self.held and run_is_renewed:
            self.the_run_is_renewed()

    # plans

    @precondition(lambda self: self.held and not any(it.claim for it in self.believed.values()))
    @rule(data=st.data())
    def a_plan_is_applied(self, data: st.DataObject) -> None:
        rows = [self._plan(name, data) for name in NAMES]
        if self.run_expires <= self.bench.now:
            with pytest.raises(LostLease):
                self.bench.apply(self.run, *(row for row, _ in rows if row))
            return
        self.bench.apply(self.run, *(row for row, _ in rows if row))
        for _, then in rows:
            then()

    def _plan(self, name: str, data: st.DataObject) -> tuple[PlannedRow | None, Callable[[], None]]:
        it = self.believed[name]
        change = data.draw(st.sampled_from(["same", "same", "edited", "vanished", "asked", "asked"]), label=name)
        source = {"edited": "s2" if it.source == "s1" else "s1"}.get(change, it.source)

        def vanish() -> None:
            it.present = False
            it.clear()

        def keep() -> None:
            it.present, it.source = True, source

        def begin_afresh() -> None:
            keep()
            it.begin_afresh()

        def carry() -> None:
            keep()
            it.clear()

        def ask() -> None:
            keep()
            if it.due == "none":
                it.due, it.reason = "pending", "not_attempted"

        if change == "vanished":
            return None, vanish
        if change == "asked":
            row = planned(name, source=source, why=WhyDue.REQUESTED)
            return row, (begin_afresh if it.due == "failed" or not it.present else ask)
        if it.served == source and (source != it.source or it.due == "none"):
            return planned(name, PlannedAction.CARRY, source=source), carry
        if source != it.source or not it.present:
            return planned(name, source=source, why=WhyDue.SOURCE), begin_afresh
        if it.due == "failed":
            return planned(name, PlannedAction.KEEP_FAILED, source=source), keep
        return planned(name, source=source, why=WhyDue.RETRY), keep

    # attempts

    @rule(data=st.data(), name=names, worker=st.sampled_from(["w1", "w2"]))
    def a_recording_is_claimed(self, data: st.DataObject, name: str, worker: str) -> None:
        self._claim(data, name, worker)

    def _claim(self, data: st.DataObject, any_name: str, worker: str) -> None:
        free = [name for name in NAMES if self.believed[name].due == "pending"]
        name = data.draw(st.sampled_from([*free, any_name]))
        it = self.believed[name]
        if it.due != "pending" or not self.held or self.run_expires <= self.bench.now:
            with pytest.raises(LostLease):
                self.bench.claim(self.run, name, worker=worker)
            return
        attempt = self.bench.claim(self.run, name, worker=worker)
        it.due, it.claim = "converting", Claim(attempt, self.run.number, worker, self.bench.now + timedelta(seconds=60))
        self.claimed.append((name, attempt, self.run.number))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), name=names, worker=st.sampled_from(["w1", "w2", "w3"]))
    def another_recording_is_claimed(self, data: st.DataObject, name: str, worker: str) -> None:
        self._claim(data, name, worker)

    @precondition(lambda self: any(it.claim for it in self.believed.values()))
    @rule(data=st.data(), outcome=st.sampled_from(["pending", "released", "done"]))
    def another_attempt_reports_its_end(self, data: st.DataObject, outcome: str) -> None:
        self._report_some(data, outcome)

    @rule()
    def attempts_are_renewed(self) -> None:
        held = {claim.attempt for name in NAMES if (claim := self._alive(name))}
        with self.bench.begin() as c:
            kept = recordings.renew_attempts(c, attempt_ids=[attempt for _, attempt, _ in self.claimed])
        assert kept == held
        for name in NAMES:
            if claim := self._alive(name):
                claim.expires = self.bench.now + timedelta(seconds=60)

    @rule()
    def leases_that_ran_out_are_taken_back(self) -> None:
        lost = [
            name
            for name in NAMES
            if (claim := self.believed[name].claim) and claim.expires <= self.bench.now and self.held
        ]
        with self.bench.begin() as c:
            assert {ended.recording_id for ended in recordings.expire(c, run=self.run)} == {
                self.ids[name] for name in lost
            }
        self._lose(lost)

    @precondition(lambda self: self.claimed)
    @rule(data=st.data(), outcome=st.sampled_from(["done", "failed", "pending", "pending", "uncounted", "released"]))
    def an_attempt_reports_its_end(self, data: st.DataObject, outcome: str) -> None:
        self._report_some(data, outcome)

    def _report_some(self, data: st.DataObject, outcome: str) -> None:
        held = [
            entry for entry in self.claimed if (claim := self.believed[entry[0]].claim) and claim.attempt == entry[1]
        ]
        name, attempt, number = data.draw(st.sampled_from([*held, *held, *self.claimed[-3:]]))
        it = self.believed[name]
        written = "pending" if outcome == "uncounted" else outcome
        claim = self._alive(name)
        if claim is None or claim.attempt != attempt:
            self._reports_late(name, attempt, number, outcome, repeated=self.ended.get(attempt) == written)
            return
        self._report(name, attempt, number, outcome)
        if outcome == "done":
            it.clear()
            it.served, it.claim, self.ended[attempt] = it.source, None, "done"
        elif outcome == "failed":
            it.due, it.reason, it.code, it.next_at, it.claim = "failed", None, "not_continuous", None, None
            self.ended[attempt] = "failed"
        else:
            reason = None if outcome == "released" else "memory_budget"
            self._give_back(name, written, counted=outcome == "pending", reason=reason)

    def _reports_late(self, name: str, attempt: UUID, number: int, outcome: str, *, repeated: bool) -> None:
        if repeated:
            self._report(name, attempt, number, outcome)
            return
        with pytest.raises(LostLease):
            self._report(name, attempt, number, outcome)

    def _report(self, name: str, attempt: UUID, number: int, outcome: str) -> None:
        with self.bench.begin() as c:
            match outcome:
                case "done":
                    row = store_row(name, source=self.believed[name].source)
                    recordings.done(c, attempt_id=attempt, run_number=number, store=row)
                case "failed":
                    code = FailureCode.NOT_CONTINUOUS
                    recordings.fail(c, attempt_id=attempt, run_number=number, code=code, detail=None)
                case "released":
                    recordings.release(c, attempt_id=attempt, run_number=number, why="stopped")
                case _:
                    recordings.postpone(
                        c,
                        attempt_id=attempt,
                        run_number=number,
                        reason=PendingReason.MEMORY_BUDGET,
                        error="MemoryError",
                        counted=outcome == "pending",
                    )

    # what holds after every step

    @invariant()
    def the_database_believes_what_the_model_does(self) -> None:
        states = self.bench.states()
        for name, it in self.believed.items():
            state = states[path_of(name)]
            assert (state.due, state.reason, state.code, state.attempts, state.next_attempt_at) == (
                it.due,
                it.reason,
                it.code,
                it.attempts,
                it.next_at,
            )
            assert (state.discovered, state.source) == (it.present, fingerprint(it.source))
            assert (state.served and state.served.source) == (it.served and fingerprint(it.served))
        with self.bench.engine.connect() as c:
            deaths = text("SELECT pk, deaths FROM recordings WHERE dataset_pk = :dataset")
            found = {row.pk: row.deaths for row in c.execute(deaths, {"dataset": self.bench.dataset.pk})}
        assert found == {self.ids[name]: it.deaths for name, it in self.believed.items()}
        counts = self.bench.coverage()
        listed = [state.published_as for state in states.values()]
        assert [counts.stores, counts.failures, counts.pending] == [
            listed.count(which) for which in ("stores", "failures", "pending")
        ]

    @invariant()
    def what_is_kept_as_a_count_is_what_counting_gives(self) -> None:
        with self.bench.engine.connect() as c:
            assert kept(c, self.bench.dataset.pk) == counted(c, self.bench.dataset.pk)

    @invariant()
    def every_attempt_is_in_history_as_it_ended(self) -> None:
        with self.bench.engine.connect() as c:
            rows = c.execute(
                text("""
                    SELECT a.id, a.outcome, a.counted, a.recording_pk, u.number
                    FROM attempts a JOIN runs u ON u.id = a.run_id WHERE u.dataset_pk = :dataset
                """),
                {"dataset": self.bench.dataset.pk},
            ).all()
        assert {row.id: row.outcome for row in rows} == {
            attempt: self.ended.get(attempt, "converting") for _, attempt, _ in self.claimed
        }
        assert {(row.recording_pk, row.number) for row in rows if row.counted} == {
            (self.ids[name], number) for name, number in self.counted
        }
        assert sum(row.counted for row in rows) == len(self.counted)


@pytest.mark.postgres_versions
def test_no_order_of_edges_makes_the_database_believe_anything_wrong(
    shared_engines: Callable[[int], Engine], postgres_version: int
) -> None:
    engine = shared_engines(postgres_version)
    run_state_machine_as_test(
        lambda: Machine(engine),
        settings=settings(
            max_examples=15 if postgres_version == 18 else 5,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
