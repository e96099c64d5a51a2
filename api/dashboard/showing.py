"""How values are shown: numbers people can read, units beside them, and what is not known as the word, never as zero."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from markupsafe import Markup

from infra.sizes import decimal_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = [
    "FILTERS",
    "UNKNOWN",
    "ago",
    "bytes_text",
    "clock_time",
    "counted",
    "duration_text",
    "moment",
    "number",
    "rough_text",
    "share_text",
]

UNKNOWN = Markup('<span class="unknown">unknown</span>')


def number(value: float | None) -> str:
    """``12,345``, with two places where there is a fraction."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def counted(value: int | None, one: str, many: str | None = None) -> str:
    """``1 run``, ``12 runs``; unknown where the number is not known."""
    if value is None:
        return UNKNOWN
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def bytes_text(value: float | None) -> str:
    """``1.23 GB``: powers of 1,000, as disks and clouds count."""
    if value is None:
        return UNKNOWN
    return decimal_bytes(value)


def duration_text(seconds: float | None) -> str:
    """``850 ms``, ``42 s``, ``3 min 20 s``, ``5 h 02 min``, ``12 d 4 h``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        minutes = whole % 3600 // 60
        return f"{whole // 3600} h {minutes:02d} min" if minutes else f"{whole // 3600} h"
    hours = whole % 86_400 // 3600
    return f"{whole // 86_400} d {hours} h" if hours else f"{whole // 86_400} d"


def rough_text(seconds: float | None) -> str:
    """A duration that nobody knows exactly, to two places: ``30 s``, ``20 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if seconds is None:
        return UNKNOWN
    step = next((step for step, most in ((10, 300), (60, 3600), (600, 36_000)) if seconds < most), 3600)
    whole = max(round(seconds / step), 1) * step
    if whole < 300:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return duration_text(whole)


def share_text(part: float | None, whole: float | None) -> str:
    """``97.3 %`` of a whole. It says 100 % and 0 % only where that is so; unknown where there is no whole."""
    if part is None or not whole:
        return UNKNOWN
    percent = 100 * part / whole
    if part == whole or percent == 0:
        return f"{percent:.0f} %"
    return f"{min(max(percent, 0.1), 99.9):.1f} %"


def moment(value: datetime | None) -> str:
    """A moment to the second, in UTC, which programs can read too."""
    if value is None:
        return UNKNOWN
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S} UTC")


def clock_time(value: datetime) -> str:
    """The time of day of a moment, with the whole moment for programs and pointers."""
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S} UTC", f"{utc:%H:%M:%S}"
    )


def ago(value: datetime | None, now: datetime) -> str:
    """How long before ``now`` something was, with the moment in its title."""
    if value is None:
        return UNKNOWN
    utc = value.astimezone(UTC)
    passed = max((now - value).total_seconds(), 0.0)
    words = "just now" if passed < 5 else f"{duration_text(passed)} ago"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S} UTC", words
    )


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": number,
    "counted": counted,
    "bytes": bytes_text,
    "duration": duration_text,
    "rough": rough_text,
    "moment": moment,
    "clock": clock_time,
}
"""The filters of templates by name; each shows None as ``UNKNOWN``."""
