"""The samples of trials, or of a part of a recording: each chunk that holds any of them is read once, and no other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tasks.read.window import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from contract.recipe_making import Selection
    from contract.trials import Trial
    from tasks.export.spool import Spool
    from tasks.read.store import StoreReading

__all__ = ["Signal", "read_part", "read_trials", "runs"]


def runs(trials: Sequence[Trial], chunk: int) -> Iterator[list[tuple[int, Trial]]]:
    """Trials with their numbers, by start, together where they share a chunk of so many samples."""
    run: list[tuple[int, Trial]] = []
    end = 0
    for number, trial in sorted(enumerate(trials), key=lambda one: one[1].start):
        if run and trial.start // chunk > (end - 1) // chunk:
            yield run
            run = []
        run.append((number, trial))
        end = max(end, trial.stop)
    if run:
        yield run


@dataclass(frozen=True, slots=True)
class Signal:
    """The signal of a channel group, and what of it is asked for."""

    reading: StoreReading
    zarr: str
    group: str
    selection: Selection

    def blocks(self, start: int, stop: int) -> Iterator[npt.NDArray[np.float64]]:
        """Physical values, (channels, samples), of these samples piece by piece, each ending where a chunk does."""
        return blocks_of(self.reading, self.zarr, self.group, replace(self.selection, columns=(start, stop)))


def read_trials(signal: Signal, trials: Sequence[Trial], spool: Spool) -> None:
    """Put the samples of trials, all of one length, one behind the other."""
    for run in runs(trials, signal.selection.layout.chunk_shape[-1]):
        at, waiting = run[0][1].start, 0
        for block in signal.blocks(at, max(trial.stop for _, trial in run)):
            values, end = block.T, at + block.shape[1]
            while run[waiting][1].stop <= at:
                waiting += 1
            for number, trial in run[waiting:]:
                if trial.start >= end:
                    break
                first, last = max(trial.start, at), min(trial.stop, end)
                row = number * (trial.stop - trial.start) + first - trial.start
                spool.write(row, values[first - at : last - at])
            at = end


def read_part(signal: Signal, spool: Spool) -> None:
    """Put the samples of the selection, in order of time."""
    row = 0
    for block in signal.blocks(*signal.selection.columns):
        spool.write(row, block.T)
        row += block.shape[1]
