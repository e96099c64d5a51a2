"""The samples of an EDF or BDF file, read from its data records with the arithmetic of its library.

pyEDFlib reads a channel record by record through a seek, a read and a loop in C: 46 ns a sample. The records are a plain
table; a channel is a run of samples in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.formats.edf_header import signal_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["EdfChannel", "EdfSamples", "edf_samples"]

_AT_ONCE_BYTES = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class EdfChannel:
    """A channel as its library describes it: physical = (digital + offset) * step.

    Parameters
    ----------
    first
        Its first samples as its library reads them; what is read here must be the same.
    """

    physical_min: float
    physical_max: float
    digital_min: int
    digital_max: int
    first: NDArray[np.float64]

    @property
    def step(self) -> float:
        """Physical units of one digital step, as EDFlib computes it."""
        return (self.physical_max - self.physical_min) / (self.digital_max - self.digital_min)

    @property
    def offset(self) -> float:
        """Digital steps below the physical zero, as EDFlib computes it."""
        return self.physical_max / self.step - self.digital_max


@dataclass(frozen=True)
class EdfSamples:
    """Channels of one length; see ``Samples``.

    Parameters
    ----------
    records
        The data records (records x bytes), mapped.
    places
        Where in a record each channel's samples lie, in bytes.
    """

    records: NDArray[np.uint8]
    width: int
    places: tuple[slice, ...]
    known: tuple[EdfChannel, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Double precision."""
        return np.dtype(np.float64)

    @property
    def n_samples(self) -> int:
        """Samples per channel."""
        place = self.places[0]
        return int(len(self.records) * (place.stop - place.start) // self.width)

    def channels(self, rows: Sequence[int]) -> Iterator[NDArray[np.float64]]:
        """The samples, one channel after another; of the file no more than the channel is read."""
        for row in rows:
            yield self._physical(self.records, row)

    def check(self) -> None:
        """Whether the library reads the same at the start of every channel.

        Raises
        ------
        RuntimeError
            Another release of it scales otherwise.
        """
        for row, known in enumerate(self.known):
            n_records = -(-len(known.first) * self.width // (self.places[row].stop - self.places[row].start))
            if not np.array_equal(self._physical(self.records[:n_records], row)[: len(known.first)], known.first):
                raise RuntimeError("pyEDFlib reads other samples than stand in the data records here")

    def _physical(self, records: NDArray[np.uint8], row: int) -> NDArray[np.float64]:
        place, known = self.places[row], self.known[row]
        count = (place.stop - place.start) // self.width
        values = np.empty((len(records), count))
        at_once = max(1, _AT_ONCE_BYTES // max(1, place.stop - place.start))
        for start in range(0, len(records), at_once):
            own = np.ascontiguousarray(records[start : start + at_once, place])
            np.add(_digital(own, self.width), known.offset, out=values[start : start + at_once])
        values *= known.step
        return values.reshape(-1)


def edf_samples(path: Path, known: Sequence[EdfChannel], n_samples: int) -> EdfSamples | None:
    """The samples of the signals that ``known`` describes; None where they are not all signals of one length of the file.

    Annotation signals are left out, as the library leaves them out.
    """
    head_bytes, width, counts = signal_counts(path, len(known))
    lengths = {count for count, is_signal in counts if is_signal}
    if len(lengths) != 1 or 0 in lengths:
        return None
    n_records = n_samples // lengths.pop()
    ends = np.cumsum([width * count for count, _ in counts])
    record_bytes = int(ends[-1])
    if head_bytes + n_records * record_bytes > path.stat().st_size:
        return None
    places = tuple(
        slice(int(end) - width * count, int(end))
        for end, (count, is_signal) in zip(ends, counts, strict=True)
        if is_signal
    )
    if len(places) != len(known):
        return None
    records = np.memmap(path, np.uint8, "r", head_bytes, (n_records, record_bytes))
    found = EdfSamples(records, width, places, tuple(known))
    found.check()
    return found


def _digital(raw: NDArray[np.uint8], width: int) -> NDArray[Any]:
    """The whole numbers in (records x bytes): little-endian, of 2 or 3 bytes."""
    if width == 2:
        return raw.view("<i2")
    parts = raw.reshape(len(raw), -1, 3)
    wide = np.zeros((*parts.shape[:2], 4), np.uint8)
    wide[..., 1:] = parts
    return wide.view("<i4")[..., 0] >> 8
