"""MEF3 sessions: a .mefd folder with one .timd folder per channel."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tasks.formats.content import corrupt, empty, reading
from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Mef3"]

# Positions in a .tmet file (Mayo Clinic, "Multiscale Electrophysiology Format, version 3.0").
_ENCRYPTION, _SECTION_2 = 1024, 2560
_RATE, _SAMPLES = _SECTION_2 + 6160, _SECTION_2 + 6360
_MAX_RATE_HZ = 1e7


class Mef3:
    """MEF3: always streamed."""

    name = "mef3"
    extensions: tuple[str, ...] = ()
    folder_extensions: tuple[str, ...] = (".mefd",)
    companions: frozenset[str] = frozenset()
    precedence = 90
    source_format = "mef3"

    def header(self, primary: Path) -> Header:
        """Count the channels; rate and samples come from their metadata where it is not encrypted."""
        channels = sorted(p for p in primary.glob("*.timd") if p.is_dir())
        if not channels:
            raise empty(f"{primary.name} holds no channel")
        sizes = [_size(channel) for channel in channels]
        rates = {rate for rate, _ in sizes if rate is not None}
        samples = [count for _, count in sizes if count is not None]
        whole = len(samples) == len(channels)
        return Header(
            n_channels=len(channels),
            n_samples=max(samples) if whole else None,
            rate_hz=max(rates) if rates and whole else None,
            rates_hz=tuple(sorted(rates)) if whole else (),
            exact_samples=False,
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """Twelve times the files: its reader keeps every window, 7.5 to 10.3 GiB were measured from about 1 GB."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=1)
        return max(streamed_bytes(shape), 12 * size_bytes)

    def read_target(self, primary: Path) -> Path:
        """The folder."""
        return primary


def _size(channel: Path) -> tuple[float | None, int | None]:
    """Rate and samples of one channel over all its segments; None where the metadata is encrypted."""
    segments = sorted(channel.glob("*.segd/*.tmet"))
    if not segments:
        raise corrupt(f"{channel.name} holds no segment with metadata")
    rate: float | None = None
    count = 0
    for segment in segments:
        with reading(segment):
            with segment.open("rb") as file:
                data = file.read(_SAMPLES + 8)
            if len(data) < _SAMPLES + 8:
                raise corrupt(f"{segment.name} ends inside its header")
        if data[_ENCRYPTION] in {1, 2}:
            return None, None
        (rate,) = struct.unpack_from("<d", data, _RATE)
        (samples,) = struct.unpack_from("<q", data, _SAMPLES)
        if rate is None or not 0 < rate < _MAX_RATE_HZ or samples < 0:
            return None, None
        count += samples
    return rate, count
