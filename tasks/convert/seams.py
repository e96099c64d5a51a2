"""The places inside biosigIO's writers through which the samples of a channel group pass.

biosigIO writes a group at a ratio of whole rates, from a source that it opens itself, and forgets what it rounded. Its
writers look three functions up by name while they run; here they are given ours for the time of one group. The release
of biosigIO is pinned, and ``GroupSeams.check`` finds a release whose writers no longer pass through them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tasks.convert.loss import ChannelLoss, measure
from tasks.convert.resampling import resample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GroupSeams", "GroupSource", "OpenSource", "passing_through"]


class OpenSource(Protocol):
    """What biosigIO's streaming writer reads from."""

    sfreq: float
    n_samples: int
    channels: list[dict[str, Any]]
    extra_metadata: dict[str, Any]

    def read(self, picks: list[int], start: int, stop: int) -> NDArray[np.float64]:
        """Samples ``start`` to ``stop`` of some channels (channels x samples)."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


@dataclass
class GroupSource:
    """Some channels of an open source, as a source of their own. Closing it leaves the whole one open.

    biosigIO's streaming writer keeps samples in single precision on its way. So each channel is handed over less its
    first sample, and gets it back in double precision: a large constant costs no detail.
    """

    whole: OpenSource
    channels: list[dict[str, Any]]
    sfreq: float
    extra_metadata: dict[str, Any] = field(default_factory=dict)
    origins: dict[int, float] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Samples per channel."""
        return self.whole.n_samples

    def read(self, picks: list[int], start: int, stop: int) -> NDArray[np.float64]:
        """As the whole source reads, less each channel's origin."""
        import numpy as np

        block = np.array(self.whole.read(picks, start, stop), dtype=np.float64)
        for row, pick in enumerate(picks):
            origin = self.origins.setdefault(pick, float(block[row, 0]) if np.isfinite(block[row, 0]) else 0.0)
            block[row] -= origin
        return block

    def origin(self, position: int) -> float:
        """What was left out of the channel at this position of the group, in the unit that it is served in."""
        channel = self.channels[position]
        return self.origins.get(channel["idx"], 0.0) * float(channel.get("unit_factor", 1.0))

    def close(self) -> None:
        """Nothing: other groups are read from the same file."""


@dataclass
class GroupSeams:
    """One group on its way through biosigIO: what its channels are resampled by, and what became of them."""

    ratio: Fraction
    source: GroupSource | None = None
    losses: list[ChannelLoss] = field(default_factory=list)
    resampled: int = 0

    def resample(self, samples: NDArray[np.float64], *_rates: float, discrete: bool) -> NDArray[np.float64]:
        """One channel at the served rate; biosigIO's own rates are whole numbers and are not used."""
        import numpy as np

        values = np.asarray(samples, dtype=np.float64)
        if self.source is not None:
            values += self.source.origin(self.resampled)  # the streaming writer hands over its own copy
        self.resampled += 1
        return resample(values, self.ratio, discrete=discrete)

    def quantised(self, quantise: Callable[..., Any]) -> Callable[..., Any]:
        """``quantise``, and a look at what it did."""

        def measured(row: NDArray[np.float64]) -> Any:
            digital, scale, offset, filled = quantise(row)
            self.losses.append(measure(row, digital, scale, offset))
            return digital, scale, offset, filled

        return measured

    def check(self, n_channels: int) -> None:
        """Whether every channel came through.

        Raises
        ------
        RuntimeError
            This release of biosigIO goes another way.
        """
        if self.resampled != n_channels or len(self.losses) != n_channels:
            raise RuntimeError(
                f"biosigIO resampled {self.resampled} and quantised {len(self.losses)} of {n_channels} channels here"
            )


@contextmanager
def passing_through(seams: GroupSeams) -> Iterator[None]:
    """While this lasts, biosigIO's writers in this process take samples through ``seams``; one group at a time."""
    from biosigio.exporters import zarr, zarr_stream

    ours: Sequence[tuple[Any, str, Any]] = (
        (zarr, "_resample_channel", seams.resample),
        (zarr_stream, "_resample_channel", seams.resample),
        (zarr, "_quantize_int16_channel", seams.quantised(zarr._quantize_int16_channel)),
        (zarr_stream, "_quantize_int16_channel", seams.quantised(zarr_stream._quantize_int16_channel)),
        (zarr_stream, "_open_stream_source", lambda *_given, **_named: seams.source),
    )
    theirs = [(module, name, getattr(module, name)) for module, name, _ in ours]
    try:
        for module, name, function in ours:
            setattr(module, name, function)
        yield
    finally:
        for module, name, function in theirs:
            setattr(module, name, function)
