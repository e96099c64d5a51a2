"""A served store, opened for reading where it stands: a folder, a bucket, or an archive over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import PublishError, Refused, StorageError
from tasks.read.place import read_whole
from tasks.read.store import ReadOnlyStore

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest

    from tasks.read.place import Place

__all__ = ["ServedStore"]


class ServedStore(ReadOnlyStore):
    """A zarr store that reads; ``trouble`` is the first error of the machine or the network, which is no fault of the store."""

    def __init__(self, place: Place, key: str) -> None:
        super().__init__(place, key)
        self._where = (place, key)
        self.trouble: Exception | None = None

    def whole(self, name: str) -> bytes | None:
        """An object as it stands now, or None when it definitely does not exist."""
        place, key = self._where
        found = read_whole(place, f"{key}/{name}")
        return None if found is None else found.data

    def read(self, key: str, byte_range: ByteRequest | None) -> bytes | None:
        """As ``ReadOnlyStore.read``; what it raises is remembered, because codecs wrap it."""
        try:
            return super().read(key, byte_range)
        except (OSError, StorageError, PublishError, Refused) as error:
            self.trouble = self.trouble or error
            raise
