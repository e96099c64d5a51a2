"""The commit of a folder that is the toplevel of a git checkout, and what in it differs from that commit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from contract.errors import Refused
from tasks.bids.scope import is_excluded, printable

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["head_commit"]

_WAY_OUT = "or pass --allow-dirty to publish under a hash of the files instead"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LEADING_ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
)
_NAMED = 5
_TIMEOUT_S = 600.0


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
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    commit = head.stdout.decode("ascii", "replace").strip()
    if head.returncode or not commit:
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
    answer = _git(root, "rev-parse", "--show-toplevel")
    if answer.returncode and b"not a git repository" in answer.stderr:
        return False
    if answer.returncode:
        raise _unanswered(root, answer)
    return os.path.realpath(os.fsdecode(answer.stdout.removesuffix(b"\n"))) == str(root)


def _differing(root: Path, matters: Collection[str]) -> set[str]:
    """Paths that matter and are changed or unknown to git, and raw paths that git has and the folder has not."""
    tracked = set(_paths(_asked(root, "ls-files", "-z", "--recurse-submodules")))
    differing = {path for path in matters if path not in tracked}
    status = _asked(root, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    for line in _paths(status):
        state, path = line[:2], line[3:]
        if path in matters or ("D" in state and not is_excluded(path)):
            differing.add(path)
        else:
            # A submodule is one line, whatever changed inside it.
            differing.update(inner for inner in matters if inner.startswith(f"{path}/"))
    return differing


def _paths(listing: bytes) -> list[str]:
    return [os.fsdecode(entry) for entry in listing.split(b"\0") if entry]


def _asked(root: Path, *arguments: str) -> bytes:
    answer = _git(root, *arguments)
    if answer.returncode:
        raise _unanswered(root, answer)
    return answer.stdout


def _unanswered(root: Path, answer: subprocess.CompletedProcess[bytes]) -> Refused:
    first = answer.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return Refused(f"git could not say whether {root} is as committed ({first}): mend the checkout, {_WAY_OUT}.")


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # Variables that a hook or a shell of the caller left would lead git elsewhere. The folder is not ours: no hook and no
    # monitor of its configuration runs, and no lock is left in it.
    command = [
        "env",
        *(f"--unset={name}" for name in _LEADING_ELSEWHERE),
        f"GIT_CEILING_DIRECTORIES={root.parent}",
        "LC_ALL=C",
    ]
    command += [
        "git",
        "--no-optional-locks",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        *arguments,
    ]
    try:
        return subprocess.run(
            command, cwd=root, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"git does not answer in {root} ({error}): mend the checkout, {_WAY_OUT}.") from error
