"""Where the fields of an uncompressed MATLAB 5 dataset stand in its file, so that a matrix is read in place and the rest without it.

Only what is plain is told: little-endian, nothing compressed, each element within the file. The layout is that of ``matlab``.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Field", "Layout", "Matrix", "plain_layout"]

_MATRIX, _STRUCT_CLASS = 14, 2
_NUMBERS = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8"}
_NUMBER_CLASSES = range(6, 14)  # double, single, and whole numbers of up to 32 bits
_COMPLEX, _LOGICAL = 0x800, 0x200
_HEAD_BYTES = 128
_MAX_HEAD_BYTES = 65_536
_MAX_FIELDS = 4096
_NOTHING = struct.pack("<II", _MATRIX, 0)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of real numbers: its bytes stand at ``offset``, one column after the other."""

    offset: int
    dtype: str
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Field:
    """A field with its tag, from ``start`` to ``end``; ``matrix`` where it is one."""

    name: str
    start: int
    end: int
    matrix: Matrix | None


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a dataset, in the file's order.

    Parameters
    ----------
    struct_at
        Where the tag of the struct stands that holds them; None where each is a variable of its own.
    """

    fields: tuple[Field, ...]
    struct_at: int | None

    def matrix(self, name: str) -> Matrix | None:
        """The matrix that is the field ``name``; None where there is none, or the name is not the only one."""
        found = [field for field in self.fields if field.name == name]
        return found[0].matrix if len(found) == 1 else None

    def without(self, path: Path, left_out: Callable[[Field], bool]) -> bytes:
        """The file with nothing where these fields stand: a sound MATLAB 5 file."""
        parts, at, less = [], 0, 0
        with path.open("rb") as file:
            for field in filter(left_out, self.fields):
                parts.append(_at(file, at, field.start))
                at = field.end
                less += field.end - field.start
                if self.struct_at is not None:  # its fields go by their number
                    parts.append(_NOTHING)
                    less -= len(_NOTHING)
            file.seek(at)
            parts.append(file.read())
        content = bytearray().join(parts)
        if self.struct_at is not None:
            (length,) = struct.unpack_from("<I", content, self.struct_at + 4)
            struct.pack_into("<I", content, self.struct_at + 4, length - less)
        return bytes(content)


class _NotPlain(Exception):
    """Something that is read whole by the library that knows all of it."""


def plain_layout(path: Path, struct_name: str) -> Layout | None:
    """Where the fields of struct ``struct_name`` stand, or the variables where there is none; None where the file is not plain."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES or head[124:128] != b"\x00\x01IM":
            return None
        try:
            return _layout(_Elements(file, size), struct_name)
        except (_NotPlain, struct.error):
            return None


def _layout(elements: _Elements, struct_name: str) -> Layout | None:
    variables: list[Field] = []
    at = _HEAD_BYTES
    while at < elements.size:
        one, class_id, shape, after = elements.array(at, elements.size)
        if one.name == struct_name:
            if class_id != _STRUCT_CLASS or math.prod(shape) != 1:
                return None
            return Layout(elements.fields(after, one.end), at)
        variables.append(one)
        at = one.end
    return Layout(tuple(variables), None)


@dataclass(frozen=True, slots=True)
class _Elements:
    """The elements of an open file; whatever does not fit raises."""

    file: BinaryIO
    size: int

    def array(self, at: int, limit: int) -> tuple[Field, int, tuple[int, ...], int]:
        """An array with its class, its shape, and where its content begins."""
        kind, length = struct.unpack("<II", _at(self.file, at, at + 8))
        end = at + 8 + length
        if kind != _MATRIX or end > limit:
            raise _NotPlain
        if length == 0:
            return Field("", at, end, None), 0, (), end
        flags, after = self._small(at + 8, end)
        dims, after = self._small(after, end)
        name, after = self._small(after, end)
        (word,) = struct.unpack("<I", flags[:4])
        shape = struct.unpack(f"<{len(dims) // 4}i", dims)
        matrix = self._matrix(word, shape, after, end)
        return Field(name.decode("latin-1"), at, end, matrix), word & 0xFF, shape, after

    def fields(self, at: int, end: int) -> tuple[Field, ...]:
        """The fields of the one struct whose content this is."""
        width_bytes, at = self._small(at, end)
        names, at = self._small(at, end)
        (width,) = struct.unpack("<i", width_bytes)
        if width < 1 or len(names) // width > _MAX_FIELDS:
            raise _NotPlain
        found = []
        for start in range(0, len(names), width):
            own, _, _, _ = self.array(at, end)
            label = names[start : start + width].split(b"\0", 1)[0].decode("latin-1")
            found.append(Field(label, own.start, own.end, own.matrix))
            at = own.end
        return tuple(found)

    def _matrix(self, word: int, shape: tuple[int, ...], at: int, end: int) -> Matrix | None:
        if word & 0xFF not in _NUMBER_CLASSES or word & (_COMPLEX | _LOGICAL) or len(shape) != 2 or end - at < 8:
            return None
        kind, length = struct.unpack("<II", _at(self.file, at, at + 8))
        dtype = _NUMBERS.get(kind)
        if dtype is None or min(shape) < 1 or length != shape[0] * shape[1] * int(dtype[-1]) or at + 8 + length > end:
            return None
        return Matrix(at + 8, dtype, (shape[0], shape[1]))

    def _small(self, at: int, end: int) -> tuple[bytes, int]:
        """The bytes of a small element, and where the next begins; a short one shares the tag's eight bytes."""
        tag = _at(self.file, at, at + 8)
        kind, length = struct.unpack("<II", tag)
        if kind >> 16:
            return tag[4 : 4 + min(kind >> 16, 4)], at + 8
        if length > _MAX_HEAD_BYTES or at + 8 + length > end:
            raise _NotPlain
        return _at(self.file, at + 8, at + 8 + length), at + 8 + length + -length % 8


def _at(file: BinaryIO, start: int, stop: int) -> bytes:
    file.seek(start)
    content = file.read(stop - start)
    if len(content) < stop - start:
        raise _NotPlain
    return content
