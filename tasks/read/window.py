"""Windows of a recording in physical values: of the signal, or the envelopes of a view level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contract.errors import Refused
from contract.recipe_making import Selection, array_path, group_of, select
from tasks.read.store import read_consistently

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from contract.reading import ReadEntry
    from contract.window import WindowAsked
    from tasks.read.place import Place
    from tasks.read.store import StoreReading

__all__ = ["MOST_VALUES", "Window", "blocks_of", "read_window", "select_in"]

MOST_VALUES = 32 * 1024 * 1024
"""Values that one window may have, 256 MB as float64; more is read in blocks."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in physical values.

    Parameters
    ----------
    values
        float64, (channels, samples); of a view level (2, channels, columns), least before greatest.
    selection
        What was read: channels, slices, rates.
    """

    values: npt.NDArray[np.float64]
    selection: Selection


def select_in(reading: StoreReading, zarr: str, group: str, asked: WindowAsked) -> Selection:
    """What ``asked`` means in a store: two small objects are read.

    Raises
    ------
    Refused
        The window does not lie in the recording, or there is no such view level.
    """
    group_metadata = reading.metadata(group)
    levels = group_metadata.get("attributes", {}).get("view_levels", [])
    if asked.level and asked.level not in levels:
        there = f"0 for the signal and the view levels {levels}" if levels else "0 for the signal only"
        raise Refused(f"level: {group} has no view level {asked.level}; it has {there}.")
    return select(
        asked, group_metadata, reading.metadata(array_path(zarr, group, asked.level).removeprefix(f"{zarr}/"))
    )


def read_window(
    place: Place, dataset_id: str, entry: ReadEntry, asked: WindowAsked, *, most_values: int = MOST_VALUES
) -> Window:
    """A window, all of it from one version of the store.

    Raises
    ------
    Refused
        It does not lie in the recording, or has more than ``most_values`` values.
    StorageError
        It cannot be read now.
    """
    group = group_of(entry, asked.group).name

    def work(reading: StoreReading) -> Window:
        selection = select_in(reading, entry.zarr, group, asked)
        start, end = selection.columns
        n_values = len(selection.chosen) * (end - start) * (2 if selection.level else 1)
        if n_values > most_values:
            raise Refused(
                f"stop: {len(selection.chosen)} channels of {end - start} samples are {n_values} values, and at most "
                f"{most_values} are given at once; ask for less, or for a view level."
            )
        array = reading.array(array_path(entry.zarr, group, selection.level).removeprefix(f"{entry.zarr}/"))
        return Window(_physical(array, selection, start, end), selection)

    return read_consistently(place, dataset_id, entry.zarr, work)


def blocks_of(
    reading: StoreReading, zarr: str, group: str, selection: Selection, *, most_values: int = 1 << 22
) -> Iterator[npt.NDArray[np.float64]]:
    """A window piece by piece along time, each ending where a chunk does, for recordings that do not fit in memory.

    To be used inside the ``work`` of ``read_consistently``; only its end tells whether the pieces belong together.
    """
    array = reading.array(array_path(zarr, group, selection.level).removeprefix(f"{zarr}/"))
    chunk = selection.layout.chunk_shape[-1]
    step = max(1, most_values // (len(selection.chosen) * chunk)) * chunk
    start, end = selection.columns
    while start < end:
        stop = min(end, (start // chunk) * chunk + step)
        yield _physical(array, selection, start, stop)
        start = stop


def _physical(array: Any, selection: Selection, start: int, end: int) -> npt.NDArray[np.float64]:
    first, last = selection.enclosing
    part = (slice(first, last), slice(start, end))
    digital = np.asarray(array[(slice(None), *part)] if selection.level else array[part])
    picked = [row - first for row in selection.rows]
    if picked != list(range(last - first)):
        digital = digital[..., picked, :]
    scale_offset = selection.scale_offset
    scale, offset = np.asarray(scale_offset.scale)[:, None], np.asarray(scale_offset.offset)[:, None]
    physical: npt.NDArray[np.float64] = digital * scale
    physical += offset  # in place: a window may be 256 MB
    return physical
