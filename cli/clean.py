"""``zarrmill clean``: remove what this machine keeps for itself, after naming it."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.called import program
from cli.runtime import has_state, prepare, reading
from cli.wording import json_line
from contract.errors import Busy, ZarrmillError
from infra.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["Removable", "clean_home", "removables"]

_STATE = {
    "postgres": "state: data of our Postgres",
    "prefect": "state: our Prefect's own",
    "run": "state: sockets and locks",
    "leases": "state: locks of those who hold a dataset",
    "demo": "state: of the demonstration",
    "logs": "logs of our servers",
}
"""Folders below the home. A setting may point the home at a folder with other things in it, so those alone are removed."""
_ATTEMPT = re.compile(r"(?:.*[-_.])?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?:[-_.].*)?|[0-9a-f]{32}")
"""Scratch is named after its attempt, or its worker. ``ZARRMILL_SCRATCH`` may be shared with others, so nothing else there is removed."""


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
    Busy, Refused
        A run or a server still uses them.
    """
    settings = prepare(verbose=False, as_json=as_json)
    found = removables(settings, scratch_only=scratch_only)
    if not as_json:
        for each in found:
            typer.echo(f"{each.path}  {format_bytes(each.size_bytes)}  {each.what}")
    if execute and found:
        _remove(settings, found)
    if not as_json:
        typer.echo(_verdict(settings, found, execute=execute))
    else:
        rows = [{"path": str(each.path), "what": each.what, "size_bytes": each.size_bytes} for each in found]
        typer.echo(json_line({"remove": rows, "executed": execute}))
    return 0


def _verdict(settings: Settings, found: list[Removable], *, execute: bool) -> str:
    if not found:
        return "nothing to remove"
    kept = "; the database of ZARRMILL_DATABASE_URL is not touched" if settings.database_url is not None else ""
    size = format_bytes(sum(each.size_bytes for each in found))
    return f"removed {size}{kept}" if execute else f"{size} would be removed{kept}; do it with --execute"


def removables(settings: Settings, *, scratch_only: bool) -> list[Removable]:
    """What there is to remove, scratch first. Served datasets are never part of it."""
    folders = [(folder, "scratch: of attempts") for folder in _scratch(settings.scratch)]
    if settings.home in settings.scratch.parents:
        folders.append((settings.scratch / "dask", "scratch: of Dask workers"))
    if not scratch_only and settings.home.is_dir():
        folders += [(settings.home / name, what) for name, what in _STATE.items()]
        folders += [(folder, _STATE["postgres"]) for folder in _kept_aside(settings.home)]
    return [Removable(path=folder, what=what, size_bytes=_size(folder)) for folder, what in folders if folder.is_dir()]


def _scratch(folder: Path) -> Iterator[Path]:
    from tasks.convert.scratch import is_in_use

    if folder.is_dir():
        ours = (entry for entry in sorted(folder.iterdir()) if _ATTEMPT.fullmatch(entry.name) and entry.is_dir())
        yield from (entry for entry in ours if not is_in_use(entry))


def _kept_aside(home: Path) -> Iterator[Path]:
    """Data of our Postgres that cannot lie in the home, because root may not run it there."""
    from infra.home import Home
    from infra.postgres_place import place

    if (home / "postgres").is_dir():
        data = place(Home(home))
        if home not in data.parents:
            yield data.parent


def _size(folder: Path) -> int:
    return sum(Path(where, name).lstat().st_size for where, _folders, names in os.walk(folder) for name in names)


def _remove(settings: Settings, found: list[Removable]) -> None:
    """Remove what was named, with our own servers ended and nobody able to start them meanwhile."""
    from infra.home import Home
    from infra.locks import is_held
    from infra.services import stopped
    from infra.standing import is_up

    if settings.home.is_dir() and is_up(Home(settings.home)):
        raise Busy(f"the service is up and uses it; {program()} down ends it, then clean again")
    for lease in sorted(Path(settings.home, "leases").glob("*")):
        if is_held(lease):
            raise Busy(f"a run holds {_held_by(settings, lease)}; wait until it has ended, then clean again")
    with stopped(Home(settings.home)):
        for each in found:
            shutil.rmtree(each.path)


def _held_by(settings: Settings, lease: Path) -> str:
    """Name the dataset behind a lock file; when the state cannot be asked, the lock file."""
    from db.datasets import list_datasets
    from db.leases import holder

    lock_path = str(lease.with_suffix(".lock"))  # that of its workers stands beside it
    try:
        if has_state(settings):
            with reading(settings) as c:
                for dataset in list_datasets(c):
                    owner = holder(c, dataset=dataset)
                    if owner is not None and owner.lock_path == lock_path:
                        return f"{dataset.dataset_id} at {dataset.target}, process {owner.pid}"
    except ZarrmillError:
        pass  # the state is in trouble; that a run holds something is known all the same
    return f"a dataset ({lease.name})"
