"""The files of one commit, as git lists them: modes, blobs and sizes, with names taken as they are."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contract.errors import Refused
from tasks.bids.folders import EXCLUDED, Folders
from tasks.bids.scope import printable
from tasks.formats.content import is_pointer
from tasks.formats.registry import endings
from tasks.sources.annex import POINTER_LIMIT_BYTES, key_of_link, key_of_pointer, key_size_bytes
from tasks.sources.git_command import first_line, git, nul_separated
from tasks.sources.protocol import Absence, Problem, TreeEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["GitTree", "Listed", "entries_of", "listing"]

_LINK, _SUBMODULE = "120000", "160000"
_LONGEST_LINK_BYTES = 4096
_MOST_HOPS = 40


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a commit's tree. ``size_bytes`` of a submodule is 0."""

    path: str
    mode: str
    blob: str
    size_bytes: int


@dataclass(slots=True)
class GitTree:
    """What a commit holds: files by path, and what was left out."""

    entries: dict[str, TreeEntry] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def listing(root: Path, commit: str) -> Iterator[Listed]:
    """Every entry of a commit, by one ``git ls-tree``.

    Raises
    ------
    Refused
        git cannot list it: the repository is damaged, or a partial clone that lacks objects.
    """
    answer = git(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    if answer.returncode:
        said = first_line(answer)
        raise Refused(f"git cannot list the commit {commit} of {root} ({said}): a partial clone lacks what is read.")
    for line in nul_separated(answer.stdout):
        what, _, path = line.partition("\t")
        mode, _kind, blob, size = what.split()
        yield Listed(path, mode, blob, 0 if size == "-" else int(size))


def entries_of(
    found: Iterable[Listed],
    read_many: Callable[[Iterable[str]], Iterable[tuple[str, bytes]]],
    may_have: Callable[[str], bool],
) -> GitTree:
    """The files outside derivatives, sourcedata and code, with links followed inside the commit and keys resolved.

    Parameters
    ----------
    read_many
        Id and content of many small blobs (``GitObjects.read_many``).
    may_have
        Whether the content of a git-annex key may be found (``Annexed.may_have``).
    """
    made = GitTree()
    listed = {one.path: one for one in _raw(found, made.problems)}
    small = {one.blob for one in listed.values() if _may_point(one)}
    links = {one.blob for one in listed.values() if one.mode == _LINK}
    pointing = {blob: text for blob, text in read_many(sorted(small)) if blob in links or is_pointer(text)}
    resolving = _Resolving(listed, pointing, may_have)
    for path in sorted(listed):
        entry = resolving.entry(path)
        if entry is None:
            made.problems.append(Problem(printable(path), "is a symbolic link to a folder, which is not followed"))
        else:
            made.entries[path] = entry
    return made


def _raw(found: Iterable[Listed], problems: list[Problem]) -> Iterator[Listed]:
    every = list(found)
    folders = Folders([one.path for one in every], endings().folders)
    for one in every:
        if folders.standing(one.path.rpartition("/")[0]) is EXCLUDED:
            continue
        segments = one.path.split("/")
        if any(segment in {"", ".", ".."} or segment.lower() == ".git" for segment in segments):
            problems.append(
                Problem(printable(one.path), "has a name that could lead out of the dataset; it is not read")
            )
        elif one.mode == _SUBMODULE:
            problems.append(Problem(printable(one.path), "is a submodule, whose files are not read at a commit"))
        else:
            yield one


def _may_point(one: Listed) -> bool:
    return one.size_bytes < (_LONGEST_LINK_BYTES if one.mode == _LINK else POINTER_LIMIT_BYTES)


class _Resolving:
    """From a path to the entry of the content behind it."""

    def __init__(self, listed: dict[str, Listed], pointing: dict[str, bytes], may_have: Callable[[str], bool]) -> None:
        self._listed = listed
        self._pointing = pointing
        self._may_have = may_have
        self._folders = {path[:end] for path in listed for end in _ends(path)}

    def entry(self, path: str) -> TreeEntry | None:
        """None for a link to a folder."""
        text = self._link(self._listed[path])
        place = path
        for _hop in range(_MOST_HOPS):
            one = self._listed[place]
            target = self._link(one)
            if target is None:
                return self._file(one)
            key = key_of_link(target)
            if key is not None:
                return self._annexed(key)
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
            if target.startswith("/") or place == ".." or place.startswith("../"):
                return TreeEntry(None, f"link:{printable(text or '')}", Absence.OUTSIDE)
            if place in self._folders or place == ".":
                return None
            if place not in self._listed:
                break
        return TreeEntry(None, f"link:{printable(text or '')}", Absence.DANGLING)

    def _link(self, one: Listed) -> str | None:
        if one.mode != _LINK:
            return None
        return self._pointing.get(one.blob, b"").decode("utf-8", "surrogateescape")

    def _file(self, one: Listed) -> TreeEntry:
        key = key_of_pointer(self._pointing.get(one.blob, b""))
        return TreeEntry(one.size_bytes, f"git:{one.blob}") if key is None else self._annexed(key)

    def _annexed(self, key: str) -> TreeEntry:
        absent = None if self._may_have(key) else Absence.NOT_FETCHED
        return TreeEntry(key_size_bytes(key), f"annex:{key}", absent)


def _ends(path: str) -> Iterator[int]:
    at = path.find("/")
    while at >= 0:
        yield at
        at = path.find("/", at + 1)
