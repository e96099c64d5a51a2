"""Which part of a recording somebody asks for, and which samples and channels that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.samples import sample_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract.reading import ReadChannel

__all__ = ["MOST_CHANNELS_NAMED", "WindowAsked", "columns_of", "rows_of", "samples_of"]

MOST_CHANNELS_NAMED = 4096
_MOST_TEXT = 1024
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAsked:
    """A window as it is asked for.

    Parameters
    ----------
    recording
        Its path in the dataset, or that of its store.
    group
        A channel group; None for the one with the most channels.
    start_s, stop_s
        Seconds from the start of the recording; None for its end.
    channels
        Labels, or rows as ``3`` and ``0:16`` where no channel has that label; empty for all.
    level
        0 for the signal, from 1 a view level.
    """

    recording: str
    group: str | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    channels: tuple[str, ...] = ()
    level: int = 0

    def __post_init__(self) -> None:
        for name, text in (("recording", self.recording), ("group", self.group or "x")):
            if not text or len(text) > _MOST_TEXT or "\0" in text:
                raise Refused(
                    f"{name}: it is empty, longer than {_MOST_TEXT} characters or holds a NUL; name one of the index."
                )
        if not math.isfinite(self.start_s) or self.start_s < 0:
            raise Refused("start: it must be a number of seconds from 0; the recording begins there.")
        if self.stop_s is not None and not (math.isfinite(self.stop_s) and self.stop_s > self.start_s):
            raise Refused("stop: it must be a number of seconds above start; leave it out to read to the end.")
        if len(self.channels) > MOST_CHANNELS_NAMED:
            raise Refused(
                f"channels: more than {MOST_CHANNELS_NAMED} are named; name ranges of rows like 0:64 instead."
            )
        if self.level < 0:
            raise Refused("level: it must be 0 for the signal, or the number of a view level.")


def samples_of(asked: WindowAsked, *, rate_hz: float, n_samples: int) -> tuple[int, int]:
    """The level-0 samples of a window, ``end`` not included; a stop past the recording's end means its end.

    Seconds become samples by the formula of ``contract.samples``, so that an event's sample index and a window that
    starts at its onset agree.

    Raises
    ------
    Refused
        Nothing of the recording lies in the window.
    """
    start = sample_index(asked.start_s, rate_hz)
    # a stop too far away for an int64 is past the end too
    stop = sample_index(asked.stop_s, rate_hz) if asked.stop_s is not None else n_samples
    end = n_samples if stop is None else min(stop, n_samples)
    if start is None or start >= n_samples:
        raise Refused(
            f"start: {asked.start_s:g} s is past the end of the recording, which is {n_samples / rate_hz:g} s long."
        )
    if start >= end:
        raise Refused(f"stop: no sample lies between start and stop at {rate_hz:g} Hz; ask for a longer window.")
    return start, end


def columns_of(samples: tuple[int, int], *, downsample_factor: int, n_columns: int) -> tuple[int, int]:
    """The columns of a view level that show these samples, ``end`` not included."""
    start, end = samples
    last = min(n_columns, -(-end // downsample_factor))
    return min(start // downsample_factor, last - 1), last


def rows_of(named: Sequence[str], channels: Sequence[ReadChannel]) -> list[int]:
    """The rows of the channels that are named, in that order, each once; all of them when none is.

    Raises
    ------
    Refused
        A name is neither a label nor a row of this group.
    """
    if not named:
        return sorted(channel.row_index for channel in channels)
    by_label: dict[str, int] = {}
    for channel in channels:
        by_label.setdefault(channel.label, channel.row_index)
    rows: dict[int, None] = {}
    for name in named:
        rows.update(dict.fromkeys([by_label[name]] if name in by_label else _numbered(name, len(channels), by_label)))
    return list(rows)


def _numbered(name: str, n_channels: int, by_label: dict[str, int]) -> list[int]:
    first, colon, last = name.partition(":")
    parts = [first, last] if colon else [first]
    if all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        start = int(first)
        stop = int(last) if colon else start + 1
        if start < stop <= n_channels:
            return list(range(start, stop))
    shown = ", ".join(list(by_label)[:_SHOWN])
    raise Refused(
        f"channels: {name[:80]!r} is neither a label nor a row of this group. It has {n_channels} channels: {shown}"
        f"{', …' if len(by_label) > _SHOWN else ''}; rows are named like 3 or 0:{n_channels}."
    )
