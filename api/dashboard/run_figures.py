"""The numbers of a run for its page: of one that has ended counted once, of one under way at most every ten seconds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from db import run_facts, run_timeline

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from db.run_list import RunHead

__all__ = ["FigureShelf", "Figures"]

_KEPT: Final = 64
_FRESH_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was counted of a run's attempts. A run of 25,000 takes some 0.4 s of Postgres, and what ended counts the same for ever."""

    endings: tuple[run_facts.Ending, ...]
    stages: tuple[run_facts.Stage, ...]
    slowest: tuple[run_facts.Outlier, ...]
    largest: tuple[run_facts.Outlier, ...]
    changes: tuple[run_facts.Change, ...]
    whys: tuple[run_facts.DueWhy, ...]
    steps: tuple[run_timeline.WorkerStep, ...]
    rates: tuple[run_timeline.Rate, ...]
    points: tuple[run_timeline.PointMeasured, ...]

    @property
    def attempts(self) -> int:
        """Attempts of the run."""
        return sum(one.attempts for one in self.endings)

    @property
    def converted(self) -> int:
        """Recordings that it converted."""
        return sum(one.attempts for one in self.endings if one.outcome == "done" and one.last)

    @property
    def deaths(self) -> int:
        """Attempts that made no store and found no verdict: out of memory, trouble of a machine, lost workers, given back."""
        return sum(one.attempts for one in self._lost)

    @property
    def lost_s(self) -> float:
        """Wall time that those took."""
        return sum(one.seconds for one in self._lost)

    @property
    def _lost(self) -> list[run_facts.Ending]:
        return [one for one in self.endings if one.outcome in ("pending", "expired", "released")]


class FigureShelf:
    """The figures of the runs that were looked at last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[UUID, str], tuple[float, Figures]] = OrderedDict()

    def of(self, c: Connection, head: RunHead) -> Figures:
        """The figures of a run: as they are for ever, or as they were at most ten seconds ago."""
        key, now = (head.id, head.state), time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and (head.ended_at is not None or now - kept[0] < _FRESH_S):
                self._kept.move_to_end(key)
                return kept[1]
        found = _counted(c, head.id)
        with self._lock:
            self._kept[key] = (now, found)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _counted(c: Connection, run_id: UUID) -> Figures:
    return Figures(
        endings=run_facts.endings(c, run_id=run_id),
        stages=run_facts.stages(c, run_id=run_id),
        slowest=run_facts.slowest(c, run_id=run_id),
        largest=run_facts.largest(c, run_id=run_id),
        changes=run_facts.changes(c, run_id=run_id),
        whys=run_facts.due_whys(c, run_id=run_id),
        steps=run_timeline.worker_steps(c, run_id=run_id),
        rates=run_timeline.rates(c, run_id=run_id),
        points=run_timeline.points_measured(c, run_id=run_id),
    )
