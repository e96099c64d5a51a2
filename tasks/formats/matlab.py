"""Reads named fields of one struct in a MATLAB 5 file, bounded in time and memory: matrices are measured, not read.

The layout is MathWorks' "MAT-File Format", chapter 1: a 128-byte header, then tagged elements, each possibly
compressed; a struct is an array element whose parts are flags, dimensions, name, field names and one array per field.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["MatArray", "read_fields"]

MAX_INFLATED_BYTES = 256 * 1024**2
"""Enough for every field that EEGLAB writes before its samples; a crafted file cannot cost more."""

_COMPRESSED, _MATRIX = 15, 14
_STRUCT_CLASS, _CHAR_CLASS, _DOUBLE_CLASS, _SINGLE_CLASS = 2, 4, 6, 7
_FORMATS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
_TEXT = {1: "latin-1", 2: "latin-1", 16: "utf-8"}
_WIDE_TEXT = {4: "utf-16", 17: "utf-16", 18: "utf-32"}
_SMALL_BYTES = 65_536
_MAX_FIELDS = 1024


@dataclass(frozen=True, slots=True)
class MatArray:
    """One array: its shape, and its content where that is small."""

    class_id: int
    shape: tuple[int, ...]
    values: tuple[float, ...] = ()
    text: str | None = None

    @property
    def is_double(self) -> bool:
        """Whether MATLAB holds it in double precision."""
        return self.class_id == _DOUBLE_CLASS

    def scalar(self) -> float | None:
        """The first value, None when empty."""
        return self.values[0] if self.values else None


class _Bytes(Protocol):
    """A stream that can be read and skipped."""

    def take(self, count: int) -> bytes: ...
    def skip(self, count: int) -> None: ...


class _Plain:
    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file, self._end = file, end

    def take(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError("the file ends inside an element")
        return data

    def skip(self, count: int) -> None:
        if self._file.tell() + count > self._end:
            raise EOFError("the file ends inside an element")
        self._file.seek(count, 1)


class _Inflated:
    """The content of one compressed element, inflated as it is asked for."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file, self._left = file, length
        self._inflate = zlib.decompressobj()
        self._buffer = b""
        self._given = 0

    def take(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count > 0:
            part = self._next(count)
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self._next(min(count, 1 << 20)))

    def _next(self, limit: int) -> bytes:
        while not self._buffer:
            compressed = self._inflate.unconsumed_tail
            if not compressed:
                compressed = self._file.read(min(65_536, self._left))
                self._left -= len(compressed)
                if not compressed:
                    raise EOFError("the file ends inside a compressed element")
            try:
                self._buffer = self._inflate.decompress(compressed, 1 << 20)
            except zlib.error as error:
                raise ValueError(f"a compressed element is broken: {error}") from error
            self._given += len(self._buffer)
            if self._given > MAX_INFLATED_BYTES:
                raise _TooLong
        part, self._buffer = self._buffer[:limit], self._buffer[limit:]
        return part


class _TooLong(Exception):
    """The bound on inflated bytes is reached."""


def read_fields(path: Path, *, struct_name: str, wanted: Collection[str]) -> dict[str, MatArray]:
    """The ``wanted`` fields of the first element of struct ``struct_name``; variables of those names at the top level where there is none.

    Raises
    ------
    ValueError, EOFError
        It is no MATLAB 5 file, or ends before the fields are found.
    """
    size = path.stat().st_size
    flat: dict[str, MatArray] = {}
    with path.open("rb") as file:
        head = file.read(128)
        if len(head) < 128 or head[126:128] not in {b"IM", b"MI"}:
            raise ValueError("it is no MATLAB 5 file")
        reader = _Reader("<" if head[126:128] == b"IM" else ">", struct_name, frozenset(wanted))
        while file.tell() + 8 <= size:
            kind, length = reader.full_tag(file.read(8))
            after = file.tell() + length
            cut = after > size
            nested = reader.variable(_Inflated(file, length) if kind == _COMPRESSED else _Plain(file, size), kind, flat)
            if cut:
                raise EOFError("the file ends inside a variable")
            if nested is not None:
                return nested
            file.seek(after)
    return flat


class _Reader:
    """Reads elements of one byte order."""

    def __init__(self, order: str, name: str, wanted: frozenset[str]) -> None:
        self._order, self._name, self._wanted = order, name, wanted

    def full_tag(self, data: bytes) -> tuple[int, int]:
        kind, length = struct.unpack(self._order + "II", data)
        return kind, length

    def variable(self, stream: _Bytes, kind: int, flat: dict[str, MatArray]) -> dict[str, MatArray] | None:
        """Fields when this variable is the struct; a variable of a wanted name goes into ``flat``."""
        found: dict[str, MatArray] = {}
        try:
            if kind == _COMPRESSED:
                kind, _ = self.full_tag(stream.take(8))
            if kind != _MATRIX:
                return None
            class_id, shape, name = self._array_head(stream)
            if class_id == _STRUCT_CLASS and name == self._name:
                self._struct(stream, found)
                return found
            if name in self._wanted:
                flat[name] = self._content(stream, class_id, shape)
        except _TooLong:
            return found or None
        return None

    def _array_head(self, stream: _Bytes) -> tuple[int, tuple[int, ...], str]:
        flags = self._element(stream)[1]
        _, dims = self._element(stream)
        _, name = self._element(stream)
        class_id = struct.unpack(self._order + "I", flags[:4])[0] & 0xFF
        return class_id, struct.unpack(f"{self._order}{len(dims) // 4}i", dims), name.decode("latin-1")

    def _struct(self, stream: _Bytes, found: dict[str, MatArray]) -> None:
        width = struct.unpack(self._order + "i", self._element(stream)[1][:4])[0]
        _, names = self._element(stream)
        if width < 1 or len(names) // width > _MAX_FIELDS:
            raise ValueError("a struct has no believable field names")
        fields = [names[i : i + width].split(b"\0", 1)[0].decode("latin-1") for i in range(0, len(names), width)]
        for field in fields:
            kind, length = self.full_tag(stream.take(8))
            if kind != _MATRIX:
                raise ValueError("a field of a struct is no array")
            if field not in self._wanted or length == 0:
                stream.skip(length)
                continue
            counted = _Counted(stream)
            class_id, shape, _ = self._array_head(counted)
            found[field] = self._content(counted, class_id, shape)
            if self._wanted - {"datfile"} <= found.keys():
                return
            stream.skip(length - counted.taken)

    def _content(self, stream: _Bytes, class_id: int, shape: tuple[int, ...]) -> MatArray:
        """Values of a small array; a large one is only measured."""
        count = 1
        for extent in shape:
            count *= extent
        if class_id == _CHAR_CLASS and 0 < count <= _SMALL_BYTES:
            kind, data = self._element(stream)
            encoding = _TEXT.get(kind) or _WIDE_TEXT.get(kind, "utf-16") + ("-le" if self._order == "<" else "-be")
            return MatArray(class_id, shape, text=data.decode(encoding, "replace").strip("\0 "))
        if 0 < count <= 64 and _DOUBLE_CLASS <= class_id <= 15:
            kind, data = self._element(stream)
            code = _FORMATS.get(kind)
            if code is None:
                raise ValueError(f"numbers of unknown type {kind}")
            number = len(data) // struct.calcsize(code)
            return MatArray(
                class_id, shape, values=tuple(map(float, struct.unpack(f"{self._order}{number}{code}", data)))
            )
        return MatArray(class_id, shape)

    def _element(self, stream: _Bytes) -> tuple[int, bytes]:
        """Type and bytes of one small element; short ones share the tag's eight bytes."""
        tag = stream.take(8)
        kind, length = self.full_tag(tag)
        if kind >> 16:
            return kind & 0xFFFF, tag[4 : 4 + min(kind >> 16, 4)]
        if length > 1 << 20:
            raise ValueError("an element is longer than any of its kind can be")
        data = stream.take(length)
        stream.skip(-length % 8)
        return kind, data


class _Counted:
    """Counts what is taken from a stream, so that the rest of an element can be skipped."""

    def __init__(self, stream: _Bytes) -> None:
        self._stream = stream
        self.taken = 0

    def take(self, count: int) -> bytes:
        self.taken += count
        return self._stream.take(count)

    def skip(self, count: int) -> None:
        self.taken += count
        self._stream.skip(count)
