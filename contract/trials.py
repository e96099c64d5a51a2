"""Which trials an export holds: windows around onsets, in samples, and the numbers that stand for their stimuli."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from contract.errors import Refused
from contract.samples import sample_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Chosen", "Trial", "choose", "first_overlap", "stimulus_ids", "window_samples"]

_MOST_SAMPLES = 2**53
"""Beyond it a float64, in which labels and trial numbers are kept, skips whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial.

    Parameters
    ----------
    start, stop, onset
        Level-0 samples of the recording, ``stop`` not included; ``start <= onset < stop``.
    event
        Position of its event among those that were given.
    """

    start: int
    stop: int
    onset: int
    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The trials that are kept, in the order of their events, and what was left.

    Parameters
    ----------
    dropped
        Events whose onset lies in the part and whose window leaves it.
    without_onset
        Events that no sample is known of.
    """

    trials: tuple[Trial, ...]
    dropped: int
    without_onset: int


def window_samples(window_s: tuple[float, float], rate_hz: float) -> tuple[int, int]:
    """A window around an onset in samples relative to it, the end not included: ``floor(seconds * rate + 0.5)`` of each end.

    Raises
    ------
    Refused
        It is no window, holds no sample, or does not hold the onset, which is where the format keeps the label.
    """
    first_s, last_s = window_s
    if not (math.isfinite(first_s) and math.isfinite(last_s)) or first_s >= last_s:
        raise Refused(
            f"--window: {first_s:g} {last_s:g} is none; give the seconds of its start and its end, such as -0.2 0.8."
        )
    if first_s > 0 or last_s <= 0:
        raise Refused(
            f"--window: {first_s:g} {last_s:g} does not hold the onset, at which the label stands; let it begin at or before 0 and "
            "end after it."
        )
    first, last = sample_index(first_s, rate_hz), sample_index(last_s, rate_hz)
    if first is None or last is None or last - first > _MOST_SAMPLES:
        raise Refused(f"--window: {first_s:g} {last_s:g} is too long at {rate_hz:g} Hz.")
    if last <= 0:
        raise Refused(f"--window: no sample lies between 0 and {last_s:g} s at {rate_hz:g} Hz; let it end later.")
    return first, last


def choose(onsets: Sequence[int | None], *, window: tuple[int, int], part: tuple[int, int]) -> Chosen:
    """The trials of events with these onset samples, of those whose onset lies in ``part``.

    Parameters
    ----------
    onsets
        Level-0 samples as they are published: not clamped to the recording, None where they are not known.
    window
        Samples relative to an onset, as ``window_samples`` gives them.
    part
        Samples of the recording, the end not included, that a window must lie in.
    """
    trials: list[Trial] = []
    dropped = without = 0
    for event, onset in enumerate(onsets):
        if onset is None:
            without += 1
        elif part[0] <= onset < part[1]:
            start, stop = onset + window[0], onset + window[1]
            if part[0] <= start and stop <= part[1]:
                trials.append(Trial(start=start, stop=stop, onset=onset, event=event))
            else:
                dropped += 1
    return Chosen(trials=tuple(trials), dropped=dropped, without_onset=without)


def first_overlap(trials: Iterable[Trial]) -> tuple[Trial, Trial] | None:
    """The first two trials, by their start, that share a sample; None when none do."""
    ordered = sorted(trials, key=lambda trial: (trial.start, trial.event))
    # windows of one length: if any two overlap, two neighbours do
    return next(((one, next_) for one, next_ in pairwise(ordered) if next_.start < one.stop), None)


def stimulus_ids(words: Iterable[str]) -> dict[str, int]:
    """The numbers 1, 2, … that stand for words, in sorted order of the words."""
    return {word: number for number, word in enumerate(sorted(set(words)), start=1)}
