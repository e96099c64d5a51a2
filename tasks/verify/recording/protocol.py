"""What a reading of a recording offers: its channels as the file has them, and any window of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

__all__ = ["Reading", "SourceChannel"]


@dataclass(frozen=True, slots=True)
class SourceChannel:
    """A channel of the file: its label, rate in Hz, number of samples, and the unit in which ``read`` gives them.

    ``named`` is False where the file gives no label of its own; ``unit`` is "" where it gives none. ``unit_is_declared`` where a
    channels.tsv then names the unit of the samples, which is nobody else's to name.
    """

    label: str
    rate_hz: float
    n_samples: int
    unit: str
    named: bool = True
    unit_is_declared: bool = False


class Reading(Protocol):
    """A recording, open."""

    channels: Sequence[SourceChannel]
    """Signal channels, in the order of the file; annotation channels are none."""

    def read(self, rows: Sequence[int], start: int, stop: int) -> Samples:
        """Samples ``start:stop`` of channels of one rate, (rows x samples), in their units."""
        ...

    def close(self) -> None:
        """Let the file go."""
        ...
