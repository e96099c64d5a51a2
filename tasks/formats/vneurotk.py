"""VneuroTK's HDF5 recordings: schemas 0 and 1, continuous ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of
from tasks.vneurotk.description import Description, describe
from tasks.vneurotk.opening import opened
from tasks.vneurotk.samples import VneurotkReader, band_rows
from tasks.vneurotk.trials import read_trials

if TYPE_CHECKING:
    from pathlib import Path

    from tasks.bids.tsv import Table
    from tasks.formats.windows import WindowReader

__all__ = ["Vneurotk"]


class Vneurotk:
    """VneuroTK: always streamed, rows by whole chunks. Images and features in the file are not read, and no path in it is followed."""

    name = "vneurotk"
    extensions: tuple[str, ...] = (".h5",)
    vague_extensions: frozenset[str] = frozenset({".h5"})
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    precedence = 100
    source_format = "vneurotk"

    def header(self, primary: Path) -> Header:
        """Read the attributes and the shape of the samples; a kilobyte or two whatever the recording's length."""
        with opened(primary) as file:
            found = describe(file, primary.name)
        return Header(
            n_channels=found.n_channels,
            n_samples=found.n_samples,
            rate_hz=found.rate_hz,
            rates_hz=(found.rate_hz,),
            channel_labels=found.names or (),
            prefilters=() if found.prefilter is None else (found.prefilter,) * found.n_channels,
            sample_bytes=found.dtype.itemsize,
            kept_sample_bytes=max(4, found.dtype.itemsize),
            block_samples=band_rows(found) if found.chunk_rows else 0,
            notes=tuple(_silences(found)),
        )

    def windows(self, primary: Path) -> WindowReader:
        """The recording, open."""
        return VneurotkReader(primary)

    def events(self, primary: Path) -> Table:
        """The trials of the file."""
        with opened(primary) as file:
            return read_trials(file, describe(file, primary.name))

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """The streamed formula, and a band of rows as the file has them beside the chunk that is being unpacked."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=header.sample_bytes)
        band = 2 * shape.n_channels * min(header.block_samples, shape.n_samples) * header.sample_bytes
        return streamed_bytes(shape, by_windows=True) + band

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - nothing to respell
        """The file itself."""
        return primary


def _silences(found: Description) -> list[str]:
    """What the file does not say of its channels, and what is done about it."""
    said = []
    if found.names is None:
        said.append("the file does not name its channels: they are numbered")
    if found.units is None:
        said.append("the file names no units: those of channels.tsv are its samples', and n/a where that names none")
    if found.types is None:
        said.append("the file names no types of channels: those of channels.tsv count, and OTHER where that names none")
    return said
