"""``zarrmill clean``: remove what this machine keeps for itself, after naming it."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.runtime import prepare
from cli.wording import json_line
from contract.errors import Busy
from infra.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["Removable", "clean_home", "hold_everything", "removables"]

_LOCKED = ("run/*.users", "run/*.supervisor", "leases/*")
"""Below the home: what commands, supervisors and owners of a dataset hold locked while they live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A folder that clean would remove, and what it is."""

    path: Path
    what: str
    size_bytes: int


def clean_home(*, execute: bool, scratch_only: bool, as_json: bool) -> int:
    """Name scratch and state with their sizes, and with ``execute`` remove them; the exit code.

    Raises
    ------
    Busy
        A command or a server still uses them.
    """
    settings = prepare(verbose=False, as_json=as_json)
    found = removables(settings, scratch_only=scratch_only)
    if as_json:
        rows = [{"path": str(each.path), "what": each.what, "size_bytes": each.size_bytes} for each in found]
        typer.echo(json_line({"remove": rows, "executed": execute}))
    else:
        for each in found:
            typer.echo(f"{each.path}  {format_bytes(each.size_bytes)}  {each.what}")
        typer.echo(_verdict(settings, found, execute=execute))
    if execute and found:
        with ExitStack() as held:
            hold_everything(settings.home, held)
            for each in found:
                shutil.rmtree(each.path)
    return 0


def _verdict(settings: Settings, found: list[Removable], *, execute: bool) -> str:
    if not found:
        return "nothing to remove"
    kept = "; the database of ZARRMILL_DATABASE_URL is not touched" if settings.database_url is not None else ""
    size = format_bytes(sum(each.size_bytes for each in found))
    return f"removing {size}{kept}" if execute else f"{size} would be removed{kept}; do it with --execute"


def removables(settings: Settings, *, scratch_only: bool) -> list[Removable]:
    """What there is to remove, scratch first. Served datasets are never part of it."""
    folders = [(settings.scratch, "scratch: recordings under conversion and what crashes left")]
    if not scratch_only:
        ours = "" if settings.database_url is not None else " with the database of what was converted"
        folders.append((settings.home, f"state: Postgres{ours}, Prefect, logs and locks of this machine"))
    return [
        Removable(path=folder, what=what, size_bytes=_size(folder, without=settings.scratch))
        for folder, what in folders
        if folder.is_dir()
    ]


def hold_everything(home: Path, held: ExitStack) -> None:
    """Lock whatever a living command would hold, so that none can begin meanwhile.

    Raises
    ------
    Busy
        One of them is held.
    """
    for path in (path for pattern in _LOCKED for path in sorted(home.glob(pattern)) if path.is_file()):
        handle = held.enter_context(path.open("rb"))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                f"{path} is in use; wait until commands and servers of {home} have ended, then clean again"
            ) from None


def _size(folder: Path, *, without: Path) -> int:
    return sum(entry.lstat().st_size for entry in _files(folder) if folder == without or without not in entry.parents)


def _files(folder: Path) -> Iterator[Path]:
    for where, _folders, names in os.walk(folder):
        yield from (Path(where, name) for name in names)
