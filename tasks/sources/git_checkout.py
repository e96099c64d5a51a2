"""The commit of a folder that is the toplevel of a git checkout, and what in it differs from that commit."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from contract.errors import Refused
from tasks.bids.scope import is_excluded, printable
from tasks.sources.annex import POINTER_LIMIT_BYTES, is_content, key_of_pointer
from tasks.sources.git_command import first_line, git, nul_separated, without_filters
from tasks.sources.git_objects import GitObjects

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

__all__ = ["head_commit"]

_WAY_OUT = "or pass --allow-dirty to publish under a hash of the files instead"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NAMED = 5
_SUBMODULE = "160000 "


def head_commit(root: Path, matters: Collection[str]) -> str | None:
    """HEAD of the checkout whose toplevel is ``root``; None when there is none.

    git may not search above the folder: a dataset inside somebody else's clone would otherwise get the commit of that
    clone. Its refusal to work in a folder that another user owns is kept, because that user's configuration would run.

    Raises
    ------
    Refused
        A path that matters is not as committed, or git cannot say.
    """
    if not os.path.lexists(root / ".git"):
        return None
    if shutil.which("git") is None:
        raise Refused(
            f"{root} is a git checkout, but there is no git here to ask for its commit: install git, {_WAY_OUT}."
        )
    if not _is_toplevel(root):
        return None
    commit = _head(root)
    if not commit:
        raise Refused(f"The git checkout {root} has no commit yet: commit the dataset, {_WAY_OUT}.")
    if not _COMMIT.fullmatch(commit):
        raise Refused(
            f"The commits of {root} are not named by 40 hex characters, as the documents need: {_WAY_OUT[3:]}."
        )
    differing = sorted(_differing(root, matters))
    if differing:
        some = ", ".join(printable(path) for path in differing[:_NAMED])
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        raise Refused(f"Not as committed in {root}: {some}{more}. Commit these changes, {_WAY_OUT}.")
    return commit


def _is_toplevel(root: Path) -> bool:
    answer = git(root, "rev-parse", "--show-toplevel")
    if answer.returncode and b"not a git repository" in answer.stderr:
        return False
    if answer.returncode:
        raise _unanswered(root, answer)
    return os.path.realpath(os.fsdecode(answer.stdout.removesuffix(b"\n"))) == str(root)


def _head(root: Path) -> str:
    answer = git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return "" if answer.returncode else answer.stdout.decode("ascii", "replace").strip()


def _differing(root: Path, matters: Collection[str]) -> set[str]:
    """Paths that matter and are changed or unknown to git, and raw paths that git has and the folder has not."""
    tracked: dict[str, str] = {}
    submodules: list[tuple[str, str]] = []
    for line in nul_separated(_asked(root, "ls-files", "--stage", "-z")):
        what, _, path = line.partition("\t")
        if what.startswith(_SUBMODULE):
            submodules.append((path, what.split()[1]))
        else:
            tracked[path] = what.split()[1]
    within = {path: _below(path, matters) for path, _ in submodules}
    elsewhere = {f"{path}/{inner}" for path, inners in within.items() for inner in inners}
    differing = {path for path in matters if path not in tracked and path not in elsewhere}
    # submodules are looked into below, each with its own filters turned off
    how = ("--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all")
    modified: dict[str, str] = {}
    for line in nul_separated(_asked(root, "status", *how, settings=without_filters(root))):
        state, path = line[:2], line[3:]
        if state == " M" and path in matters:
            modified[path] = tracked[path]
        elif path in matters or ("D" in state and not is_excluded(path)):
            differing.add(path)
    differing.update(_other_content(root, modified))
    for path, recorded in submodules:
        if within[path]:
            differing.update(f"{path}/{inner}" for inner in _differing_inside(root / path, recorded, within[path]))
    return differing


def _other_content(root: Path, modified: Mapping[str, str]) -> Iterable[str]:
    """Of the paths that git calls modified, with their blobs in the index, those whose content is another one.

    Without its filter, git compares an unlocked file of an annex with the pointer that it is committed as, unless the times of
    the file are as in the index: not so in a copied checkout, nor when both were written in one tick of the clock.
    """
    if not modified:
        return ()
    objects = GitObjects(root)
    try:
        return [path for path, blob in modified.items() if not _is_annexed_content(objects, blob, root / path)]
    finally:
        objects.close()


def _is_annexed_content(objects: GitObjects, blob: str, path: Path) -> bool:
    try:
        key = key_of_pointer(objects.read(blob, limit_bytes=POINTER_LIMIT_BYTES))
        return key is not None and path.is_file() and not path.is_symlink() and is_content(key, path)
    except (ValueError, OSError):
        return False


def _differing_inside(submodule: Path, recorded: str, matters: Collection[str]) -> Iterable[str]:
    """As ``_differing``, for a submodule that should stand at the commit ``recorded``."""
    at_it = os.path.lexists(submodule / ".git") and _is_toplevel(submodule) and _head(submodule) == recorded
    return _differing(submodule, matters) if at_it else matters


def _below(folder: str, paths: Iterable[str]) -> list[str]:
    return [path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/")]


def _asked(root: Path, *arguments: str, settings: Iterable[str] = ()) -> bytes:
    answer = git(root, *arguments, settings=settings)
    if answer.returncode:
        raise _unanswered(root, answer)
    return answer.stdout


def _unanswered(root: Path, answer: subprocess.CompletedProcess[bytes]) -> Refused:
    return Refused(
        f"git could not say whether {root} is as committed ({first_line(answer)}): mend the checkout, {_WAY_OUT}."
    )
