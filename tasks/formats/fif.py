"""Neuromag FIF recordings, split ones included."""

from __future__ import annotations

import gzip
import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from tasks.formats.content import corrupt, empty, not_continuous, reading
from tasks.formats.memory import in_memory_bytes, streamed_bytes
from tasks.formats.protocol import Header, Route
from tasks.formats.shape import shape_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Fif"]

# Tag kinds and block numbers of the FIF format (MNE's fiff constants carry the same numbers).
_FILE_ID, _BLOCK_START, _BLOCK_END = 100, 104, 105
_REF_ROLE, _REF_FILE_NAME, _NEXT_FILE = 115, 118, 2
_N_CHANNELS, _RATE, _BUFFER, _SKIP = 200, 201, 300, 301
_RAW_BLOCK, _EVOKED_BLOCK, _CONTINUOUS_BLOCK, _REFERENCE_BLOCK, _SHIELDED_BLOCK, _EPOCHS_BLOCK = (
    102,
    104,
    112,
    118,
    119,
    373,
)
_DATA_BLOCKS = frozenset({_RAW_BLOCK, _CONTINUOUS_BLOCK, _SHIELDED_BLOCK})
_READ_KINDS = frozenset({_BLOCK_START, _BLOCK_END, _N_CHANNELS, _RATE, _SKIP, _REF_ROLE, _REF_FILE_NAME})
_PLAIN_TYPES = frozenset({2, 3, 4, 5, 16})
_ITEM_BYTES = {2: 2, 3: 4, 4: 4, 5: 8, 16: 2, 20: 8, 21: 16}
_MAX_TAGS = 1_000_000
_MAX_SPLITS = 1000
_MAX_INFLATED_BYTES = 8 << 30
"""Of a compressed file; positions in a FIF have 32 bits, so nothing real is longer."""


@dataclass
class _Found:
    """What a walk over the tags of one file has met."""

    n_channels: int | None = None
    rate_hz: float | None = None
    blocks: set[int] = field(default_factory=set)
    open_blocks: list[int] = field(default_factory=list)
    n_samples: int = 0
    skipped_buffers: int = 0
    filled_samples: int = 0
    largest_buffer: int = 0
    types: set[int] = field(default_factory=set)
    skips: bool = False
    role: int = 0
    named: str | None = None
    next_name: str | None = None

    def in_data(self) -> bool:
        return any(block in _DATA_BLOCKS for block in self.open_blocks)

    def table_type(self) -> int | None:
        """The one plain type of all samples; None where there are several or packed ones, or where samples are left out."""
        return (
            next(iter(self.types)) if len(self.types) == 1 and self.types <= _PLAIN_TYPES and not self.skips else None
        )


class Fif:
    """FIF: streamed; in memory where it is compressed, because one cannot seek in such a file."""

    name = "fif"
    extensions: tuple[str, ...] = (".fif", ".fif.gz")
    folder_extensions: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()
    precedence = 50
    source_format = "meg"

    def header(self, primary: Path) -> Header:
        """Walk the tags, seeking over the samples; a split recording is followed from file to file."""
        first = _walk(primary)
        n_samples, path, after = first.n_samples, primary, first
        zeros, seen, tables = first.filled_samples, {primary}, {first.table_type()}
        for _ in range(_MAX_SPLITS):
            if after.next_name is None:
                break
            path = path.with_name(after.next_name)
            if path in seen:
                raise corrupt(f"the splits of {primary.name} lead back to {path.name}")
            seen.add(path)
            if not (path.exists() or path.is_symlink()):
                raise corrupt(f"the next split of {primary.name}, {path.name}, is not there")
            after = _walk(path)
            n_samples += after.n_samples
            zeros += after.filled_samples
            tables.add(after.table_type())
        if not first.blocks & _DATA_BLOCKS:
            if first.blocks & {_EVOKED_BLOCK, _EPOCHS_BLOCK}:
                raise not_continuous(f"{primary.name} holds averages or epochs")
            raise empty(f"{primary.name} holds no raw data")
        if not first.n_channels or n_samples == 0:
            raise empty(f"{primary.name} holds no channel or no sample")
        rate_hz = first.rate_hz
        if rate_hz is None or not (rate_hz > 0 and math.isfinite(rate_hz)):
            raise corrupt(f"{primary.name} declares no sampling rate that can be")
        # What stands as a plain table is read from the file, without copies (tasks.convert.tables).
        is_table = len(tables) == 1 and None not in tables and path.name.endswith(".fif")
        widest = max(_ITEM_BYTES.get(type_ & 0xFFFF, 4) for type_ in first.types or {0})
        return Header(
            n_channels=first.n_channels,
            n_samples=n_samples,
            rate_hz=rate_hz,
            rates_hz=(rate_hz,),
            kept_sample_bytes=0 if is_table else 8 if widest > 4 else 4,
            block_samples=0 if is_table else first.largest_buffer,
            # Corrected recordings keep the shielding's block beside a raw one; only an uncorrected one has nothing else.
            maxshield=not first.blocks & {_RAW_BLOCK, _CONTINUOUS_BLOCK},
            whole=_is_compressed(primary),
            notes=(f"{zeros} samples were never acquired and are served as zeros",) if zeros else (),
        )

    def route(self, header: Header) -> Route:
        """Streamed, or in memory where it is compressed."""
        return Route.IN_MEMORY if header.whole else Route.STREAMED

    def projected_bytes(self, header: Header, size_bytes: int, route: Route, served_rate_hz: float | None) -> int:
        """As every streamed format; 40 C N for a recording that Maxwell filtering must hold whole."""
        shape = shape_of(header, size_bytes, served_rate_hz, file_sample_bytes=4)
        streamed = streamed_bytes(shape, by_windows=header.kept_sample_bytes > 0, window_samples=header.block_samples)
        if route is Route.IN_MEMORY or header.maxshield:
            # The filter copies the loaded recording; its bases and the cross-talk matrix took 0.3 GB for 306 sensors.
            return max(
                streamed, in_memory_bytes(shape, bytes_per_value=40) + (300 * 1024**2 if header.maxshield else 0)
            )
        return streamed

    def read_target(self, primary: Path, header: Header, work: Path) -> Path:  # noqa: ARG002 - the file itself
        """The first split; the reader follows the chain."""
        return primary


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _walk(path: Path) -> _Found:
    with reading(path):
        compressed = _is_compressed(path)
        size = _MAX_INFLATED_BYTES if compressed else path.stat().st_size
        found = _Found()
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            position = 0
            for number in range(_MAX_TAGS):
                position = _tag(file, path, position, size, found, first=number == 0)
                if position < 0 or position >= size:
                    break
            else:
                raise corrupt(f"{path.name} holds more than {_MAX_TAGS} tags")
            while compressed and file.read(1 << 20):
                pass  # only at its end does a compressed file prove that it is whole
        if position >= size and found.in_data():
            raise corrupt(f"{path.name} ends before its raw data is closed")
        return found


def _tag(file: BinaryIO | gzip.GzipFile, path: Path, position: int, size: int, found: _Found, *, first: bool) -> int:
    """Take in the tag at ``position``; the position of the next one, negative at the end."""
    file.seek(position)
    head = file.read(16)
    if not head and file.tell() == position and not found.in_data():
        return -1
    if len(head) < 16:
        raise corrupt(f"{path.name} ends inside a tag")
    kind, type_, length, following = struct.unpack(">iIii", head)
    if first and kind != _FILE_ID:
        raise corrupt(f"{path.name} does not start like a FIF file")
    if length < 0 or position + 16 + length > size:
        raise corrupt(f"{path.name} ends {position + 16 + length - size} bytes before its data")
    if kind == _BUFFER:
        _buffer(found, type_, length)
    elif kind in _READ_KINDS and length < 65_536:
        _value(found, kind, file.read(length))
    if following > 0:
        if following <= position:
            raise corrupt(f"{path.name} has a tag that points back at {following}")
        return int(following)
    return -1 if following < 0 else position + 16 + length


def _buffer(found: _Found, type_: int, length: int) -> None:
    if not found.in_data() or not found.n_channels:
        return
    item = _ITEM_BYTES.get(type_ & 0xFFFF, 4)
    samples = length // (item * found.n_channels)
    # A gap is stored as a number of buffers left out; readers fill it with zeros, except before the first sample.
    filled = samples * found.skipped_buffers if found.n_samples else 0
    found.n_samples += samples + filled
    found.filled_samples += filled
    found.skipped_buffers = 0
    found.largest_buffer = max(found.largest_buffer, samples)
    found.types.add(type_)


def _value(found: _Found, kind: int, data: bytes) -> None:
    if kind == _BLOCK_START:
        found.open_blocks.append(struct.unpack(">i", data[:4])[0])
        found.blocks.add(found.open_blocks[-1])
    elif kind == _BLOCK_END and found.open_blocks:
        if found.open_blocks.pop() == _REFERENCE_BLOCK and found.role == _NEXT_FILE:
            found.next_name = found.named
    elif kind == _N_CHANNELS and found.n_channels is None:
        found.n_channels = int(struct.unpack(">i", data[:4])[0])
    elif kind == _RATE and found.rate_hz is None:
        found.rate_hz = float(struct.unpack(">f", data[:4])[0])
    elif kind == _SKIP and found.in_data():
        found.skipped_buffers = int(struct.unpack(">i", data[:4])[0])
        found.skips = True
    elif kind == _REF_FILE_NAME and _REFERENCE_BLOCK in found.open_blocks:
        name = data.decode("latin-1").replace("\\", "/").rsplit("/", 1)[-1].strip("\0 ")
        found.named = name or None
    elif kind == _REF_ROLE:
        found.role = int(struct.unpack(">i", data[:4])[0])
