"""What of a header is kept in the database, and under which key."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from contract.layout import ENGINE_VERSION
from tasks.formats.protocol import Header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tasks.bids.recording import DiscoveredRecording
    from tasks.sources.protocol import TreeEntry

__all__ = ["header_key", "packed", "unpacked"]

_REVISION: Final = "1"
"""Raised when a format reads another header from the same bytes, or another field is kept."""
_PLAIN: Final = (
    "n_channels",
    "n_samples",
    "rate_hz",
    "n_trials",
    "tolerant",
    "whole",
    "exact_samples",
    "sample_bytes",
    "block_samples",
    "maxshield",
    "copied_bytes",
)
_TUPLES: Final = ("rates_hz", "channel_rates_hz", "channel_samples")


def header_key(recording: DiscoveredRecording, tree: Mapping[str, TreeEntry]) -> str:
    """64 hex characters over the format and the content of the recording's files, wherever they lie."""
    told = [ENGINE_VERSION, _REVISION, recording.format]
    for path in (*recording.members, *sorted(recording.companions)):
        told += [path.rpartition("/")[2], tree[path].content_id]
    return hashlib.sha256("\0".join(told).encode("utf-8", "surrogatepass")).hexdigest()


def packed(header: Header) -> dict[str, Any]:
    """What a projection needs of it: shape and rates, no label and no text. Rates of each channel only where they differ."""
    kept = {name: getattr(header, name) for name in _PLAIN}
    mixed = len(header.rates_hz) > 1
    return kept | {name: list(getattr(header, name)) if mixed or name == "rates_hz" else [] for name in _TUPLES}


def unpacked(kept: Mapping[str, Any]) -> Header:
    """The header that ``packed`` was given, as far as it was kept."""
    fields: dict[str, Any] = {name: kept[name] for name in _PLAIN}
    fields |= {name: tuple(kept[name]) for name in _TUPLES}
    return Header(**fields)
