"""A dataset in a folder of this machine, plain or a git, git-annex or DataLad checkout."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from contract.errors import RecordingFailed, Refused
from contract.layout import check_relative
from tasks.bids.entities import split_extension
from tasks.bids.scope import EXCLUDED_SEGMENTS, printable
from tasks.formats.registry import endings
from tasks.plan.fingerprint import state_hash
from tasks.sources.annexed import Annexed
from tasks.sources.content import entry_of
from tasks.sources.git_checkout import head_commit
from tasks.sources.protocol import (
    ABSENCE_SENTENCES,
    UNKNOWN_BYTES,
    Absence,
    Problem,
    SourceAddress,
    SourceChanged,
    absence_code,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from tasks.sources.annexed import KeyStore
    from tasks.sources.protocol import TreeEntry

__all__ = ["FolderSource"]


class FolderSource:
    """A folder at the moment it is first walked.

    Parameters
    ----------
    folder
        An existing folder.
    hash_signals
        Identify signals by their bytes too, not by size and times.
    allow_dirty
        In a git checkout, name the state by the hash of its files instead of refusing uncommitted changes.
    store, annex_url
        Where content is that git-annex knows and this folder does not hold, and its address.
    """

    def __init__(
        self,
        folder: Path,
        *,
        hash_signals: bool = False,
        allow_dirty: bool = False,
        store: KeyStore | None = None,
        annex_url: str | None = None,
    ) -> None:
        # two ways to write one folder are one source
        self._root = folder.resolve()
        self.url = str(self._root)
        self.address = SourceAddress(url=self.url, annex=annex_url)
        self._annexed = Annexed(None, store)
        self._hash_signals = hash_signals
        self._allow_dirty = allow_dirty
        self._tree: dict[str, TreeEntry] | None = None
        self._walked: tuple[dict[str, TreeEntry], tuple[Problem, ...]] | None = None

    def tree(self) -> Mapping[str, TreeEntry]:
        """Every file outside derivatives, sourcedata, code and .git, sorted by path.

        Raises
        ------
        Refused
            A folder cannot be listed: its recordings would look as if they were gone.
        """
        if self._tree is None:
            self._tree = {path: self._reachable(entry) for path, entry in self._walk()[0].items()}
        return self._tree

    def left_out(self) -> tuple[Problem, ...]:
        """Links to folders, devices and sockets, and empty folder recordings."""
        return self._walk()[1]

    def commit(self, matters: Collection[str]) -> str:
        """HEAD when the folder is the toplevel of a git checkout, else a hash of the files that matter.

        The hash is BLAKE2b (20 bytes, 40 hex characters) over the sorted (path, content id) of ``matters``.
        """
        head = None if self._allow_dirty else head_commit(self._root, matters)
        if head is not None:
            return head
        tree = self.tree()
        return state_hash((path, tree[path].content_id) for path in matters)

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError, also when the content is not here."""
        entry = self._entry(path, hash_signals=False)
        if self._is_elsewhere(entry):
            return self._annexed.read(entry.content_id.removeprefix("annex:"), name=printable(path))
        if entry.absent is not None:
            raise FileNotFoundError(f"{printable(path)} {ABSENCE_SENTENCES[entry.absent]}")
        return (self._root / path).read_bytes()

    def header_folder(self, inputs: Mapping[str, str], scratch: Path) -> Path | None:  # noqa: ARG002 - of the Protocol
        """The folder itself, unless content of these files has to be fetched."""
        return None if any(self._is_elsewhere(self._walk()[0][path]) for path in inputs) else self._root

    @property
    def asks_a_service(self) -> bool:
        """Whether there is an annex elsewhere."""
        return self._annexed.has_store

    def start(self, path: str, content_id: str, length: int) -> bytes | None:  # noqa: ARG002 - of the Protocol
        """Of the file, or of annexed content elsewhere. See ``Source.start``."""
        entry = self._entry(path, hash_signals=False)
        if self._is_elsewhere(entry):
            return self._annexed.start(entry.content_id.removeprefix("annex:"), length, name=printable(path))
        if entry.absent is not None:
            return None
        with (self._root / path).open("rb") as file:
            return file.read(length)

    def copied_bytes(self, paths: Iterable[str]) -> int:
        """Bytes of annexed content that is not here; everything else is linked to."""
        entries = [self._walk()[0][path] for path in paths]
        sizes = [entry.size_bytes for entry in entries if self._is_elsewhere(entry)]
        return sum(UNKNOWN_BYTES if size is None else size for size in sizes)

    def fetch(self, inputs: Mapping[str, str], scratch: Path, *, before: Callable[[], None] | None = None) -> None:
        """Links below ``scratch`` to the files themselves, under their names in the dataset; see ``Source.fetch``."""
        for path in inputs:
            try:
                entry = self._entry(path, hash_signals=False)
            except (FileNotFoundError, NotADirectoryError) as error:
                raise SourceChanged(f"{printable(path)} is gone") from error
            link = scratch / path
            link.parent.mkdir(parents=True, exist_ok=True)
            if self._is_elsewhere(entry):
                self._annexed.fetch(entry.content_id.removeprefix("annex:"), link, name=printable(path), before=before)
                continue
            if entry.absent is not None:
                detail = f"{printable(path)} {ABSENCE_SENTENCES[entry.absent]}"
                raise RecordingFailed(absence_code(entry.absent), detail=detail)
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.realpath(self._root / path))

    def unchanged(self, inputs: Mapping[str, str]) -> bool:
        """Whether every path still has its content id; ids by content are worked out from the bytes again."""
        for path, content_id in inputs.items():
            try:
                entry = self._entry(path, hash_signals=content_id.startswith("sha256:"))
            except (FileNotFoundError, NotADirectoryError):
                return False
            if entry.content_id != content_id:
                return False
        return True

    def _entry(self, path: str, *, hash_signals: bool) -> TreeEntry:
        check_relative(path)
        entry = entry_of(str(self._root), path, (self._root / path).lstat(), hash_signals=hash_signals)
        if entry is None:
            raise FileNotFoundError(f"{printable(path)} is not a file")
        return entry

    def _is_elsewhere(self, entry: TreeEntry) -> bool:
        """Whether the content is not here and may be found by its key."""
        return entry.absent is Absence.NOT_FETCHED and self._annexed.may_have(entry.content_id.removeprefix("annex:"))

    def _reachable(self, entry: TreeEntry) -> TreeEntry:
        return replace(entry, absent=None) if self._is_elsewhere(entry) else entry

    def _walk(self) -> tuple[dict[str, TreeEntry], tuple[Problem, ...]]:
        if self._walked is None:
            walk = _Walk(str(self._root), hash_signals=self._hash_signals)
            self._walked = dict(sorted(walk.entries.items())), tuple(walk.problems)
        return self._walked


class _Walk:
    """One pass over a folder."""

    def __init__(self, root: str, *, hash_signals: bool) -> None:
        self.entries: dict[str, TreeEntry] = {}
        self.problems: list[Problem] = []
        self._root = root
        self._hash_signals = hash_signals
        waiting = [("", False)]
        while waiting:
            waiting += self._one_folder(*waiting.pop())

    def _one_folder(self, folder: str, inside: bool) -> list[tuple[str, bool]]:
        """Take the files of one folder; its sub-folders, each with whether it lies inside a folder recording."""
        try:
            with os.scandir(f"{self._root}/{folder}") as found:
                listed = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            where = printable(folder or self._root)
            raise Refused(f"The folder {where} of the dataset cannot be listed: {error.strerror}.") from error
        by_extension = split_extension(folder.rpartition("/")[2])[1].lower() in endings().folders
        if by_extension and not listed and not inside:
            self._problem(folder, "is an empty folder, not a recording")
        names = {entry.name for entry in listed}
        inside = inside or by_extension or ("config" in names and any(name.startswith("c,rf") for name in names))
        below: list[tuple[str, bool]] = []
        for entry in listed:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git" or (entry.name in EXCLUDED_SEGMENTS and not inside):
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append((path, inside))
            else:
                self._file(entry, path)
        return below

    def _file(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            taken = entry_of(self._root, path, entry.stat(follow_symlinks=False), hash_signals=self._hash_signals)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Refused(f"{printable(path)} of the dataset cannot be read: {error.strerror}.") from error
        if taken is not None:
            self.entries[path] = taken
        elif entry.is_symlink():
            self._problem(path, "is a symbolic link to a folder or device, which is not followed")
        else:
            self._problem(path, "is a device, socket or pipe, not a file")

    def _problem(self, path: str, sentence: str) -> None:
        self.problems.append(Problem(printable(path), sentence))
