"""What a source of a dataset must offer. A source is one file behind this Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from contract.codes import FailureCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

__all__ = [
    "ABSENCE_SENTENCES",
    "UNKNOWN_BYTES",
    "Absence",
    "Problem",
    "Source",
    "SourceAddress",
    "SourceChanged",
    "TreeEntry",
    "absence_code",
    "absent_id",
    "is_absent_id",
    "present_id",
]

UNKNOWN_BYTES = 1 << 32
"""What a file of unknown size is charged on the scratch disk before it is fetched: never nothing."""

_ABSENT = "absent:"


class Absence(StrEnum):
    """Why a file of the tree has no content here."""

    NOT_FETCHED = "not_fetched"
    DANGLING = "dangling"
    OUTSIDE = "outside"


ABSENCE_SENTENCES = {
    Absence.NOT_FETCHED: "is known to git-annex, but its content is not here",
    Absence.DANGLING: "is a symbolic link to nothing",
    Absence.OUTSIDE: "is a symbolic link that leads out of the dataset, which is not followed",
}


def absence_code(absence: Absence) -> FailureCode:
    """The verdict on a recording one of whose files is absent in this way."""
    return FailureCode.ANNEX_OBJECT_MISSING if absence is Absence.NOT_FETCHED else FailureCode.FILE_READ_ERROR


def absent_id(content_id: str) -> str:
    """The content id of an input that was used as if it were not there, because its content is not here."""
    return _ABSENT + content_id


def present_id(content_id: str) -> str:
    """The id without the mark of ``absent_id``."""
    return content_id.removeprefix(_ABSENT)


def is_absent_id(content_id: str) -> bool:
    """Whether the id is one of ``absent_id``."""
    return content_id.startswith(_ABSENT)


class SourceChanged(Exception):
    """A file is no longer the one that was planned: the next look at the source finds out what it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAddress:
    """Where a source is and in which state, as a worker is told. Small, hashable, and without a secret.

    Parameters
    ----------
    url
        A folder or repository of this machine, or ``s3://bucket/prefix``.
    commit
        The commit that a repository is read at: what a person typed, or 40 hex characters once it is open. None reads a
        folder as it lies there.
    annex
        ``s3://bucket/prefix`` below which ``objects/<key>`` hold what the local annex does not.
    at
        The moment that a bucket with versions is read at, ``YYYY-MM-DDTHH:MM:SSZ``; None for what it holds now.
    """

    url: str
    commit: str | None = None
    annex: str | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of the dataset.

    Parameters
    ----------
    size_bytes
        Bytes of the content; None when nobody says (a git-annex key without a size).
    content_id
        Changes whenever the content may have changed: ``sha256:…``, ``git:<blob>``, ``annex:<key>``, ``s3:…``, ``stat:…``,
        ``link:…``. It is the same whether or not git-annex holds the content here.
    absent
        Why there is no content to read; None when there is.
    """

    size_bytes: int | None
    content_id: str
    absent: Absence | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of the dataset that is left out, with a sentence for people. ``path`` is safe to print."""

    path: str
    sentence: str


class Source(Protocol):
    """One dataset at one moment."""

    url: str
    """What ``open_source`` was given, made absolute; stored with the dataset."""

    address: SourceAddress
    """What a worker opens to find the same contents. ``fetch`` and ``unchanged`` of what it opens never read the tree."""

    def tree(self) -> Mapping[str, TreeEntry]:
        """Every file, by its path relative to the dataset, read in one pass and kept."""
        ...

    def left_out(self) -> tuple[Problem, ...]:
        """What the pass met and did not take into the tree."""
        ...

    def commit(self, matters: Collection[str]) -> str:
        """40 hex characters that name the state of the dataset.

        Parameters
        ----------
        matters
            Every path whose content decides something published (``Discovery.matters``).

        Raises
        ------
        Refused
            Some of these paths differ from what the version control says.
        """
        ...

    def read(self, path: str) -> bytes:
        """The content of a sidecar, annexed ones too. Raises OSError, also when the content is not here."""
        ...

    def header_folder(self, inputs: Mapping[str, str], scratch: Path) -> Path | None:
        """A folder below which these files can be read now under their own names, for their headers.

        None where that would take a download or a large copy. ``scratch`` may be filled for it.
        """
        ...

    @property
    def asks_a_service(self) -> bool:
        """Whether ``start`` may wait for a service, so that many files are best asked for side by side."""
        ...

    def start(self, path: str, content_id: str, length: int) -> bytes | None:
        """The first ``length`` bytes of a file that is at least as long, by at most two requests; None where that cannot be.

        They are not verified: good for an estimate, and for nothing that is published.

        Raises
        ------
        SourceChanged, NotNow, RecordingFailed, OSError
            As ``fetch``.
        """
        ...

    def copied_bytes(self, paths: Iterable[str]) -> int:
        """Bytes that ``fetch`` of these paths writes; what it links costs none."""
        ...

    def fetch(self, inputs: Mapping[str, str], scratch: Path, *, before: Callable[[], None] | None = None) -> None:
        """Make files readable below ``scratch`` under their own names; cheap where links will do.

        Parameters
        ----------
        inputs
            Path -> content id, as the tree had it.
        before
            Called before each request of a download, and raises to stop.

        Raises
        ------
        RecordingFailed
            ``annex_object_missing``: the archive does not hold a file's content.
        SourceChanged
            A file is not what its content id says any more.
        NotNow
            Whatever holds the content does not answer, or answered with something else.
        OSError
            The machine could not do it.
        """
        ...

    def unchanged(self, inputs: Mapping[str, str]) -> bool:
        """Whether every path still has the content id given for it."""
        ...
