"""Where the content of git-annex keys is found: in the annex of a repository here, and in an object store."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Protocol

from contract.codes import FailureCode, PendingReason
from contract.errors import NotNow, RecordingFailed
from tasks.sources.annex import is_key, key_size_bytes, local_places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["LONGEST_SIDECAR_BYTES", "Annexed", "KeyStore"]

LONGEST_SIDECAR_BYTES = 64 << 20
"""A sidecar that is read while planning may be this long; what is longer is no sidecar."""


class KeyStore(Protocol):
    """An object store that holds contents by their keys."""

    def fetch(self, key: str, path: Path, *, before: Callable[[], None] | None = None) -> None:
        """Write the content into a new file, whole and verified. ``before`` is called before each request.

        Raises
        ------
        RecordingFailed
            ``annex_object_missing``: the store says for certain that it does not hold it, or holds only a part.
        NotNow
            It does not answer, or its answer is not what the key says.
        """
        ...

    def read(self, key: str) -> bytes:
        """The content of a sidecar, verified. Raises as ``fetch``, and OSError when it is too long for one."""
        ...

    def start(self, key: str, length: int) -> bytes | None:
        """The first bytes of the content, not verified; None where they cannot be had by one request."""
        ...


class Annexed:
    """Content by key.

    Parameters
    ----------
    git_folder
        The ``.git`` folder of a checkout, or a bare repository; None without a repository.
    store
        Where content is that the repository's own annex does not hold; None for nowhere.
    """

    def __init__(self, git_folder: Path | None, store: KeyStore | None) -> None:
        self._objects = None if git_folder is None else git_folder / "annex" / "objects"
        self._store = store

    def local(self, key: str) -> Path | None:
        """The file in the annex here; None when it is not there, or ``key`` is no key."""
        if self._objects is None or not is_key(key):
            return None
        for place in local_places(key):
            path = self._objects / place
            try:
                found = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                return path
        return None

    def may_have(self, key: str) -> bool:
        """Whether content may be found: it is here, or there is a store to ask. Asks nobody."""
        return is_key(key) and (self._store is not None or self.local(key) is not None)

    def fetch(self, key: str, path: Path, *, name: str, before: Callable[[], None] | None = None) -> None:
        """Make the content readable at ``path``: a link into the annex here, else a copy from the store.

        Raises
        ------
        RecordingFailed
            ``annex_object_missing`` for the file ``name``.
        NotNow
            What is found is not as long as the key says, or the store does not answer.
        """
        found = self.local(key)
        if found is not None:
            self._check_size(key, found, name)
            path.unlink(missing_ok=True)
            path.symlink_to(found)
        elif self._store is None or not is_key(key):
            raise _missing(name)
        else:
            try:
                self._store.fetch(key, path, before=before)
            except RecordingFailed as failed:
                raise _missing(name, failed.detail) from failed

    def read(self, key: str, *, name: str) -> bytes:
        """The content of a sidecar. Raises OSError, also when it is not to be had or too long for a sidecar."""
        try:
            return self._read(key, name)
        except (RecordingFailed, NotNow) as error:
            raise OSError(error.detail) from error

    def _read(self, key: str, name: str) -> bytes:
        found = self.local(key)
        if found is not None:
            self._check_size(key, found, name)
            if found.stat().st_size > LONGEST_SIDECAR_BYTES:
                raise OSError(f"{name} is longer than {LONGEST_SIDECAR_BYTES} bytes")
            return found.read_bytes()
        if self._store is None or not is_key(key):
            raise _missing(name)
        return self._store.read(key)

    @property
    def has_store(self) -> bool:
        """Whether there is a store to ask for what the annex here does not hold."""
        return self._store is not None

    def start(self, key: str, length: int, *, name: str) -> bytes | None:
        """The first bytes of the content, from wherever it is; None where they cannot be had by one request."""
        found = self.local(key)
        if found is not None:
            self._check_size(key, found, name)
            with found.open("rb") as file:
                return file.read(length)
        return None if self._store is None or not is_key(key) else self._store.start(key, length)

    def is_copied(self, key: str) -> bool:
        """Whether ``fetch`` would copy the content instead of linking to it."""
        return self.local(key) is None

    @staticmethod
    def _check_size(key: str, found: Path, name: str) -> None:
        size, promised = found.stat().st_size, key_size_bytes(key)
        if promised is not None and size != promised:
            detail = f"{name}: the annex holds {size} bytes of it, its key says {promised}"
            raise NotNow(PendingReason.INFRA_FAILURE, detail=detail, counted=False)


def _missing(name: str, why: str | None = None) -> RecordingFailed:
    detail = f"{name} is known to git-annex, but its content is not here" + (f": {why}" if why else "")
    return RecordingFailed(FailureCode.ANNEX_OBJECT_MISSING, detail=detail)
