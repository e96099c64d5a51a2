"""A dataset at one commit of a git repository: a checkout or a bare clone, read through git and never through its files."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from contract.errors import NotNow, RecordingFailed, Refused
from contract.layout import check_relative
from tasks.bids.scope import printable
from tasks.sources.annexed import LONGEST_SIDECAR_BYTES
from tasks.sources.git_command import first_line, git
from tasks.sources.git_objects import GitObjects
from tasks.sources.git_tree import entries_of, listing
from tasks.sources.protocol import ABSENCE_SENTENCES, UNKNOWN_BYTES, Absence, SourceAddress, SourceChanged, absence_code

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from tasks.sources.annexed import Annexed
    from tasks.sources.git_tree import GitTree
    from tasks.sources.protocol import Problem, TreeEntry

__all__ = ["GitSource", "git_folder", "resolve"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HEADER_COPY_BYTES = 1 << 20


def git_folder(root: Path) -> Path | None:
    """The folder that holds the objects and the annex of the repository whose toplevel is ``root``; None when it is none.

    ``root`` is a checkout's toplevel (worktrees and submodules too), a bare repository or a ``.git`` folder itself.

    Raises
    ------
    Refused
        git refuses to look at it, as it does when another user owns it.
    """
    answer = git(root, "rev-parse", "--is-inside-git-dir", "--absolute-git-dir", "--git-common-dir")
    if answer.returncode:
        if b"not a git repository" in answer.stderr:
            return None
        raise Refused(f"git does not read {root} ({first_line(answer)}): mend the repository.")
    inside, own, common = (os.fsdecode(line) for line in answer.stdout.split(b"\n")[:3])
    shared = root / common
    if inside == "true":
        return shared.resolve() if os.path.realpath(own) == str(root) else None
    top = git(root, "rev-parse", "--show-toplevel")
    is_top = not top.returncode and os.path.realpath(os.fsdecode(top.stdout.removesuffix(b"\n"))) == str(root)
    return shared.resolve() if is_top else None


def resolve(root: Path, commit: str) -> str:
    """The commit that a name of one means: 40 lower-case hex characters.

    Raises
    ------
    Refused
        The repository has no such commit, or names its objects otherwise.
    """
    answer = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    found = "" if answer.returncode else answer.stdout.decode("ascii", "replace").strip()
    if not found:
        raise Refused(
            f"--commit {printable(commit)!r} is no commit of {root}: name a branch, a tag or a commit that it holds."
        )
    if not _COMMIT.fullmatch(found):
        raise Refused(f"The commits of {root} are not named by 40 hex characters, as the documents need.")
    return found


class GitSource:
    """One commit of a repository. What lies in a working tree beside it is not looked at.

    Parameters
    ----------
    root
        The repository, with links resolved.
    commit
        40 hex characters (``resolve``).
    annexed
        Where the content of its git-annex keys is found.
    """

    def __init__(self, root: Path, commit: str, annexed: Annexed, *, annex_url: str | None = None) -> None:
        self.url = str(root)
        self.address = SourceAddress(url=self.url, commit=commit, annex=annex_url)
        self._root = root
        self._commit = commit
        self._annexed = annexed
        self._objects = GitObjects(root)
        self._tree: GitTree | None = None

    def tree(self) -> Mapping[str, TreeEntry]:
        """Every file of the commit outside derivatives, sourcedata and code, sorted by path; by a fixed number of processes.

        Raises
        ------
        Refused
            git cannot list the commit, or lacks what pointers are told by.
        """
        return self._read_tree().entries

    def left_out(self) -> tuple[Problem, ...]:
        """Submodules, links to folders, and names that no file may have."""
        return tuple(self._read_tree().problems)

    def commit(self, matters: Collection[str]) -> str:  # noqa: ARG002 - part of the Protocol
        """The commit itself: whatever matters is as committed."""
        return self._commit

    def read(self, path: str) -> bytes:
        """The content of a sidecar at this commit. Raises OSError, also when the content is not here."""
        entry = self.tree().get(check_relative(path))
        if entry is None or entry.absent is not None:
            what = (
                "is not a file of this commit"
                if entry is None or entry.absent is None
                else ABSENCE_SENTENCES[entry.absent]
            )
            raise FileNotFoundError(f"{printable(path)} {what}")
        kind, _, name = entry.content_id.partition(":")
        if kind == "annex":
            return self._annexed.read(name, name=printable(path))
        try:
            return self._objects.read(name, limit_bytes=LONGEST_SIDECAR_BYTES)
        except (NotNow, ValueError) as error:
            raise OSError(error.detail if isinstance(error, NotNow) else str(error)) from error

    def header_folder(self, inputs: Mapping[str, str], scratch: Path) -> Path | None:
        """``scratch``, with the files in it, when they are small blobs or content of the annex here."""
        annexed = [
            name for kind, _, name in (content_id.partition(":") for content_id in inputs.values()) if kind == "annex"
        ]
        if any(map(self._annexed.is_copied, annexed)) or self.copied_bytes(inputs) > _HEADER_COPY_BYTES:
            return None
        self.fetch(inputs, scratch)
        return scratch

    @property
    def asks_a_service(self) -> bool:
        """Whether there is an annex elsewhere."""
        return self._annexed.has_store

    def start(self, path: str, content_id: str, length: int) -> bytes | None:
        """Of a small blob, or of annexed content here or in the annex elsewhere. See ``Source.start``."""
        kind, _, name = content_id.partition(":")
        if kind == "annex":
            return self._annexed.start(name, length, name=printable(path))
        if kind != "git" or (self.tree()[path].size_bytes or 0) > _HEADER_COPY_BYTES:
            return None
        return self._objects.read(name, limit_bytes=LONGEST_SIDECAR_BYTES)[:length]

    def copied_bytes(self, paths: Iterable[str]) -> int:
        """Bytes of blobs, and of annexed content that is not in the annex here."""
        return sum(self._copied(self.tree()[path]) for path in paths)

    def fetch(self, inputs: Mapping[str, str], scratch: Path, *, before: Callable[[], None] | None = None) -> None:
        """Blobs are copied; content of the annex here is linked to, other annexed content fetched. See ``Source.fetch``."""
        for path, content_id in inputs.items():
            place = scratch / check_relative(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            kind, _, name = content_id.partition(":")
            if kind == "git":
                self._objects.copy(name, place)
            elif kind == "annex":
                self._annexed.fetch(name, place, name=printable(path), before=before)
            elif kind == "link":
                detail = f"{printable(path)} {ABSENCE_SENTENCES[Absence.DANGLING]}"
                raise RecordingFailed(absence_code(Absence.DANGLING), detail=detail)
            else:
                raise SourceChanged(f"{printable(path)} was planned from another kind of source")

    def unchanged(self, inputs: Mapping[str, str]) -> bool:  # noqa: ARG002 - part of the Protocol
        """Always: an object's id is made from its content."""
        return True

    def close(self) -> None:
        """End the process that reads objects."""
        self._objects.close()

    def _read_tree(self) -> GitTree:
        if self._tree is None:
            try:
                self._tree = entries_of(
                    listing(self._root, self._commit), self._objects.read_many, self._annexed.may_have
                )
            except NotNow as error:
                raise Refused(f"The commit {self._commit} of {self._root} cannot be read: {error.detail}.") from error
        return self._tree

    def _copied(self, entry: TreeEntry) -> int:
        kind, _, name = entry.content_id.partition(":")
        if kind == "annex" and not self._annexed.is_copied(name):
            return 0
        return UNKNOWN_BYTES if entry.size_bytes is None else entry.size_bytes
