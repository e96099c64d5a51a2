"""The words of state: failure codes, pending reasons and why a conversion is due, one sentence each."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FAILURE_SENTENCES",
    "MAX_COUNTED_ATTEMPTS",
    "PENDING_SENTENCES",
    "WHY_DUE_SENTENCES",
    "FailureCode",
    "PendingReason",
    "WhyDue",
]

MAX_COUNTED_ATTEMPTS = 5
"""Counted attempts, one a run at most, after which a pending recording becomes ``retry_exhausted``."""


class FailureCode(StrEnum):
    """Why a recording has no store until its data or the converter changes. Values are published: append only."""

    NOT_CONTINUOUS = "not_continuous"
    CORRUPT_OR_TRUNCATED = "corrupt_or_truncated"
    UNSUPPORTED_FORMAT = "unsupported_format"
    EMPTY_RECORDING = "empty_recording"
    FILE_READ_ERROR = "file_read_error"
    RECORDING_TOO_LARGE = "recording_too_large"
    CHANNEL_COUNT_MISMATCH = "channel_count_mismatch"
    MAXSHIELD_UNCALIBRATED = "maxshield_uncalibrated"
    RETRY_EXHAUSTED = "retry_exhausted"
    STORE_PATH_COLLISION = "store_path_collision"
    ANNEX_OBJECT_MISSING = "annex_object_missing"


class PendingReason(StrEnum):
    """Why a recording that is still expected to convert has no store yet. The set is closed by the index schema."""

    INFRA_FAILURE = "infra_failure"
    MEMORY_BUDGET = "memory_budget"
    NOT_ATTEMPTED = "not_attempted"


class WhyDue(StrEnum):
    """What made a conversion due."""

    NEW = "new"
    SOURCE = "source"
    OPTIONS = "options"
    ENGINE = "engine"
    BIOSIGIO = "biosigio"
    LOST = "lost"
    REQUESTED = "requested"
    RETRY = "retry"


FAILURE_SENTENCES: Mapping[FailureCode, str] = MappingProxyType(
    {
        FailureCode.NOT_CONTINUOUS: "This file holds epochs or averages, not a continuous recording, so there is no time series to show.",
        FailureCode.CORRUPT_OR_TRUNCATED: "The data file of this recording is truncated or corrupt.",
        FailureCode.UNSUPPORTED_FORMAT: "The format of this recording is not supported yet.",
        FailureCode.EMPTY_RECORDING: "This recording has no signal channels.",
        FailureCode.FILE_READ_ERROR: "This recording could not be prepared because its file could not be read.",
        FailureCode.RECORDING_TOO_LARGE: "This recording needs more memory than any conversion machine of this archive has.",
        FailureCode.CHANNEL_COUNT_MISMATCH: "The copy would have had fewer channels than the recording declares, so it was withheld.",
        FailureCode.MAXSHIELD_UNCALIBRATED: "This recording was made with internal active shielding, and the calibration files that correct it are missing.",
        FailureCode.RETRY_EXHAUSTED: "The conversion did not succeed in five separate runs and is no longer retried automatically.",
        FailureCode.STORE_PATH_COLLISION: "Another file of this dataset claims the same copy, and only one of them can have it: the other one.",
        FailureCode.ANNEX_OBJECT_MISSING: "The archive does not hold the content of this file, or holds only a part of it.",
    }
)

PENDING_SENTENCES: Mapping[PendingReason, str] = MappingProxyType(
    {
        PendingReason.INFRA_FAILURE: "The machine that converted this recording had trouble; it will be tried again.",
        PendingReason.MEMORY_BUDGET: "There was not enough memory for this recording at the time; it will be tried again.",
        PendingReason.NOT_ATTEMPTED: "This recording has not been reached yet.",
    }
)

WHY_DUE_SENTENCES: Mapping[WhyDue, str] = MappingProxyType(
    {
        WhyDue.NEW: "The recording is new.",
        WhyDue.SOURCE: "The recording or one of its sidecars changed.",
        WhyDue.OPTIONS: "The conversion options changed.",
        WhyDue.ENGINE: "The converter's engine version changed.",
        WhyDue.BIOSIGIO: "The biosigIO release changed.",
        WhyDue.LOST: "The store is gone from where it was served.",
        WhyDue.REQUESTED: "Somebody asked for it.",
        WhyDue.RETRY: "An earlier attempt did not succeed and its waiting time is over.",
    }
)
