"""A recording as biosigIO's importer makes it, whose samples are read when they are written."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.convert.edf_samples import edf_samples
from tasks.convert.samples import TableSamples
from tasks.convert.seams import glimpsed_recording, opened_by_mne, without_samples
from tasks.convert.set_samples import set_in_place
from tasks.convert.tables import table_samples
from tasks.convert.windowed import opened
from tasks.convert.windows import Windows, of_mne, window_samples
from tasks.formats.protocol import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tasks.convert.pieces import EngineInput, Part
    from tasks.convert.samples import Samples
    from tasks.convert.windowed import WindowSource

__all__ = ["imported"]


@contextmanager
def imported(given: EngineInput, part: Part) -> Iterator[tuple[Any, Samples]]:
    """A biosigIO recording of ``part``, the samples of whose channels are not in it, and those samples.

    What biosigIO reads whole it reads here: a compressed file, and one that only a tolerant reader takes.

    Raises
    ------
    ValueError
        The file holds no signal.
    """
    if given.windows is not None:
        with closing(opened(given.windows, part.path, given.channels, given.modality)) as own:
            if own.n_samples == 0 or not own.channels:
                raise ValueError("No signals loaded")
            yield own.recording(given.source_format), window_samples(_windows(own), given)
    elif given.route is Route.IN_MEMORY:
        yield _whole(given, part)
    elif given.is_edf:
        yield _edf(given, part)
    elif given.source_format == "eeglab":
        with set_in_place():
            recording, samples = _whole(given, part)
        yield recording, samples
    else:
        source = opened_by_mne(str(part.path))
        try:
            raw = source._raw
            if raw.n_times == 0 or not raw.ch_names:
                raise ValueError("No signals loaded")
            recording = glimpsed_recording(raw)
            recording.set_metadata("source_file", str(part.path))
            recording.set_metadata("source_format", given.source_format)
            for key, value in source.extra_metadata.items():
                recording.set_metadata(key, value)
            yield recording, table_samples(raw) or window_samples(of_mne(raw, given.header.block_samples), given)
        finally:
            source.close()


def _windows(own: WindowSource) -> Windows:
    rows = list(range(len(own.channels)))
    return Windows(len(rows), own.n_samples, lambda start, stop: own.read(rows, start, stop), np.ones(len(rows)))


def _whole(given: EngineInput, part: Part) -> tuple[Any, Samples]:
    from biosigio import Recording

    recording = Recording.from_file(str(part.path), importer=given.source_format, bids_channels="off")
    return recording, _held(recording)


def _held(recording: Any) -> Samples:
    """The samples that a recording holds itself."""
    if recording.signals is None or not len(recording.channels):
        raise ValueError("No signals loaded")
    table = recording.signals.to_numpy(copy=False)
    return TableSamples((table,), np.dtype(table.dtype))


def _edf(given: EngineInput, part: Part) -> tuple[Any, Samples]:
    from biosigio import Recording

    with without_samples() as seen:
        recording = Recording.from_file(str(part.path), importer=given.source_format, bids_channels="off")
    if not seen.channels:  # the tolerant reader, which the header did not foresee
        return recording, _held(recording)
    samples = edf_samples(part.path, seen.channels, seen.n_samples)
    return _whole(given, part) if samples is None else (recording, samples)
