"""BDF and BDF+ files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.formats.edf_header import header_bytes, read_header, readable
from tasks.formats.memory import BLOCK_BYTES, in_memory_bytes, streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import group_shapes

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BDF"]


class BDF:
    """BDF: streamed; in memory when the file needs a tolerant read."""

    name = "bdf"
    extensions: tuple[str, ...] = (".bdf",)
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    precedence = 30
    source_format = "edf"

    def header(self, primary: Path) -> Header:
        """Read 256 bytes and 256 more per signal."""
        return read_header(primary, sample_width=3)

    def start_bytes(self, path: str, size_bytes: int, start: bytes) -> int | None:  # noqa: ARG002 - of the Protocol
        """256 bytes and 256 more per signal, never more than 1 MiB. The onsets behind them, which tell gaps, do not count."""
        return header_bytes(size_bytes, start)

    def route(self, header: Header) -> Route:
        """Streamed; in memory what the strict reader refuses, because the tolerant one reads whole."""
        return Route.IN_MEMORY if header.tolerant else Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """In memory 18 C N (32 for a tolerant read, which goes through MNE); streamed as every streamed format.

        Mixed rates are read rate by rate, so the neediest one counts.
        """
        shapes = group_shapes(header, size_bytes, served_rate_hz, file_sample_bytes=3)
        if route is Route.IN_MEMORY:
            return max(in_memory_bytes(shape, bytes_per_value=32 if header.tolerant else 18) for shape in shapes)
        return max(streamed_bytes(shape, block_bytes=min(BLOCK_BYTES // 4, 8 * shape.n_samples)) for shape in shapes)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:
        """The file itself, or a copy with its header in plain ASCII."""
        return readable(primary, work, header)
