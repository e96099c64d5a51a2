"""What a place that serves datasets must offer. A storage backend is one file behind this Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

__all__ = ["Addresses", "Stored", "Target"]


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


class Target(Protocol):
    """Keys use ``/`` and never leave the target: ``<dataset_id>/zarr/index.json``."""

    url: str

    def addresses(self, dataset_id: str) -> Addresses:
        """The address fields for one dataset."""
        ...

    def prepare(self) -> None:
        """Make sure that the target can be written.

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
    ) -> None:
        """Replace the store at ``key`` by ``folder``; a reader sees the old or the new one.

        ``objects`` maps object names to SHA-256 hex; ``token`` names temporary state so that a later run finds it;
        ``may_write`` is called before each write and raises LostLease to stop. ``folder`` is used up.
        """
        ...

    def repair_store(self, key: str, *, token: str) -> None:
        """Remove whatever an interrupted ``put_store`` with this token left; what is served stays."""
        ...

    def store_digests(self, key: str) -> Mapping[str, tuple[int, str]] | None:
        """Size and SHA-256 of every object below ``key``; None when there is no store. Reads the bytes."""
        ...

    def store_exists(self, key: str) -> bool:
        """Whether a root ``zarr.json`` stands at ``key``."""
        ...

    def delete_stores(self, keys: Iterable[str]) -> None:
        """Remove stores and any folders that this leaves empty. Absent keys are fine."""
        ...

    def delete(self, key: str) -> None:
        """Remove one object. Absent is fine."""
        ...
