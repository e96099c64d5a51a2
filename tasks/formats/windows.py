"""Recordings that zarrmill reads itself, window by window; biosigIO is given the samples and never opens the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ReadsWindows", "WindowChannel", "WindowReader"]


@dataclass(frozen=True, slots=True)
class WindowChannel:
    """A channel as the file has it; None for what the file does not say.

    Without a unit in the file, that of channels.tsv is the samples' own; else the samples are converted into it.
    """

    label: str
    channel_type: str | None = None
    unit: str | None = None


class WindowReader(Protocol):
    """An open recording of one rate."""

    rate_hz: float
    n_samples: int
    channels: Sequence[WindowChannel]

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Samples ``start`` to ``stop`` of all channels, (channels x samples), not to be changed."""
        ...

    def close(self) -> None:
        """Let the file go."""
        ...


@runtime_checkable
class ReadsWindows(Protocol):
    """A format that biosigIO has no importer for."""

    def windows(self, primary: Path) -> WindowReader:
        """The recording, open."""
        ...
