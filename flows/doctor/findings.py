"""What one look found: healthy, an alarm, or unknown. Unknown is an answer of its own, because zero and unknown must not look alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Finding", "Health", "alarm", "exit_code", "healthy", "unknown"]

Health = Literal["healthy", "alarm", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor. ``told`` names no secret; of an alarm it names the way out."""

    name: str
    health: Health
    told: str


def healthy(name: str, told: str) -> Finding:
    """It is as it should be."""
    return Finding(name=name, health="healthy", told=told)


def alarm(name: str, told: str) -> Finding:
    """Somebody must act."""
    return Finding(name=name, health="alarm", told=told)


def unknown(name: str, told: str) -> Finding:
    """It could not be found out."""
    return Finding(name=name, health="unknown", told=told)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 when all is healthy, 1 with an alarm, 3 when nothing is worse than unknown."""
    seen = {one.health for one in findings}
    return 1 if "alarm" in seen else 3 if "unknown" in seen else 0
