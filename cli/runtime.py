"""What every command that touches state does first: settings, log, a word on misspelt variables."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from contract.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from infra.settings import Settings

__all__ = ["has_state", "prepare", "reading", "refuse_taken_port", "state_beside", "target_url"]


def prepare(*, verbose: bool, as_json: bool = False, uses_home: bool = True) -> Settings:
    """The settings of this command, with the log set up and misspelt variables named on stderr.

    Raises
    ------
    Refused
        A setting is wrong, or the command ``uses_home`` and it can be no folder of this user's.
    """
    from infra.settings import load_settings, unknown_variables
    from infra.telemetry import set_up_logging

    settings = load_settings()
    if uses_home:
        _check_home(settings.home)
    set_up_logging(verbose, as_json, secrets=settings.secret_values())
    for name in unknown_variables():
        typer.echo(
            f"zarrmill: {name} is no setting of ours and was not used; docs/configuration.md lists them", err=True
        )
    return settings


def _check_home(home: Path) -> None:
    """Refuse a home that could not be used, by the name of its variable. Nothing is made by asking."""
    try:
        there = next(folder for folder in (home, *home.parents) if folder.exists())
        is_folder, owner = there.is_dir(), there.stat().st_uid
    except OSError as error:
        raise Refused(f"ZARRMILL_HOME: {home} cannot be used: {error.strerror}; name another folder") from error
    if not is_folder:
        raise Refused(f"ZARRMILL_HOME: {there} is no folder; name a folder of your own, such as ~/.zarrmill")
    if there == home and owner != os.geteuid():
        raise Refused(f"ZARRMILL_HOME: {home} belongs to user {owner}; name a folder of your own")
    if os.statvfs(there).f_blocks == 0:  # /proc and /sys, where root may write and nothing can be kept
        raise Refused(f"ZARRMILL_HOME: {there} holds no files; name a folder of your own, such as ~/.zarrmill")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Refused(f"ZARRMILL_HOME: {there} may not be written; name a folder of your own, or make it writable")


def target_url(to: str, settings: Settings) -> str:
    """The target as state names it. Nothing is made by asking."""
    from infra.storage import open_target

    return open_target(to, settings).url


def has_state(settings: Settings) -> bool:
    """Whether there can be any state: a database of somebody's, or one of ours that was begun."""
    # Home makes the folders that it is asked for, and a question must leave nothing behind.
    return settings.database_url is not None or Path(settings.home, "postgres").is_dir()


@contextmanager
def reading(settings: Settings) -> Iterator[Connection]:
    """A connection on the state, for questions."""
    from db.migrate import upgrade
    from infra.database import engine
    from infra.services import database

    with database(settings) as url:
        upgrade(url)
        made = engine(url)
        try:
            with made.connect() as connection:
                yield connection
        finally:
            made.dispose()


@contextmanager
def state_beside(
    settings: Settings, *, connections: int, longest_statement_s: float | None = None
) -> Iterator[Engine | None]:
    """The state, for as long as a server runs; None when there is none."""
    if not has_state(settings):
        yield None
        return
    from db.migrate import upgrade
    from infra.database import engine
    from infra.services import database

    with database(settings) as url:
        upgrade(url)
        made = engine(url, pool_size=connections, longest_statement_s=longest_statement_s)
        try:
            yield made
        finally:
            made.dispose()


def refuse_taken_port(host: str, port: int) -> None:
    """Refuse a port on which something answers: a web server would end with a bare line in the log."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Refused(f"port {port} cannot be used: {error.strerror}; name another one with --port") from error
