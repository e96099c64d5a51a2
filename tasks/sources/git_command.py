"""git, run so that nothing that a repository brings along runs with it.

A dataset is data of somebody else, its ``.git/config`` included. git gets an environment without any ``GIT_*`` variable of the
caller's, runs no hook, no monitor, no filter and no transport, asks nothing, takes no lock, and shows objects as they
are, not what ``refs/replace`` puts in their place. Its refusal to work in a folder that another user owns is kept.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from contract.errors import Refused
from infra.settings import inherited_environment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["environment", "first_line", "git", "git_command", "nul_separated", "without_filters"]

_TIMEOUT_S = 600.0
_FILTER = re.compile(rb"filter\.(.+)\.[^.]+", re.DOTALL)
_ALWAYS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.alternateRefsCommand=",
    "protocol.allow=never",
    "submodule.recurse=false",
)


def environment(root: Path) -> dict[str, str]:
    """The environment of a git that works in ``root``, and never in a repository above it."""
    ours = {name: value for name, value in inherited_environment().items() if not name.startswith("GIT_")}
    return ours | {
        # a dataset inside somebody else's clone would otherwise be taken for a part of that clone
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        # a partial clone would fetch what it lacks, by whatever program its configuration names
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def git_command(*arguments: str, settings: Iterable[str] = ()) -> list[str]:
    """The command line of a git with these arguments; ``settings`` are ``name=value`` of its configuration."""
    return ["git", *(part for setting in (*_ALWAYS, *settings) for part in ("-c", setting)), *arguments]


def git(root: Path, *arguments: str, settings: Iterable[str] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run git in ``root`` to its end, whatever it answers.

    Raises
    ------
    Refused
        git cannot be started, or does not end.
    """
    try:
        return subprocess.run(
            git_command(*arguments, settings=settings),
            cwd=root,
            env=environment(root),
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise Refused(f"{root} is read through git, and there is no git here: install it.") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"git does not answer in {root} ({error}): mend the repository.") from error


def without_filters(root: Path) -> tuple[str, ...]:
    """Settings that turn off every content filter that the repository's configuration knows.

    ``git status`` gives a file whose times are not as in the index to its filter: a program that the configuration names.
    """
    listed = git(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\.")
    names = sorted({found.group(1) for name in listed.stdout.split(b"\0") if (found := _FILTER.fullmatch(name))})
    return tuple(
        f"filter.{os.fsdecode(name)}.{what}"
        for name in names
        for what in ("clean=", "smudge=", "process=", "required=false")
    )


def nul_separated(listing: bytes) -> list[str]:
    """The texts of a listing made with ``-z``; bytes that are no UTF-8 become lone surrogates."""
    return [os.fsdecode(entry) for entry in listing.split(b"\0") if entry]


def first_line(answer: subprocess.CompletedProcess[bytes]) -> str:
    """What git said was wrong, in its own first line."""
    return answer.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
