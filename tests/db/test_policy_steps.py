"""Any order of ends of runs, looks, troubles and new beginnings leaves a policy that a small model foretells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from state_bench import VERSIONS, Bench, planned

from contract.codes import PendingReason
from db import policies, recordings


@dataclass
class Model:
    """A dataset with one recording that never converts."""

    state: str = "clean"
    round: int = 0
    infra: int = 0
    reached: bool = False

    def step(self, what: str) -> None:
        match what:
            case "in vain":
                self.state = "exhausted" if self.round == 5 else "round"
                self.round, self.infra, self.reached = min(self.round + 1, 5), 0, True
            case "look" | "stopped":
                self.infra = 0
                if not self.reached:
                    self.state = "soon"
                elif self.state != "exhausted":
                    self.state, self.round = "round", max(self.round, 1)
            case "trouble":
                self.infra = min(self.infra + 1, 5)
                self.state = "given_up" if self.infra == 5 else "backoff"
            case "anew":
                self.state, self.round, self.infra = "clean", 0, 0


def play(bench: Bench, what: str) -> None:
    run = bench.start()
    if what == "in vain":
        attempt = bench.claim(run)
        with bench.begin() as c:
            reason = PendingReason.INFRA_FAILURE
            recordings.postpone(
                c, attempt_id=attempt, run_number=run.number, reason=reason, error="no network", counted=False
            )
    with bench.begin() as c:
        if what == "trouble":
            policies.trouble(c, dataset_pk=bench.dataset.pk)
        elif what == "anew":
            policies.renew(c, dataset_pk=bench.dataset.pk)
        else:
            policies.settle(c, dataset_pk=bench.dataset.pk, versions=VERSIONS, run=None if what == "look" else run)
    bench.end(run)


@settings(max_examples=25)
@given(
    steps=st.lists(
        st.sampled_from(["in vain", "in vain", "look", "stopped", "trouble", "anew"]), min_size=1, max_size=9
    )
)
def test_a_policy_goes_as_the_model_says(shared_engines: Callable[[int], Engine], steps: list[str]) -> None:
    bench, model = Bench(shared_engines(18)), Model()
    first = bench.start()
    bench.apply(first, planned("01"))
    bench.end(first)
    for what in steps:
        play(bench, what)
        model.step(what)
        bench.wait(hours=1)
        with bench.begin() as c:
            policy = policies.find(c, dataset=bench.dataset)
        assert (policy.state, policy.retry_round, policy.infra_failures) == (model.state, model.round, model.infra)
        assert (policy.next_at is not None) == (model.state in {"round", "soon", "backoff"})
