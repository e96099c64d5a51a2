"""What the verify sweep looks at, and what it calls that which is not as it should be."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHECK_SENTENCES", "VERIFY_REVISION", "Check"]

VERIFY_REVISION = 1
"""Raise it when the sweep checks more than before: verdicts of an earlier one stand, and are made anew by the next sweeps."""


class Check(StrEnum):
    """What did not hold."""

    CHANNEL_COUNT = "channel_count_mismatch"
    CHANNELS = "channel_mismatch"
    TYPES = "type_mismatch"
    UNITS = "unit_mismatch"
    RATE = "rate_mismatch"
    DURATION = "duration_mismatch"
    SAMPLES = "samples_mismatch"
    PYRAMID = "pyramid_mismatch"
    DECODING = "undecodable"
    OBJECT_MISSING = "object_missing"
    OBJECT_FOREIGN = "object_foreign"
    OBJECT_DIFFERS = "object_differs"
    EVENTS = "events_mismatch"
    EVENTS_FILE = "events_file_mismatch"
    RECORDING = "recording_mismatch"
    METADATA = "metadata_mismatch"
    INDEX = "index_mismatch"
    SIDECAR = "sidecar_contradiction"


CHECK_SENTENCES: Mapping[Check, str] = MappingProxyType(
    {
        Check.CHANNEL_COUNT: "The store has fewer channels than the recording, or than its channels.tsv without saying so.",
        Check.CHANNELS: "A channel has another name, or stands in another place, than in the recording.",
        Check.TYPES: "A channel has another type than its channels.tsv declares.",
        Check.UNITS: "A channel has another unit than the recording and its channels.tsv make it have.",
        Check.RATE: "A channel group is served at another rate than its source and the cap of its modality allow.",
        Check.DURATION: "A channel group is shorter or longer than the recording.",
        Check.SAMPLES: "Served samples differ from the source, resampled, by more than one quantisation step.",
        Check.PYRAMID: "A view level is not the envelope of level 0.",
        Check.DECODING: "A part of an array cannot be decoded.",
        Check.OBJECT_MISSING: "An object that the conversion left is not at the target.",
        Check.OBJECT_FOREIGN: "An object stands at the target that nothing put there.",
        Check.OBJECT_DIFFERS: "An object has other bytes than the conversion left, or is cut short.",
        Check.EVENTS: "The store's events are not those of the events.tsv.",
        Check.EVENTS_FILE: "The rows of events.parquet are not those of the events.tsv.",
        Check.RECORDING: "The store says that it was made from another recording.",
        Check.METADATA: "An attribute of the store is not what the sidecars, or the dataset, say.",
        Check.INDEX: "The index says something else of the store than the store itself.",
        Check.SIDECAR: "A JSON sidecar declares another rate or duration than the recording has, which the store follows; this fails no store.",
    }
)
