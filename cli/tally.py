"""Where a run stands, counted from what it tells. Knows nothing of terminals."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.request import MemoryInUse, RecordingEnded, RecordingStarted, StageChanged, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.request import ProgressEvent
    from tasks.convert.order import AttemptReport

__all__ = ["Running", "Tally", "outcome_of"]

_ETA_AFTER_S = 5.0
_ETA_AFTER_ENDED = 3


def outcome_of(report: AttemptReport) -> str:
    """How an ended attempt counts: ``done``, ``failed`` or ``pending``; what was let go of is pending again."""
    if report.outcome == "done":
        return "done"
    return "failed" if report.code is not None else "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A recording that a worker was handed: it converts, or waits there for a slot. ``since_s`` on the tally's clock."""

    path: str
    size_bytes: int
    permitted_bytes: int
    since_s: float


class Tally:
    """Counts of one run, fed with its events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first_start_s: float | None = None
        self._outcomes: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._running: dict[str, Running] = {}
        self.counts = {"done": 0, "failed": 0, "pending": 0}
        self.dataset_id = ""
        self.run_number = 0
        self.discovered = 0
        self.to_convert = 0
        self.bytes_total = 0
        self.bytes_ended = 0
        self.memory_in_use_bytes = 0
        self.memory_allowed_bytes = 0
        self.stage = "planning"

    def add(self, event: ProgressEvent) -> None:
        """Take one event into account; those that change no count are fine."""
        match event:
            case Started():
                self.dataset_id, self.run_number = event.dataset_id, event.run_number
                self.discovered, self.to_convert, self.bytes_total = event.discovered, event.to_convert, event.bytes
            case StageChanged():
                self.stage = event.stage
            case RecordingStarted():
                self._begin(event)
            case RecordingEnded():
                self._end(event.report)
            case MemoryInUse():
                self.memory_in_use_bytes, self.memory_allowed_bytes = event.in_use_bytes, event.allowed_bytes
            case _:
                pass

    @property
    def ended(self) -> int:
        """Recordings whose attempt has ended, whatever came of it."""
        return len(self._outcomes)

    def largest_running_first(self) -> list[Running]:
        """What workers have now, largest first."""
        return sorted(self._running.values(), key=lambda each: (-each.size_bytes, each.path))

    def seconds_running(self, running: Running) -> float:
        """How long its worker has had one recording."""
        return self._clock() - running.since_s

    def eta_s(self) -> float | None:
        """Seconds until everything is converted, by the bytes per second so far; None while that would be a guess, or idle."""
        if not self._running or self._first_start_s is None:
            return None
        if self.ended < _ETA_AFTER_ENDED or self.bytes_ended == 0:
            return None
        elapsed_s = self._clock() - self._first_start_s
        if elapsed_s < _ETA_AFTER_S:
            return None
        return max(0.0, (self.bytes_total - self.bytes_ended) * elapsed_s / self.bytes_ended)

    def _begin(self, event: RecordingStarted) -> None:
        now_s = self._clock()
        if self._first_start_s is None:
            self._first_start_s = now_s
        # A recording that was let go of may come again in the same run: it counts once.
        self._forget(event.path)
        self._sizes[event.path] = event.bytes
        self._running[event.path] = Running(
            path=event.path, size_bytes=event.bytes, permitted_bytes=event.permitted_bytes, since_s=now_s
        )

    def _end(self, report: AttemptReport) -> None:
        self._running.pop(report.path, None)
        self._forget(report.path)
        self._outcomes[report.path] = outcome_of(report)
        self.counts[self._outcomes[report.path]] += 1
        self.bytes_ended += self._sizes.get(report.path, 0)

    def _forget(self, path: str) -> None:
        outcome = self._outcomes.pop(path, None)
        if outcome is not None:
            self.counts[outcome] -= 1
            self.bytes_ended -= self._sizes.get(path, 0)
