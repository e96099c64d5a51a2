"""MEF3 sessions: a .mefd folder with one .timd folder per channel."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from tasks.formats.content import corrupt, empty, not_continuous, reading, require_content, unreadable, unsupported
from tasks.formats.links import linked
from tasks.formats.memory import streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Mef3"]

# Positions in a .tmet file and length of an entry of a .tidx file (Mayo Clinic, "Multiscale Electrophysiology Format,
# version 3.0"); both begin with a universal header of 1024 bytes.
_TYPE = slice(8, 12)
_ENCRYPTION, _SECTION_2 = 1024, 2560
_RATE, _SAMPLES = _SECTION_2 + 6160, _SECTION_2 + 6360
_HEAD_BYTES = 1024
_MAX_RATE_HZ = 1e7
_BLOCK = np.dtype(
    {
        "names": ["file_offset", "start_us", "n_samples", "n_bytes", "flags"],
        "formats": ["<i8", "<i8", "<u4", "<u4", "u1"],
        "offsets": [0, 8, 24, 28, 44],
        "itemsize": 56,
    }
)
_DISCONTINUITY = 1
_MAX_INDEX_BYTES = 256 << 20


class Mef3:
    """MEF3: always streamed."""

    name = "mef3"
    extensions: tuple[str, ...] = ()
    folder_extensions: tuple[str, ...] = (".mefd",)
    companions: frozenset[str] = frozenset()
    precedence = 90
    source_format = "mef3"

    def header(self, primary: Path) -> Header:
        """Count the channels; rate and samples come from their metadata, gaps from the first one's index.

        Its reader takes one rate and one length for all channels, so sessions of several are not supported.
        """
        channels = sorted(p for p in primary.glob("*.timd") if p.is_dir())
        if not channels:
            raise empty(f"{primary.name} holds no channel")
        sizes = [_size(channel) for channel in channels]
        rates, samples = ({size[i] for size in sizes} for i in (0, 1))
        if len(rates) > 1 or len(samples) > 1:
            what = "rates" if len(rates) > 1 else "lengths"
            raise unsupported(f"the channels of {primary.name} have different {what}")
        rate_hz, n_samples = sizes[0]
        if n_samples < 1:
            raise empty(f"{primary.name} declares no samples")
        gap_s, indexed = _follow(channels[0], rate_hz)
        if indexed != n_samples:
            raise corrupt(f"the metadata of {channels[0].name} declares {n_samples} samples, its index {indexed}")
        if gap_s > 0:
            raise not_continuous(f"{primary.name} has gaps, the largest of {gap_s:g} s")
        return Header(
            n_channels=len(channels), n_samples=n_samples, rate_hz=rate_hz, rates_hz=(rate_hz,), kept_sample_bytes=4
        )

    def route(self, header: Header) -> Route:  # noqa: ARG002 - one route whatever the header says
        """Streamed."""
        return Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:  # noqa: ARG002 - one route
        """As every streamed format; its reader makes more of a window than the others."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=1)
        return streamed_bytes(shape, by_windows=True, window_copies=6)

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - by name alone
        """The folder; under a name in lower case where its ending is in another."""
        return primary if primary.suffix == ".mefd" else linked(work, f"{primary.stem}.mefd", primary)


def _size(channel: Path) -> tuple[float, int]:
    """Rate and samples of one channel over all its segments."""
    segments = sorted(channel.glob("*.segd/*.tmet"))
    if not segments:
        raise unreadable(f"{channel.name} holds no segment with metadata")
    rate = 0.0
    count = 0
    for segment in segments:
        with reading(segment):
            with segment.open("rb") as file:
                data = file.read(_SAMPLES + 8)
            if data[_TYPE] != b"tmet":
                raise corrupt(f"{segment.name} does not start like metadata of MEF3")
            if len(data) < _SAMPLES + 8:
                raise corrupt(f"{segment.name} ends inside its header")
        _require_samples(segment)
        if data[_ENCRYPTION] in {1, 2}:
            raise unreadable(f"{segment.name} is encrypted, and there is no password for it")
        (rate,) = struct.unpack_from("<d", data, _RATE)
        (samples,) = struct.unpack_from("<q", data, _SAMPLES)
        if not 0 < rate < _MAX_RATE_HZ or samples < 0:
            raise corrupt(f"{segment.name} declares {samples} samples at {rate:g} Hz")
        count += samples
    return rate, count


def _require_samples(metadata: Path) -> None:
    """Check that a segment's samples are there, as far as its index says they go."""
    index, samples = metadata.with_suffix(".tidx"), metadata.with_suffix(".tdat")
    for beside in (index, samples):
        require_content(beside)
    if index.stat().st_size < _HEAD_BYTES + _BLOCK.itemsize:
        raise corrupt(f"{index.name} names no block of samples")
    with reading(index), index.open("rb") as file:
        file.seek(-_BLOCK.itemsize, 2)
        last = np.frombuffer(file.read(_BLOCK.itemsize), _BLOCK)[0]
    end = int(last["file_offset"]) + int(last["n_bytes"])
    if not 0 < end <= samples.stat().st_size:
        raise corrupt(f"{samples.name} holds {samples.stat().st_size} bytes of the {end} that its index names")


def _follow(channel: Path, rate_hz: float) -> tuple[float, int]:
    """Seconds of the largest gap before a block that is marked as one (0.0 for none), and samples of all blocks."""
    before_us, largest_us, indexed = None, 0.0, 0
    for index in sorted(channel.glob("*.segd/*.tidx")):
        with reading(index), index.open("rb") as file:
            file.seek(_HEAD_BYTES)
            data = file.read(min(index.stat().st_size, _MAX_INDEX_BYTES))
        blocks = np.frombuffer(data[: len(data) // _BLOCK.itemsize * _BLOCK.itemsize], _BLOCK)
        # the sign of a time says whether its offset is hidden
        starts = np.abs(blocks["start_us"].astype(np.float64))
        ends = starts + blocks["n_samples"] * 1e6 / rate_hz
        leaps = starts - np.concatenate(([starts[0] if before_us is None else before_us], ends[:-1]))
        marked = leaps[(blocks["flags"] & _DISCONTINUITY) > 0]
        largest_us = max(largest_us, float(marked.max()) if len(marked) else 0.0)
        before_us = float(ends[-1])
        indexed += int(blocks["n_samples"].sum(dtype=np.int64))
    return (largest_us / 1e6 if largest_us > 1.5e6 / rate_hz else 0.0), indexed
