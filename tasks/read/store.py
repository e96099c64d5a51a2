"""One store read by the documented protocol: what was read is used only if its root is the same before and after."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

from contract.documents import read_attributes
from contract.errors import StorageError, StorageUnavailable
from contract.layout import ROOT_METADATA, store_key
from contract.reading import ReadRoot
from tasks.read.place import read_whole, version_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    import zarr
    from zarr.core.buffer import Buffer, BufferPrototype

    from infra.storage.opened import Opened
    from tasks.read.place import Place

__all__ = ["WAITS_S", "ReadOnlyStore", "StoreReading", "read_consistently"]

R = TypeVar("R")

_MOST_OPEN = 64
_SHORT_BYTES = 64 * 1024
WAITS_S = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)
"""Between tries. A store in a bucket has no root while it is replaced, which takes as long as its changed objects."""


class StoreReading:
    """One look at a store, for the length of a try.

    Parameters
    ----------
    key
        The store's key at the place.

    Attributes
    ----------
    root
        The attributes of its root group.
    version
        Which version of the root was read: another one after every replacement.
    """

    def __init__(self, place: Place, key: str) -> None:
        self._place = place
        self._key = key
        self._root_key = f"{key}/{ROOT_METADATA}"
        found = read_whole(place, self._root_key)
        if found is None:
            raise _Absent
        self.version = found.version
        self.root: dict[str, Any] = _attributes(found.data)
        read_attributes(ReadRoot, self.root)
        self._store = ReadOnlyStore(place, key)

    def metadata(self, inside: str) -> dict[str, Any]:
        """The ``zarr.json`` of a group or an array of the store."""
        found = read_whole(self._place, f"{self._key}/{inside}/{ROOT_METADATA}")
        if found is None:
            raise StorageError("A store lacks an array that its documents name.", detail=f"{self._key}/{inside}")
        value: dict[str, Any] = json.loads(found.data)
        return value

    def array(self, inside: str) -> zarr.Array[Any]:
        """An array of the store. A chunk that is not there holds zeros: they are not written."""
        import zarr as library

        return library.open_array(self._store, path=inside, mode="r", zarr_format=3)

    def has(self, inside: str) -> bool:
        """Whether there is such a group or array."""
        return version_of(self._place, f"{self._key}/{inside}/{ROOT_METADATA}") is not None

    def is_same(self) -> bool:
        """Whether the store still is the one whose root was read first."""
        return version_of(self._place, self._root_key) == self.version

    def close(self) -> None:
        """Let go what is open."""
        self._store.close()


def _attributes(root: bytes) -> dict[str, Any]:
    try:
        attributes = json.loads(root)["attributes"]
    except (ValueError, KeyError, TypeError):
        attributes = None
    return attributes if isinstance(attributes, dict) else {}


class _Absent(Exception):
    """There is no root at the moment."""


def read_consistently(
    place: Place, dataset_id: str, zarr: str, work: Callable[[StoreReading], R], *, waits_s: Sequence[float] = WAITS_S
) -> R:
    """What ``work`` gives when the store was one and the same all the while; it is called again when it was not.

    ``work`` reads by its argument only, and may be called several times; what it raises while the store changes is not
    raised.

    Raises
    ------
    StorageUnavailable
        The store was being replaced at every try; with the default waits, for eight seconds.
    Refused, StorageError
        From ``work`` or from reading, while the store did not change.
    """
    key = store_key(dataset_id, zarr)
    for wait_s in (*waits_s, None):
        try:
            reading = StoreReading(place, key)
        except _Absent:
            reading = None
        if reading is not None:
            try:
                given = work(reading)
                if reading.is_same():
                    return given
            except Exception:  # whatever a mixture of two stores makes of a reader: it counts only if there was none
                if reading.is_same():
                    raise
            finally:
                reading.close()
        if wait_s is not None:
            time.sleep(wait_s)
    raise StorageUnavailable("The store is being replaced at the moment; try again in a minute.", detail=zarr)


@dataclass(slots=True)
class _Held:
    opened: Opened | None
    users: int = 0
    ends: dict[int, bytes] = field(default_factory=dict)

    def close(self) -> None:
        if self.opened is not None:
            self.opened.close()


class ReadOnlyStore(Store):
    """A store of zarr-python over the objects of a place, each opened once and read in one version."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes = False
    supports_listing = False

    def __init__(self, place: Place, key: str) -> None:
        super().__init__(read_only=True)
        self._place = place
        self._key = key
        self._lock = Lock()
        self._held: OrderedDict[str, _Held] = OrderedDict()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def close(self) -> None:
        """Let go what is open."""
        with self._lock:
            for held in self._held.values():
                held.close()
            self._held.clear()
        super().close()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of an object, or None when it is not there."""
        data = await asyncio.to_thread(self.read, key, byte_range)
        return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Parts of objects, in order."""
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    async def exists(self, key: str) -> bool:
        """Whether an object is there."""
        return await asyncio.to_thread(self.read, key, RangeByteRequest(0, 0)) is not None

    def read(self, key: str, byte_range: ByteRequest | None) -> bytes | None:
        """The bytes of an object or a part of it, or None when it is not there."""
        held = self._hold(key)
        try:
            if held.opened is None:
                return None
            if isinstance(byte_range, SuffixByteRequest) and byte_range.suffix <= _SHORT_BYTES:
                # the index of a shard, which is asked for again with each part of it
                if byte_range.suffix not in held.ends:
                    held.ends[byte_range.suffix] = self._part(held.opened, byte_range)
                return held.ends[byte_range.suffix]
            return self._part(held.opened, byte_range)
        finally:
            with self._lock:
                held.users -= 1

    @staticmethod
    def _part(opened: Opened, byte_range: ByteRequest | None) -> bytes:
        start, end = _bounds(byte_range, opened.size_bytes)
        return opened.read(start, end - start) if end > start else b""

    def _hold(self, key: str) -> _Held:
        """The opened object, which nobody closes while it has users: its descriptor would become another file's."""
        with self._lock:
            if key not in self._held:
                idle = [name for name, held in self._held.items() if not held.users]
                for name in idle[: max(0, len(self._held) + 1 - _MOST_OPEN)]:
                    self._held.pop(name).close()
                self._held[key] = _Held(self._place.open_object(f"{self._key}/{key}"))
            self._held.move_to_end(key)
            self._held[key].users += 1
            return self._held[key]

    async def set(self, key: str, value: Buffer) -> None:
        """Refused."""
        raise NotImplementedError("a reader writes nothing")

    async def delete(self, key: str) -> None:
        """Refused."""
        raise NotImplementedError("a reader writes nothing")

    def list(self) -> AsyncIterator[str]:
        """Refused: nothing that is served can be listed."""
        raise NotImplementedError("what is served cannot be listed")

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Refused."""
        raise NotImplementedError("what is served cannot be listed")

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Refused."""
        raise NotImplementedError("what is served cannot be listed")


def _bounds(byte_range: ByteRequest | None, size_bytes: int) -> tuple[int, int]:
    if isinstance(byte_range, RangeByteRequest):
        return byte_range.start, min(byte_range.end, size_bytes)
    if isinstance(byte_range, OffsetByteRequest):
        return byte_range.offset, size_bytes
    if isinstance(byte_range, SuffixByteRequest):
        return max(0, size_bytes - byte_range.suffix), size_bytes
    return 0, size_bytes
