"""The events of a recording whose own file holds them, where no events.tsv applies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tasks.verify.events import Event
from tasks.verify.recording.vneurotk import trials_of
from tasks.verify.report import Unverifiable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["own_events"]

_HOLDS_EVENTS = "vneurotk"
_UNREADABLE = (Unverifiable, OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)
"""What a file that is not as its format page says makes of a reader that believes it."""


def own_events(path: Path | None, format_name: str) -> tuple[Sequence[Event] | None, bool]:
    """The events of the file by onset, and whether they are known; ``path`` is None where the file was not fetched."""
    if format_name != _HOLDS_EVENTS:
        return None, True
    if path is None:
        return None, False
    try:
        trials = trials_of(path)
    except _UNREADABLE:
        return None, False
    if trials is None:
        return None, True
    events = [Event(onset_s, length_s, _filled(kind), _filled(value)) for onset_s, length_s, kind, value in trials]
    return sorted(events, key=lambda event: math.inf if event.onset_s is None else event.onset_s), True


def _filled(cell: str | None) -> str | None:
    text = (cell or "").strip()
    return None if not text or text.lower() == "n/a" else text
