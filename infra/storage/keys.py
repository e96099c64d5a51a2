"""Keys of a target, checked before anything is done with them."""

from __future__ import annotations

from contract.errors import PublishError
from contract.layout import check_relative

__all__ = ["AREA", "segments_of", "store_segments"]

AREA = ".zarrmill"
"""The hidden area of a target: locks, probes, stores being built and stores being removed."""


def segments_of(key: str) -> list[str]:
    """The parts of a key.

    Raises
    ------
    Refused, PublishError
        It could leave the target, or enters a hidden area.
    """
    check_relative(key)
    segments = key.split("/")
    if any(segment.startswith(".") for segment in segments):
        raise PublishError("Names that start with a dot are kept for zarrmill itself.", detail=key)
    return segments


def store_segments(key: str) -> list[str]:
    """The parts of a store's key; PublishError when it is none: what it names may be removed whole."""
    segments = segments_of(key)
    if len(segments) < 3 or not segments[-1].endswith(".zarr"):
        raise PublishError("A store lies below a dataset and ends in .zarr.", detail=key)
    return segments
