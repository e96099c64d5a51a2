"""What stands in for the table of samples inside a biosigIO recording, so that a channel is read when it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tasks.convert.samples import Samples

__all__ = ["Frame"]


@dataclass(frozen=True)
class _Column:
    """A channel that was not read yet, and what its samples are to be multiplied by, one factor after the other.

    Two rows of a channels.tsv can name one channel, and x * a * b is not x * (a * b) to the last bit.
    """

    frame: Frame
    position: int
    dtype: np.dtype[Any]
    factors: tuple[float, ...] = ()

    def __mul__(self, factor: float) -> _Column:
        return _Column(self.frame, self.position, self.dtype, (*self.factors, factor))

    def astype(self, dtype: np.dtype[Any]) -> _Column:
        """Itself: biosigIO says here that a channel keeps its precision."""
        assert dtype == self.dtype
        return self

    @property
    def values(self) -> NDArray[Any]:
        """The samples."""
        return self.frame.read(self)


@dataclass
class Frame:
    """The channels of a recording by label, each read from ``samples`` when its values are asked for.

    biosigIO asks for the labels, the length, one column after another for its values, and, where a channels.tsv
    declares another unit, for a column times a number.

    Parameters
    ----------
    labels
        One for each channel of ``samples``.
    """

    labels: list[str]
    samples: Samples
    _columns: dict[str, _Column] = field(init=False)
    _due: Iterator[NDArray[Any]] | None = field(default=None, init=False)
    _order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._columns = {
            label: _Column(self, position, self.samples.dtype) for position, label in enumerate(self.labels)
        }

    @property
    def columns(self) -> list[str]:
        """The labels."""
        return self.labels

    def __len__(self) -> int:
        return self.samples.n_samples

    def __contains__(self, label: object) -> bool:
        return label in self._columns

    def __getitem__(self, label: str) -> _Column:
        return self._columns[label]

    def __setitem__(self, label: str, column: _Column) -> None:
        self._columns[label] = column

    def part(self, labels: Sequence[str]) -> Frame:
        """A frame of some of the channels, which are read in the order of ``labels``."""
        own = Frame(list(labels), self.samples)
        own._columns = {label: _moved(self._columns[label], own) for label in labels}
        return own

    def read(self, column: _Column) -> NDArray[Any]:
        """The samples of the next channel, which must be this one: they are read ahead in the order of the labels.

        Raises
        ------
        RuntimeError
            This release of biosigIO goes another way.
        """
        if self._due is None:
            self._order = [self._columns[label].position for label in self.labels]
            self._due = self.samples.channels(tuple(self._order))
        if not self._order or self._order.pop(0) != column.position:
            raise RuntimeError("biosigIO does not write the channels in the order of their labels here")
        values = next(self._due)
        for factor in column.factors:
            values = values * factor
        return values


def _moved(column: _Column, frame: Frame) -> _Column:
    return _Column(frame, column.position, column.dtype, column.factors)
