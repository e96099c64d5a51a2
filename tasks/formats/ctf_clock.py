"""The system clock of a CTF recording: how many samples are valid, and whether its trials follow each other.

CTF writes every recording in trials, also a continuous one. The channel SCLK01-177 counts time: it is zero where nothing
was recorded, and between two trials of a continuous recording it goes on as within them. Readers join the trials
either way.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Trials", "clock_row", "follow"]

CLOCK_CHANNEL = b"SCLK01-177"
_DESCRIPTION_AT, _DESCRIPTION_LENGTH = 1844, 1836
_NAME_BYTES, _FILTER_BYTES = 32, 18
_MAX_DESCRIPTION_BYTES, _MAX_FILTERS, _MAX_PARAMETERS = 1 << 20, 256, 256
_HEAD_BYTES, _SAMPLE_BYTES = 8, 4
_MAX_BLOCK_BYTES = 8 << 20
_MANY_COUNTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Shape of the trials in every .meg4 of a recording, and the clock's row; None where there is no clock."""

    n_channels: int
    trial_samples: int
    clock: int | None

    @property
    def trial_bytes(self) -> int:
        """Bytes of one trial."""
        return _SAMPLE_BYTES * self.n_channels * self.trial_samples


def clock_row(res4: bytes, n_channels: int) -> int | None:
    """Row of the clock among the channels of a .res4; None without one.

    Raises
    ------
    struct.error, ValueError
        The header ends inside the names, or its lengths cannot be.
    """
    (description,) = struct.unpack_from(">i", res4, _DESCRIPTION_LENGTH)
    if not 0 <= description <= _MAX_DESCRIPTION_BYTES:
        raise ValueError(f"it claims a description of {description} bytes")
    at = _DESCRIPTION_AT + description
    (n_filters,) = struct.unpack_from(">h", res4, at)
    if not 0 <= n_filters <= _MAX_FILTERS:
        raise ValueError(f"it claims {n_filters} filters")
    at += 2
    for _ in range(n_filters):
        (n_parameters,) = struct.unpack_from(">h", res4, at + _FILTER_BYTES - 2)
        if not 0 <= n_parameters <= _MAX_PARAMETERS:
            raise ValueError(f"a filter claims {n_parameters} parameters")
        at += _FILTER_BYTES + 8 * n_parameters
    if len(res4) < at + _NAME_BYTES * n_channels:
        raise EOFError("it ends inside the names of its channels")
    for row in range(n_channels):
        if res4[at + row * _NAME_BYTES :][:_NAME_BYTES].split(b"\0", 1)[0] == CLOCK_CHANNEL:
            return row
    return None


def follow(parts: list[Path], trials: Trials) -> tuple[int, float]:
    """Valid samples of a recording, and the largest gap in it, in samples (0.0 for none or no clock).

    A reader stops a file at the clock's first zero, and the recording at a file that starts with one.
    """
    clock = _Clock()
    total = 0
    for part in parts:
        valid = (part.stat().st_size - _HEAD_BYTES) // (_SAMPLE_BYTES * trials.n_channels)
        if trials.clock is not None:
            valid = 0
            for values in _clock_values(part, trials):
                zeros = np.flatnonzero(values == 0)
                kept = values[: zeros[0]] if len(zeros) else values
                clock.take(kept)
                valid += len(kept)
                if len(zeros):
                    break
        total += valid
        if valid == 0:
            break
    return total, clock.largest_gap


class _Clock:
    """A counter of 32 bits that may run over; knows what it advances by in a sample, and its largest leap."""

    def __init__(self) -> None:
        self.largest_gap = 0.0
        self._last: np.ndarray = np.empty(0, dtype=np.int64)
        self._step = 0.0

    def take(self, values: np.ndarray) -> None:
        """The next values."""
        joined = np.concatenate((self._last, values.astype(np.int64)))
        steps = np.diff(joined) % (1 << 32)
        if len(steps):
            middle = float(np.median(steps))
            # a few counts a sample come as 1, 1, 1, 2: only their mean is a step
            self._step = self._step or (middle if middle >= _MANY_COUNTS else float(np.mean(steps)))
            most = float(np.max(steps))
            if self._step > 0 and most > 2.5 * self._step and most - self._step > 2:
                self.largest_gap = max(self.largest_gap, most / self._step - 1.0)
        self._last = joined[-1:]


def _clock_values(part: Path, trials: Trials) -> Iterator[np.ndarray]:
    """The clock's values in order: trial by trial, or by blocks of short ones, so that a million of them cost few reads."""
    if trials.clock is None:
        return
    n_trials = (part.stat().st_size - _HEAD_BYTES) // trials.trial_bytes
    at_once = max(1, _MAX_BLOCK_BYTES // trials.trial_bytes) if trials.trial_samples < 1024 else 1
    with part.open("rb") as file:
        for first in range(0, n_trials, at_once):
            file.seek(_HEAD_BYTES + first * trials.trial_bytes)
            if at_once == 1:
                file.seek(_SAMPLE_BYTES * trials.clock * trials.trial_samples, 1)
                yield np.fromfile(file, ">i4", trials.trial_samples)
                continue
            block = np.fromfile(file, ">i4", min(at_once, n_trials - first) * trials.trial_bytes // _SAMPLE_BYTES)
            yield block.reshape(-1, trials.n_channels, trials.trial_samples)[:, trials.clock].ravel()
