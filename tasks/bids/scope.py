"""What of a dataset is raw, what a calibration file is, and which names can be published. One predicate each."""

from __future__ import annotations

import re

__all__ = [
    "CALIBRATION",
    "CROSSTALK",
    "EXCLUDED_SEGMENTS",
    "calibration_kind",
    "is_excluded",
    "printable",
    "unpublishable",
]

EXCLUDED_SEGMENTS = frozenset({"derivatives", "sourcedata", "code"})
"""A path with one of these as a whole segment, at any depth, is not raw. Case matters, as in BIDS."""

CALIBRATION = "acq-calibration_meg.dat"
CROSSTALK = "acq-crosstalk_meg.fif"
"""Elekta/MEGIN calibration: never recordings, but inputs of the MaxShield correction."""

_UNPUBLISHABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")


def is_excluded(path: str) -> bool:
    """Whether the path lies in derivatives, sourcedata or code, at the top or nested."""
    return not EXCLUDED_SEGMENTS.isdisjoint(path.split("/"))


def calibration_kind(name: str) -> str | None:
    """``CALIBRATION`` or ``CROSSTALK`` when the name is such a file, else None."""
    lowered = name.lower()
    for kind in (CALIBRATION, CROSSTALK):
        if lowered == kind or lowered.endswith("_" + kind):
            return kind
    return None


def unpublishable(path: str) -> str | None:
    """Why the path cannot stand in a published document, or None when it can.

    JSON, Postgres and URLs can carry any Unicode text; a byte that is no UTF-8 (a lone surrogate here) fits none of
    them, and control characters and backslashes are refused by the checks that keep store addresses safe.
    """
    found = _UNPUBLISHABLE.search(path)
    if found is None:
        return None
    character = found.group()
    if "\ud800" <= character <= "\udfff":
        return "the name is not valid UTF-8"
    return "the name holds a backslash" if character == "\\" else "the name holds a control character"


def printable(path: str) -> str:
    """The path with everything that ``unpublishable`` objects to written as an escape."""
    return _UNPUBLISHABLE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), path)
