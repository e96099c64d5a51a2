"""``zarrmill status --system``: what stands and how it is, what the state takes, and for how long history is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from cli.called import program
from cli.runtime import has_state, prepare, reading
from cli.wording import json_line, jsonable
from infra.home import Home
from infra.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from db.retention import TableSize
    from infra.settings import Settings
    from infra.standing_health import PartHealth

__all__ = ["SystemStatus", "show_system", "system_lines"]

_TABLES_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatus:
    """Sizes in bytes: of databases and of folders by name, and of tables; days for which history is kept; and what stands."""

    keep_history_days: int
    databases: Mapping[str, int]
    tables: tuple[TableSize, ...]
    folders: Mapping[str, int]
    parts: tuple[PartHealth, ...] = ()


def show_system(*, as_json: bool, verbose: bool) -> None:
    """Print what the state of this installation takes."""
    settings = prepare(verbose=verbose, as_json=as_json)
    databases: dict[str, int] = {}
    tables: tuple[TableSize, ...] = ()
    if has_state(settings):
        from db.retention import database_sizes, table_sizes

        with reading(settings) as connection:
            databases, tables = database_sizes(connection), tuple(table_sizes(connection))
    folders = {"home": _size_of(settings.home), "scratch": _size_of(settings.scratch)}
    found = SystemStatus(
        keep_history_days=settings.keep_history_days,
        databases=databases,
        tables=tables,
        folders=folders,
        parts=_parts(settings),
    )
    if as_json:
        typer.echo(json_line(jsonable(found)))
        return
    for line in system_lines(found):
        typer.echo(line)


def _parts(settings: Settings) -> tuple[PartHealth, ...]:
    from infra.standing import is_up

    if not settings.home.is_dir() or not is_up(Home(settings.home)):
        return ()  # nothing is made by asking
    from cli.stand import look_at_parts

    return tuple(look_at_parts(Home(settings.home), settings))


def system_lines(found: SystemStatus) -> Iterator[str]:
    """The same for people."""
    if found.parts:
        from cli.stand import parts_lines

        yield from (line.rstrip() for line in parts_lines(list(found.parts)))
    else:
        yield f"Nothing is up here; {program()} up brings the service up."
    for name, size in found.folders.items():
        yield f"folder    {name:<20} {format_bytes(size):>12}"
    for name, size in found.databases.items():
        yield f"database  {name:<20} {format_bytes(size):>12}"
    for table in found.tables[:_TABLES_SHOWN]:
        yield f"table     {table.name:<20} {format_bytes(table.size_bytes):>12}  about {table.rows:,} rows"
    if not found.databases:
        yield "There is no state yet."
    yield f"History is kept for {found.keep_history_days} days (ZARRMILL_KEEP_HISTORY_DAYS)."


def _size_of(folder: Path) -> int:
    """Bytes of the files below a folder, links not followed; 0 where there is none. Files that vanish meanwhile do not count."""
    total = 0
    for above, _folders, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size  # noqa: PTH118 - os.walk gives texts
            except FileNotFoundError:
                continue
    return total
