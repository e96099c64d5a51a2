"""Ends that no worker reports: what fits nowhere, and what was on a worker that is gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from contract.codes import FailureCode, PendingReason
from contract.errors import LostLease
from db import recordings
from db.attempt_ends import AttemptEnd
from db.runs import Run
from infra.sizes import format_bytes
from tasks.convert.attempt import Outcome
from tasks.convert.order import AttemptReport, ConversionOrder

__all__ = ["in_transaction", "of_history", "put_off", "release_dead", "released_at_stop", "too_large", "unreported"]

_DATABASE_PATIENCE_S: Final = 60.0  # a restart of Postgres takes seconds
_T = TypeVar("_T")


def in_transaction(engine: Engine, statement: Callable[[Connection], _T]) -> _T:
    """What ``statement`` gives in one transaction, which is tried again while Postgres restarts.

    Every edge may be repeated by the attempt that took it, so a commit whose answer was lost does no harm.
    """
    give_up = time.monotonic() + _DATABASE_PATIENCE_S
    while True:
        try:
            with engine.begin() as c:
                return statement(c)
        except OperationalError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(0.5)


def too_large(engine: Engine, run: Run, order: ConversionOrder, largest_bytes: int) -> AttemptReport:
    """The report of a recording that no machine of this archive can convert, which now is a verdict."""
    detail = f"it needs at least {format_bytes(order.floor_bytes)} of memory, the largest machine has {format_bytes(largest_bytes)}"

    def refuse(c: Connection) -> None:
        recordings.refuse(
            c,
            run=run,
            recording_id=order.recording_id,
            code=FailureCode.RECORDING_TOO_LARGE,
            detail=detail,
            needed_bytes=order.floor_bytes,
        )

    in_transaction(engine, refuse)
    return unreported(order, Outcome.FAILED, code=FailureCode.RECORDING_TOO_LARGE, error=detail)


def put_off(
    engine: Engine, run: Run, order: ConversionOrder, *, memory_bytes: int, scratch_bytes: int
) -> AttemptReport:
    """The report of a recording that fits no worker that is here; not counted. The largest worker has these bytes."""
    short = [
        f"{format_bytes(needs)} of {what} and the largest worker has {format_bytes(has)}"
        for what, needs, has in (
            ("memory", order.permitted_bytes, memory_bytes),
            ("scratch (ZARRMILL_SCRATCH)", order.scratch_bytes, scratch_bytes),
        )
        if needs > has
    ]
    both = (
        f"{format_bytes(order.permitted_bytes)} of memory and {format_bytes(order.scratch_bytes)} of scratch together"
    )
    error = f"it needs {'; '.join(short) or both + ', and no worker has that'}"
    in_transaction(engine, lambda c: recordings.defer(c, run=run, recording_ids=[order.recording_id], error=error))
    return unreported(order, Outcome.PENDING, reason=PendingReason.MEMORY_BUDGET, error=error)


def release_dead(engine: Engine, order: ConversionOrder, *, blamed: bool) -> bool:
    """End an attempt whose worker process is certainly gone; whether that was counted.

    Only ``blamed`` allows that, and only when no other run had anything on that worker.
    """

    def edge(c: Connection) -> bool:
        if not blamed or not recordings.was_alone(c, attempt_id=order.attempt_id):
            recordings.release(
                c, attempt_id=order.attempt_id, run_number=order.run_number, why="the worker it ran on ended"
            )
            return False
        return recordings.postpone(
            c,
            attempt_id=order.attempt_id,
            run_number=order.run_number,
            reason=PendingReason.INFRA_FAILURE,
            error="its worker ended again while it was converted alone",
            counted=True,
        ).counted

    try:
        return in_transaction(engine, edge)
    except LostLease:
        return False


def released_at_stop(engine: Engine, order: ConversionOrder) -> AttemptReport:
    """The report of an attempt that did not end by itself within the grace of a stop."""
    try:
        in_transaction(
            engine,
            lambda c: recordings.release(
                c, attempt_id=order.attempt_id, run_number=order.run_number, why="the run was stopped"
            ),
        )
    except LostLease:
        return unreported(order, Outcome.LOST)
    return unreported(order, Outcome.RELEASED)


def of_history(order: ConversionOrder, end: AttemptEnd) -> AttemptReport:
    """The report of an attempt whose worker wrote its end and was gone before it could say so."""
    return AttemptReport(
        attempt_id=order.attempt_id,
        recording_id=order.recording_id,
        path=order.recording.path,
        outcome=end.outcome,
        code=end.code,
        reason=end.reason,
        counted=end.counted,
        error=end.error,
        measured_bytes=end.measured_bytes,
        again=end.outcome == Outcome.RELEASED,
    )


def unreported(
    order: ConversionOrder,
    outcome: str,
    *,
    code: FailureCode | None = None,
    reason: PendingReason | None = None,
    counted: bool = False,
    error: str | None = None,
) -> AttemptReport:
    """The report of a recording whose end no worker reported."""
    return AttemptReport(
        attempt_id=order.attempt_id,
        recording_id=order.recording_id,
        path=order.recording.path,
        outcome=outcome,
        code=code,
        reason=reason,
        counted=counted,
        error=error,
    )
