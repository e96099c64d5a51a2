"""The edges that end an attempt, each as a call."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from sqlalchemy import Connection
from state_bench import store_row

from contract.codes import FailureCode, PendingReason
from db import recordings
from db.recordings import Measured

Edge = Callable[[Connection, UUID, int], object]
MEASURED = Measured(
    measured_bytes=7,
    stage_seconds={"convert": 1.5},
    stage_bytes={"fetch": 9},
    traceback="x" * 20_000,
    notes=["first", "y" * 1000, "nul\x00", *map(str, range(40))],
    quantisation=b"\x00packed",
)


def done(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.done(c, attempt_id=attempt, run_number=number, store=store_row(), report=MEASURED)


def fail(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.fail(
        c,
        attempt_id=attempt,
        run_number=number,
        code=FailureCode.NOT_CONTINUOUS,
        detail="ValueError: epochs",
        report=MEASURED,
    )


def postpone(c: Connection, attempt: UUID, number: int, *, counted: bool = True) -> recordings.Ended:
    return recordings.postpone(
        c,
        attempt_id=attempt,
        run_number=number,
        reason=PendingReason.INFRA_FAILURE,
        error="OSError: disk",
        counted=counted,
        report=MEASURED,
    )


def postpone_uncounted(c: Connection, attempt: UUID, number: int) -> object:
    return postpone(c, attempt, number, counted=False)


def release(c: Connection, attempt: UUID, number: int) -> object:
    return recordings.release(c, attempt_id=attempt, run_number=number, why="stopped", report=MEASURED)


EDGES: dict[str, tuple[Edge, str, str]] = {
    "done": (done, "none", "done"),
    "fail": (fail, "failed", "failed"),
    "postpone": (postpone, "pending", "pending"),
    "postpone uncounted": (postpone_uncounted, "pending", "pending"),
    "release": (release, "pending", "released"),
}
each_edge = pytest.mark.parametrize(("edge", "due", "outcome"), EDGES.values(), ids=EDGES)
