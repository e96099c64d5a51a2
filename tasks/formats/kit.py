"""KIT/Yokogawa recordings: .con, .sqd and .kdf files."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, BinaryIO

from tasks.formats.content import corrupt, empty, not_continuous, reading
from tasks.formats.links import linked
from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Kit"]

# Entries of the directory at the start of the file, as in MNE's KIT constants.
_SYSTEM, _CHANNELS, _ACQUISITION, _RAW_DATA = 1, 4, 8, 9
_CONTINUOUS = 1
_MAX_ENTRIES = 64
_MAX_CHANNELS = 4096
_KNOWN_ENDINGS = frozenset({".con", ".sqd"})


class Kit:
    """KIT: always streamed."""

    name = "kit"
    extensions: tuple[str, ...] = (".con", ".sqd", ".kdf")
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    precedence = 80
    source_format = "meg"

    def header(self, primary: Path) -> Header:
        """Read the directory, the channel count and the acquisition condition."""
        with reading(primary), primary.open("rb") as file:
            entries = _entries(file)
            file.seek(entries[_SYSTEM][0] + 3 * 4 + 128 + 128)
            (n_channels,) = struct.unpack("<i", file.read(4).ljust(4, b"\xff"))
            file.seek(entries[_ACQUISITION][0])
            condition = file.read(20)
            if len(condition) < 20:
                raise EOFError("it ends inside its header")
            kind, rate_hz, _, n_samples = struct.unpack("<idii", condition)
            offset = entries[_RAW_DATA][0]
        if kind != _CONTINUOUS:
            raise not_continuous(f"{primary.name} holds epochs or an average (acquisition type {kind})")
        if not (rate_hz > 0 and math.isfinite(rate_hz)):
            raise corrupt(f"{primary.name} declares a sampling rate of {rate_hz:g} Hz")
        if not 0 < n_channels <= _MAX_CHANNELS or n_samples <= 0:
            raise empty(f"{primary.name} declares {n_channels} channels and {n_samples} samples")
        held = (primary.stat().st_size - offset) // (2 * n_channels)
        if held < n_samples:
            # biosigIO's reader would fill what is missing with zeros and say nothing.
            raise corrupt(f"{primary.name} holds {max(held, 0)} of the {n_samples} samples it declares")
        return Header(
            n_channels=n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            kept_sample_bytes=8,
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """As every streamed format."""
        return streamed_bytes(shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=2), by_windows=True)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - by name alone
        """The file itself; under .con where it has the ending .kdf, which the reader's entrance does not know."""
        return primary if primary.suffix.lower() in _KNOWN_ENDINGS else linked(work, f"{primary.stem}.con", primary)


def _entries(file: BinaryIO) -> list[tuple[int, int, int, int]]:
    """Offset, size, capacity and count of each part of the file; the first entry describes the directory itself."""
    first = file.read(16)
    if len(first) < 16:
        raise EOFError("it ends inside its directory")
    count = struct.unpack("<Iiii", first)[3]
    if not _RAW_DATA < count <= _MAX_ENTRIES:
        raise ValueError(f"its directory claims {count} entries")
    rest = file.read(16 * (count - 1))
    if len(rest) < 16 * (count - 1):
        raise EOFError("it ends inside its directory")
    return [struct.unpack("<Iiii", first), *struct.iter_unpack("<Iiii", rest)]
