"""The seconds of an attempt as a stacked bar: each stage once, what happened inside the child in place of the child's whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.wording import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StageBar", "stage_bars"]

_INSIDE: Final = frozenset({"read", "convert", "attributes", "gate", "digest"})
_CHILD: Final = "child"
_REST: Final = "start and end"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBar:
    """One part of the bar: where it begins and how wide it is, in percent of the whole. ``nth`` picks its colour."""

    stage: str
    seconds: float
    at: float
    width: float
    nth: int


def stage_bars(stage_seconds: Mapping[str, float]) -> tuple[StageBar, ...]:
    """The parts in the order in which an attempt goes through them; what the child spent on none of its stages is a part too."""
    parts: list[tuple[str, float]] = []
    inside = sum(seconds for stage, seconds in stage_seconds.items() if stage in _INSIDE)
    for stage, seconds in in_order(stage_seconds):
        if stage != _CHILD:
            parts.append((stage, max(seconds, 0.0)))
        elif (rest := seconds - inside) > 0:
            parts.append((_REST if inside else _CHILD, rest))
    whole = sum(seconds for _stage, seconds in parts)
    bars, at = [], 0.0
    for nth, (stage, seconds) in enumerate(parts, start=1):
        width = 100 * seconds / whole if whole else 0.0
        bars.append(StageBar(stage=stage, seconds=seconds, at=at, width=width, nth=nth))
        at += width
    return tuple(bars)
