"""What the end of a conversion means for its recording: one table from exceptions and child exits to verdicts.

A verdict is ``failed`` only when the bytes of the recording, or what this converter supports, must change. Whatever a
machine, a neighbour or an operator did leaves the recording pending; it is ``released``, which never counts, when it
was stopped from outside.
"""

from __future__ import annotations

import re
import signal
import traceback
from dataclasses import dataclass, replace
from enum import StrEnum

from contract.codes import FailureCode, PendingReason
from contract.errors import LostLease, NotNow, RecordingFailed
from contract.redact import PATH, error_line, redact
from tasks.convert.conditions import is_disk_full, is_machine_condition, is_out_of_memory

__all__ = ["ChildExit", "Verdict", "VerdictKind", "classify", "classify_exit"]

_MAX_TRACEBACK = 8_000
_NEAR_ITS_LIMIT = (
    0.9  # a process that held this much of what it was permitted and was killed by nobody we know ran out of memory
)

_BIOSIGIO_CODES = {
    "unsupported_format": FailureCode.UNSUPPORTED_FORMAT,
    "file_read_error": FailureCode.FILE_READ_ERROR,
    "not_continuous": FailureCode.NOT_CONTINUOUS,
    "corrupt_or_truncated": FailureCode.CORRUPT_OR_TRUNCATED,
    "empty_recording": FailureCode.EMPTY_RECORDING,
    # A file whose rates are mixed is read in memory and resampled; only what cannot be read so either gets here.
    "mixed_sampling_rate": FailureCode.FILE_READ_ERROR,
    "biosigio_error": FailureCode.FILE_READ_ERROR,
}


class VerdictKind(StrEnum):
    """Which edge of a recording's state the verdict takes."""

    FAILED = "failed"
    PENDING = "pending"
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt that made no store ended.

    Parameters
    ----------
    code
        The failure's code when ``kind`` is failed.
    reason
        Why it stays pending otherwise.
    counted
        Whether it costs the recording one of its five attempts.
    error
        One redacted line for people: class and first line of the message.
    traceback
        For operators, bounded and redacted; never published.
    disk_full
        The scratch disk was full, perhaps by others: it counts only against a recording that took more than it was given.
    again
        Nothing that the recording did: it may be tried again in the same run.
    """

    kind: VerdictKind
    code: FailureCode | None = None
    reason: PendingReason | None = None
    counted: bool = False
    error: str | None = None
    traceback: str | None = None
    disk_full: bool = False
    again: bool = False

    def of_a_neighbour(self) -> Verdict:
        """The same verdict when it turns out that something else on the machine brought it about."""
        return replace(self, counted=False, again=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a conversion's process ended without a result.

    Parameters
    ----------
    exitcode
        Status it exited with; None when a signal ended it or nobody knows.
    signal
        Number of the signal that ended it.
    killed_for
        Why we ended it: ``memory``, ``timeout``, ``cancelled`` or ``stop``, ``fork_server``; None when we did not.
    oom_kill_seen
        Whether the kernel's count of out-of-memory kills rose while it ran.
    last_rss_bytes, permitted_bytes
        What it last held and what it was allowed, above its birth.
    """

    exitcode: int | None = None
    signal: int | None = None
    killed_for: str | None = None
    oom_kill_seen: bool = False
    last_rss_bytes: int | None = None
    permitted_bytes: int = 0

    @property
    def is_near_its_limit(self) -> bool:
        """Whether it last held nearly all that it was permitted."""
        return self.last_rss_bytes is not None and 0 < _NEAR_ITS_LIMIT * self.permitted_bytes <= self.last_rss_bytes


def classify(error: BaseException) -> Verdict:
    """The verdict for an exception of a conversion; called while it is live, so that its causes are seen."""
    line = error_line(error)
    trace = _trace(error)
    if isinstance(error, RecordingFailed):
        return Verdict(
            kind=VerdictKind.FAILED,
            code=error.failure,
            error=redact(error.detail) if error.detail else None,
            traceback=trace,
        )
    if isinstance(error, NotNow):
        said = redact(error.detail) if error.detail else line
        return Verdict(
            kind=VerdictKind.PENDING, reason=error.reason, counted=error.counted, error=said, traceback=trace
        )
    if isinstance(error, LostLease | KeyboardInterrupt):
        return Verdict(
            kind=VerdictKind.RELEASED, reason=PendingReason.INFRA_FAILURE, error=line, traceback=trace, again=True
        )
    if is_out_of_memory(error):
        return Verdict(
            kind=VerdictKind.PENDING, reason=PendingReason.MEMORY_BUDGET, counted=True, error=line, traceback=trace
        )
    code = _biosigio_code(error)
    if code is not None:
        return Verdict(kind=VerdictKind.FAILED, code=code, error=_without_paths(line), traceback=trace)
    return Verdict(
        kind=VerdictKind.PENDING,
        reason=PendingReason.INFRA_FAILURE,
        counted=True,
        error=line,
        traceback=trace,
        disk_full=is_disk_full(error),
    )


def classify_exit(ended: ChildExit) -> Verdict:
    """The verdict for a child that died without a word."""
    rule = _exit_rule(ended)
    return Verdict(
        kind=rule[0],
        reason=rule[1],
        counted=rule[2],
        error=rule[3],
        disk_full=ended.signal == signal.SIGBUS,
        again=rule[0] is VerdictKind.RELEASED,
    )


def _exit_rule(ended: ChildExit) -> tuple[VerdictKind, PendingReason, bool, str]:
    infra, memory = PendingReason.INFRA_FAILURE, PendingReason.MEMORY_BUDGET
    pending, released = VerdictKind.PENDING, VerdictKind.RELEASED
    permitted = f"{ended.permitted_bytes} bytes were permitted"
    held = "" if ended.last_rss_bytes is None else f"it held {ended.last_rss_bytes} bytes, "
    by_us = {
        "memory": (pending, memory, True, f"the conversion was ended for its memory: {held}{permitted}"),
        "timeout": (pending, infra, True, "the conversion took longer than it may and was ended"),
        "cancelled": (released, infra, False, "the conversion was stopped from outside"),
        "stop": (released, infra, False, "the conversion was stopped from outside"),
        "fork_server": (released, infra, False, "the process that starts conversions ended"),
    }
    if ended.killed_for is not None:
        return by_us.get(ended.killed_for, (released, infra, False, f"the conversion was ended for {ended.killed_for}"))
    unknown = ended.signal is None and ended.exitcode is None
    if ended.oom_kill_seen and (unknown or ended.signal == signal.SIGKILL):
        return pending, memory, True, f"the kernel ended the conversion for want of memory: {held}{permitted}"
    if ended.is_near_its_limit and (unknown or ended.signal in {signal.SIGKILL, signal.SIGABRT}):
        # a kernel that counts no kills, another control group's limit, or a C++ allocation that failed
        return pending, memory, True, f"the conversion ended with its memory all but used up: {held}{permitted}"
    if ended.signal == signal.SIGBUS:
        # biosigIO's scratch is sparse mapped files: a full disk ends the process this way instead of with an error.
        return pending, infra, True, "the conversion was ended by SIGBUS: its scratch disk is full or failing"
    if ended.signal in {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
        return released, infra, False, f"the conversion was ended by {signal.Signals(ended.signal).name}"
    if ended.signal is not None:
        return pending, infra, True, f"the conversion was ended by {_signal_name(ended.signal)}"
    return pending, infra, True, f"the conversion's process exited with {ended.exitcode} and no result"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _biosigio_code(error: BaseException) -> FailureCode | None:
    """The failure code of a typed error of biosigIO; None for every other error, and for one that hides a host condition."""
    if type(error).__module__.split(".", 1)[0] != "biosigio":
        return None
    if is_machine_condition(error):
        return None
    return _BIOSIGIO_CODES.get(str(getattr(error, "code", "")), FailureCode.FILE_READ_ERROR)


def _without_paths(line: str) -> str:
    """The line without the places where local paths stood: the recording it is about is known."""
    place = re.escape(PATH)
    for pattern, plain in (
        (rf"\s*[(\[]['\"]?{place}['\"]?[)\]]", ""),
        (rf"(?<=: ){place}: ?", ""),
        (rf"['\"]?{place}['\"]?", "the file"),
    ):
        line = re.sub(pattern, plain, line)
    return line


def _trace(error: BaseException) -> str:
    """The last part of the traceback, redacted line by line."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    said = [redacted for line in lines if (redacted := redact(line)) is not None]
    while sum(map(len, said)) + len(said) > _MAX_TRACEBACK:
        said.pop(0)
    return "\n".join(said)
