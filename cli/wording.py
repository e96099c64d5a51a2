"""Small ways of saying things: durations, bounded lists, JSON of our own values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["bounded", "duration", "in_order", "json_line", "jsonable", "plural", "whole_seconds"]

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


def jsonable(value: Any) -> Any:
    """A value of ours as JSON has it: dataclasses as objects, sets sorted, moments in ISO 8601."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(jsonable(each) for each in value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [jsonable(each) for each in value]
    return value


def json_line(value: Any) -> str:
    """One line of JSON, without NaN."""
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)
