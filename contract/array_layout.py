"""Where the samples of an array lie: its chunks, the objects that hold them, and what reading a part of it moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from contract.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ArrayLayout", "Touched"]

_ITEM_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "float32": 4, "int64": 8, "float64": 8}
_INDEX_ENTRY_BYTES = 16
_INDEX_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class Touched:
    """What reading a part of an array touches.

    Parameters
    ----------
    keys
        Objects below the array, such as ``c/0/3``, in order.
    n_chunks
        Pieces that are decoded; more than one lies in a shard.
    bytes_at_most
        Their size before compression, and that of the shards' indices.
    """

    keys: tuple[str, ...]
    n_chunks: int
    bytes_at_most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLayout:
    """The geometry of a Zarr v3 array.

    Parameters
    ----------
    object_shape
        Shape of what one object holds: a shard, or a chunk where there are no shards.
    chunk_shape
        Shape of what is decoded at once.
    is_sharded
        Whether an object holds several chunks and an index of them.
    codecs
        Names of the codecs that a reader must know, outermost first.
    """

    shape: tuple[int, ...]
    dtype: str
    object_shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    is_sharded: bool
    separator: str
    codecs: tuple[str, ...]

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> ArrayLayout:
        """The layout that an array's ``zarr.json`` tells.

        Raises
        ------
        Refused
            It is not the metadata of a Zarr v3 array with a regular grid.
        """
        try:
            return cls._read(metadata)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise Refused(
                "The metadata of this array is not that of a Zarr v3 array with a regular grid; its store must be made anew.",
                detail=f"{type(error).__name__}: {error}",
            ) from error

    @classmethod
    def _read(cls, metadata: Mapping[str, Any]) -> ArrayLayout:
        if (
            metadata["zarr_format"] != 3
            or metadata["node_type"] != "array"
            or metadata["chunk_grid"]["name"] != "regular"
        ):
            raise ValueError("another kind of node")
        outer = _sizes(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        codecs = metadata["codecs"]
        names = [codec["name"] for codec in codecs]
        inner = outer
        is_sharded = names[0] == "sharding_indexed"
        if is_sharded:
            configuration = codecs[0]["configuration"]
            inner = _sizes(configuration["chunk_shape"])
            names += [codec["name"] for codec in configuration["codecs"]]
        shape = tuple(int(size) for size in metadata["shape"])
        if not len(shape) == len(outer) == len(inner):
            raise ValueError("shapes of different lengths")
        encoding = metadata["chunk_key_encoding"]
        return cls(
            shape=shape,
            dtype=str(metadata["data_type"]),
            object_shape=outer,
            chunk_shape=inner,
            is_sharded=is_sharded,
            separator=str(encoding.get("configuration", {}).get("separator", "/")),
            codecs=tuple(str(name) for name in names),
        )

    def touched(self, part: Sequence[tuple[int, int]]) -> Touched:
        """What reading ``part`` touches, a (start, end) on each axis, none of them empty and none past the array."""
        objects = [
            range(start // size, _above(end, size)) for (start, end), size in zip(part, self.object_shape, strict=True)
        ]
        keys = tuple(self.separator.join(["c", *map(str, place)]) for place in product(*objects))
        covered = [
            _covered(start, end, size, length)
            for (start, end), size, length in zip(part, self.chunk_shape, self.shape, strict=True)
        ]
        n_chunks = math.prod(n for n, _ in covered)
        bytes_at_most = math.prod(length for _, length in covered) * _ITEM_BYTES.get(self.dtype, 8)
        if self.is_sharded:
            each = math.prod(_above(o, c) for o, c in zip(self.object_shape, self.chunk_shape, strict=True))
            bytes_at_most += len(keys) * (each * _INDEX_ENTRY_BYTES + _INDEX_CHECKSUM_BYTES)
        return Touched(keys, n_chunks, bytes_at_most)


def _sizes(given: Sequence[Any]) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in given)
    if not all(size > 0 for size in sizes):
        raise ValueError("a chunk without extent")
    return sizes


def _above(length: int, size: int) -> int:
    return -(-length // size)


def _covered(start: int, end: int, size: int, length: int) -> tuple[int, int]:
    """Chunks on one axis that hold ``start`` to ``end``, and the elements of the array that lie in them."""
    first, last = start // size, _above(end, size)
    return last - first, min(length, last * size) - first * size
