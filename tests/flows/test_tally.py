"""What a run says of itself when no machine took what was due."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from contract.codes import FailureCode, PendingReason
from flows.conversion import Tally
from tasks.convert.order import AttemptReport


def report(path: str, outcome: str, **more: Any) -> AttemptReport:
    return AttemptReport(attempt_id=uuid4(), recording_id=1, path=path, outcome=outcome, **more)


LACKS = {"reason": PendingReason.MEMORY_BUDGET}
KILLED = {"reason": PendingReason.INFRA_FAILURE, "counted": True}


@pytest.mark.parametrize(
    ("ends", "gave_up", "said"),
    [
        ([], None, ": 2"),
        ([], "there is no worker", "there is no worker"),
        ([("a", "done", {})], "there is no worker", "there is no worker"),
        ([("a", "pending", LACKS), ("b", "pending", KILLED)], None, ": 2"),
        ([("a", "released", {}), ("b", "lost", {})], None, ": 2"),
        ([("a", "pending", LACKS), ("b", "done", {})], None, None),
        ([("a", "pending", KILLED), ("b", "failed", {"code": FailureCode.EMPTY_RECORDING})], None, None),
    ],
)
def test_a_run_that_no_machine_served_says_why(
    ends: list[tuple[str, str, dict[str, Any]]], gave_up: str | None, said: str | None
) -> None:
    tally = Tally(gave_up=gave_up)
    for path, outcome, more in ends:
        tally.add(report(path, outcome, **more), f"{path}.zarr")
    if said is None:
        assert tally.unserved(2) is None
    else:
        assert said in str(tally.unserved(2))


def test_a_run_with_nothing_due_waits_for_nobody() -> None:
    assert Tally().unserved(0) is None
