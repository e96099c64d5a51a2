"""What a place that serves datasets must offer. A storage backend is one file behind this Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Addresses", "StandingObject", "Stored", "Target"]


@dataclass(frozen=True, slots=True)
class Stored:
    """A whole small object and its version."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a dataset is served from; the address fields of index.json. Bases end with a slash."""

    contract_base: str
    data_base: str
    data_base_kind: str
    s3_uri: str
    s3_region: str
    s3_anonymous: bool


@dataclass(frozen=True, slots=True)
class StandingObject:
    """An object as it stands at a target: its size, and the etag by which the target tells its versions apart."""

    size_bytes: int
    etag: str


class Target(Protocol):
    """Keys use ``/`` and never leave the target: ``<dataset_id>/zarr/index.json``.

    Trouble raises ``OSError`` or ``StorageError``; only a definite "it is not there" is absence.

    Attributes
    ----------
    url
        How state names it; ``open_target`` of it gives an equal target.
    marks_stores
        Whether each published store needs a mark of its own in its root ``zarr.json``, because nothing else tells a
        reader that objects of equal names were replaced meanwhile.
    looks_cost_requests
        Whether ``missing_stores`` sends a request for each store that it is asked about.
    """

    url: str
    marks_stores: bool
    looks_cost_requests: bool

    @property
    def decides_conditions(self) -> bool:
        """Whether ``if_match`` and ``if_absent`` are decided in the same step that writes.

        Where they are not, whoever writes on a condition holds a lock that every other writer holds too.
        """
        ...

    def addresses(self, dataset_id: str) -> Addresses:
        """The address fields for one dataset."""
        ...

    def prepare(self, *, public: bool = False) -> bool | None:
        """Make sure that the target can be written, and with ``public`` that anybody can read it without credentials.

        Returns
        -------
        Whether an unsigned request could read what was written; None where that means nothing, or could not be found out.

        Raises
        ------
        Refused
            It cannot; the sentence names it.
        """
        ...

    def read(self, key: str) -> Stored | None:
        """The object, or None when it definitely does not exist. Any other trouble raises."""
        ...

    def etag(self, key: str) -> str | None:
        """The etag of the object, or None when it definitely does not exist, without holding its bytes in memory."""
        ...

    def fetch(self, key: str, path: Path) -> str | None:
        """Copy the object into a new file at ``path``; its etag, or None when it definitely does not exist."""
        ...

    def put(
        self, key: str, data: bytes | Path, *, content_type: str, if_match: str | None = None, if_absent: bool = False
    ) -> str:
        """Write an object whole, durable when it returns; the new etag.

        Raises
        ------
        PreconditionFailed
            ``if_match`` is not the current etag, or ``if_absent`` and the object exists.
        """
        ...

    def put_store(
        self,
        key: str,
        folder: Path,
        objects: Mapping[str, str],
        *,
        token: str,
        may_write: Callable[[], None],
        believed: Mapping[str, tuple[str, str]] | None = None,
    ) -> Mapping[str, str]:
        """Replace the store at ``key`` by ``folder``; a reader who compares the root before and after never uses a mixture.

        ``objects`` maps object names to SHA-256 hex; ``token`` names temporary state so that a later run finds it;
        ``may_write`` is called before each write and raises LostLease to stop. ``folder`` is used up. ``believed``
        is SHA-256 and etag of each object as they were last noted; what still stands so is not written again.

        Returns
        -------
        Etag of each object, to be noted; empty for a target without any.
        """
        ...

    def repair_store(self, key: str, *, token: str) -> None:
        """Remove whatever an interrupted ``put_store`` with this token left; what is served stays."""
        ...

    def store_stands(self, key: str, digests: Mapping[str, tuple[int, str]], etags: Mapping[str, str] | None) -> bool:
        """Whether exactly these objects stand below ``key``: by their etags where those are known, else by their bytes."""
        ...

    def store_digests(self, key: str) -> Mapping[str, tuple[int, str]] | None:
        """Size and SHA-256 of every object below ``key``; None when there is no store. Reads the bytes."""
        ...

    def list_store(self, key: str) -> Mapping[str, StandingObject]:
        """Every object below ``key`` by its name in the store; empty when there is none. Reads no bytes on S3."""
        ...

    def list_objects(self, prefix: str) -> Iterator[tuple[str, StandingObject]]:
        """(key, object) of everything whose key begins with ``prefix``, by key; hidden areas are left out."""
        ...

    def copy_store(self, origin: str, key: str, *, may_write: Callable[[], None]) -> Mapping[str, str]:
        """Make the store at ``key``, where none may stand, a copy of the one at ``origin``; etag of each object.

        No byte leaves the target. The root ``zarr.json`` is copied last.

        Raises
        ------
        PublishError
            There is no store at ``origin``, or something stands at ``key``.
        """
        ...

    def store_exists(self, key: str) -> bool:
        """Whether a root ``zarr.json`` stands at ``key``."""
        ...

    def missing_stores(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` at which no root ``zarr.json`` stands."""
        ...

    def delete_stores(self, keys: Iterable[str]) -> None:
        """Remove stores and any folders that this leaves empty. Absent keys are fine."""
        ...

    def delete(self, key: str) -> None:
        """Remove one object. Absent is fine."""
        ...
