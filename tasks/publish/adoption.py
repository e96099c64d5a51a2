"""Entries of another installation that came between: kept in our index, so that two publishers who race lose nothing."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.documents import dump, parse
from contract.index import FailureEntry, LocalIndex, PendingEntry, StoreEntry

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["AdoptedEntries"]


@dataclass(frozen=True, slots=True)
class AdoptedEntries:
    """Entries of an index that name recordings which the database has never seen, by list."""

    stores: tuple[StoreEntry, ...] = ()
    failures: tuple[FailureEntry, ...] = ()
    pending: tuple[PendingEntry, ...] = ()

    def __len__(self) -> int:
        return len(self.stores) + len(self.failures) + len(self.pending)

    @classmethod
    def of(cls, document: bytes) -> AdoptedEntries:
        """Every entry of an index.

        Raises
        ------
        Refused
            It is no index of this format version.
        """
        index = parse(LocalIndex, document)
        return cls(index.stores, index.failures, index.pending)

    def paths(self) -> set[str]:
        """Paths of the recordings they are about."""
        return {entry.path for entries in (self.stores, self.failures, self.pending) for entry in entries}

    def beside(self, others: AdoptedEntries) -> AdoptedEntries:
        """These, and those of ``others`` that are about other recordings and other addresses."""
        zarrs = {
            entry.zarr for entries in (self.stores, self.failures, self.pending) for entry in entries if entry.zarr
        }
        more = others.without(self.paths(), zarrs)
        return AdoptedEntries(self.stores + more.stores, self.failures + more.failures, self.pending + more.pending)

    def without(self, paths: Collection[str], zarrs: Collection[str]) -> AdoptedEntries:
        """Those that are neither of these recordings nor at the address of one of their stores: ours win."""
        kept = [
            tuple(entry for entry in entries if entry.path not in paths and entry.zarr not in zarrs)
            for entries in (self.stores, self.failures, self.pending)
        ]
        return AdoptedEntries(*kept)  # type: ignore[arg-type] # each list keeps its own kind

    def packed(self) -> bytes | None:
        """For the database; None without any."""
        if not self:
            return None
        lists = [[dump(entry).decode() for entry in entries] for entries in (self.stores, self.failures, self.pending)]
        return zlib.compress(json.dumps(lists).encode(), 6)

    @classmethod
    def unpacked(cls, packed: bytes | None) -> AdoptedEntries:
        """What ``packed`` gave."""
        if packed is None:
            return cls()
        stores, failures, pending = json.loads(zlib.decompress(packed))
        return cls(
            tuple(StoreEntry.model_validate_json(entry) for entry in stores),
            tuple(FailureEntry.model_validate_json(entry) for entry in failures),
            tuple(PendingEntry.model_validate_json(entry) for entry in pending),
        )
