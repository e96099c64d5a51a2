"""Small ways of saying things to people: durations, counts, bounded lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["bounded", "duration", "in_order", "plural", "whole_seconds"]

Number = TypeVar("Number", int, float)
_STAGES = ("fetch", "child", "read", "convert", "attributes", "gate", "digest", "upload")
"""In the order of an attempt; those from ``read`` to ``digest`` happen inside ``child``."""
_OUTER = frozenset({"fetch", "child", "upload"})


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 store``, ``2 stores``; ``many`` where an s is not enough."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def in_order(stages: Mapping[str, Number]) -> list[tuple[str, Number]]:
    """Stages in the order in which an attempt goes through them; Postgres keeps another. Unknown ones come last."""
    return sorted(stages.items(), key=lambda stage: _STAGES.index(stage[0]) if stage[0] in _STAGES else len(_STAGES))


def whole_seconds(stage_seconds: Mapping[str, float]) -> float:
    """How long an attempt took: what happened inside the child is part of the child's own time."""
    inside = "child" in stage_seconds
    return sum(seconds for stage, seconds in stage_seconds.items() if not inside or stage in _OUTER)


def bounded(lines: Sequence[str], limit: int) -> Iterator[str]:
    """The lines, and after ``limit`` of them how many more there are."""
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"… and {len(lines) - limit:,} more"
