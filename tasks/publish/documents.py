"""The bytes of index.json and manifest.json, from one snapshot of the database."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contract.codes import FAILURE_SENTENCES, PendingReason
from contract.documents import dump, write_index
from contract.index import FailureEntry, IndexHead, LocalIndexHead, PendingEntry
from contract.index_check import check_index
from contract.manifest import Manifest, ManifestFile, ManifestStore
from contract.times import utc_stamp
from db.coverage import Coverage
from db.published import ManifestRow
from tasks.publish.adoption import AdoptedEntries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from db.published import FailureRow, PendingRow, PublishedSnapshot
    from infra.storage.protocol import Addresses
    from tasks.publish.edition import Edition

__all__ = ["NOTHING_ADOPTED", "Draft", "EventsFile", "comparable", "made_from", "manifest"]

_VOLATILE = re.compile(rb'"updated_utc":"[^"]*"|"errors":[0-9]+')
_LISTS = b',"stores":['
_NO_MOMENT = "1970-01-01T00:00:00Z"
NOTHING_ADOPTED = AdoptedEntries()


@dataclass(frozen=True, slots=True)
class EventsFile:
    """The events.parquet that an index names."""

    row_count: int
    size_bytes: int


class Draft:
    """The index of one snapshot: its entries are taken from the database once, its head can be written again.

    Parameters
    ----------
    snapshot
        The database at one moment.
    edition, addresses
        What the head says.
    adopted
        Entries of another installation that are kept beside ours.

    Attributes
    ----------
    coverage
        What the lists hold.
    not_attempted_count
        How many of the pending recordings were not reached yet.
    """

    def __init__(
        self,
        snapshot: PublishedSnapshot,
        edition: Edition,
        addresses: Addresses,
        adopted: AdoptedEntries = NOTHING_ADOPTED,
    ) -> None:
        self._edition = edition
        self._addresses = addresses
        self._biosigio_version = snapshot.biosigio_version
        self.not_attempted_count = 0
        self._stores = list(snapshot.stores())
        self._failures = [(row.path, _failure(row)) for row in snapshot.failures()]
        self._pending = []
        for row in snapshot.pending():
            self.not_attempted_count += row.reason is PendingReason.NOT_ATTEMPTED
            self._pending.append((row.path, _pending(row)))
        self._ours = snapshot.coverage
        self.adopt(adopted)

    def adopt(self, adopted: AdoptedEntries) -> None:
        """Keep these entries beside ours, instead of any adopted before."""
        self.adopted = adopted
        self.coverage = Coverage(
            discovered=self._ours.discovered + len(adopted),
            stores=self._ours.stores + len(adopted.stores),
            failures=self._ours.failures + len(adopted.failures),
            pending=self._ours.pending + len(adopted.pending),
        )

    def index(self, events_row_count: int | None) -> bytes:
        """The document as it would be published; ``check`` it before it is written anywhere.

        Parameters
        ----------
        events_row_count
            Rows of the events.parquet beside it; None without one.

        Raises
        ------
        ValueError
            The lists do not hold what the coverage says.
        """
        head = _head(self._edition, self._addresses, self.coverage, self._biosigio_version, events_row_count)
        stores = _merged(self._stores, ((entry.zarr, dump(entry)) for entry in self.adopted.stores))
        failures = _merged(self._failures, ((entry.path, dump(entry)) for entry in self.adopted.failures))
        pending = _merged(self._pending, ((entry.path, dump(entry)) for entry in self.adopted.pending))
        return write_index(head, stores, failures, pending)

    def manifest(self, snapshot: PublishedSnapshot, events: EventsFile | None) -> bytes:
        """The manifest of exactly the stores of the index; of adopted ones only the address is known."""
        rows = ((row.zarr, row) for row in snapshot.manifest())
        theirs = (
            (entry.zarr, ManifestRow(zarr=entry.zarr, source_key=None, size_bytes=0)) for entry in self.adopted.stores
        )
        return manifest((row for _zarr, row in sorted((*rows, *theirs), key=_key)), self._edition, events)

    def check(self, document: bytes) -> None:
        """Check a document whole: schema, invariant, order, every path once.

        Raises
        ------
        Refused
            It breaks its contract; the sentence names the field.
        """
        check_index(document, local=_is_local(self._addresses))


def _is_local(addresses: Addresses) -> bool:
    # the published schema knows https only; a service on this machine speaks http
    return not (addresses.contract_base.startswith("https:") and addresses.data_base.startswith("https:"))


def _head(
    edition: Edition,
    addresses: Addresses,
    coverage: Coverage,
    biosigio_version: str | None,
    events_row_count: int | None,
) -> LocalIndexHead:
    facts = edition.dataset.facts
    head = LocalIndexHead if _is_local(addresses) else IndexHead
    return head.model_validate(
        {
            "dataset_id": edition.dataset.dataset_id,
            "contract_base": addresses.contract_base,
            "data_base": addresses.data_base,
            "data_base_kind": addresses.data_base_kind,
            "s3_uri": addresses.s3_uri,
            "s3_region": addresses.s3_region,
            "s3_anonymous": edition.dataset.anonymous,
            "source_commit": edition.source_commit,
            "biosigio_version": biosigio_version,
            "updated_utc": edition.updated_utc,
            "doi": facts.doi,
            "license": facts.license,
            "citation": facts.citation,
            "hed_version": facts.hed_version,
            "discovered_count": coverage.discovered,
            "store_count": coverage.stores,
            "n_recordings": coverage.stores,
            "errors": edition.errors,
            "failure_count": coverage.failures,
            "pending_count": coverage.pending,
            "events_parquet": None if events_row_count is None else f"{addresses.data_base}events.parquet",
            "events_row_count": events_row_count,
        }
    )


def made_from(snapshot: PublishedSnapshot, edition: Edition, addresses: Addresses, events: EventsFile | None) -> str:
    """Names what index.json and manifest.json of a snapshot are written from, but for the moment and the run's errors.

    Equal for two snapshots means that their documents are comparable; neither need be built to know it.
    """
    still = replace(edition, updated_utc=_NO_MOMENT, errors=0)
    row_count = None if events is None else events.row_count
    head = _head(still, addresses, snapshot.coverage, snapshot.biosigio_version, row_count)
    size = None if events is None else events.size_bytes
    return hashlib.sha256(b"%b\0%a\0%b" % (dump(head), size, snapshot.version().encode())).hexdigest()


def _key(keyed: tuple[str, object]) -> str:
    return keyed[0]


def _merged(ours: list[tuple[str, bytes]], theirs: Iterable[tuple[str, bytes]]) -> Iterable[bytes]:
    """Entries in the order of the document; ours are in it already."""
    more = list(theirs)
    keyed = sorted((*ours, *more), key=_key) if more else ours
    return (entry for _key, entry in keyed)


def _failure(row: FailureRow) -> bytes:
    return dump(
        FailureEntry(
            path=row.path,
            zarr=row.zarr,
            code=row.code,
            reason=FAILURE_SENTENCES[row.code],
            detail=row.detail,
            attempts=row.attempts,
        )
    )


def _pending(row: PendingRow) -> bytes:
    return dump(
        PendingEntry(
            path=row.path,
            zarr=row.zarr,
            reason=row.reason,
            attempts=row.attempts,
            last_error=row.last_error,
            last_attempt_utc=utc_stamp(row.last_attempt_at) if row.last_attempt_at else None,
        )
    )


def manifest(rows: Iterable[ManifestRow], edition: Edition, events: EventsFile | None) -> bytes:
    """The bytes of manifest.json for exactly the stores of the index."""
    files = None
    if events is not None:
        files = (ManifestFile(name="events.parquet", size_bytes=events.size_bytes, row_count=events.row_count),)
    stores = tuple(
        # the size is the key's own statement, so there is none without a key
        ManifestStore(zarr=row.zarr, source_key=row.source_key, size_bytes=row.size_bytes if row.source_key else None)
        for row in rows
    )
    document = Manifest(
        dataset_id=edition.dataset.dataset_id, updated_utc=edition.updated_utc, files=files, stores=stores
    )
    return dump(document)


def comparable(document: bytes) -> str:
    """SHA-256 of a document without its ``updated_utc`` and ``errors``: equal when nothing else differs.

    Only the head is looked at: the entries of stores have an ``updated_utc`` of their own, which counts.
    """
    head, lists, rest = document.partition(_LISTS)
    digest = hashlib.sha256(_VOLATILE.sub(b"", head))
    digest.update(lists)
    digest.update(rest)
    return digest.hexdigest()
