"""Bring a database to the tables of this version, once, however many commands ask at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import NullPool, create_engine, text

from contract.errors import Refused
from infra.database import normalise_url

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["HEAD", "current", "upgrade"]

HEAD = "0010"
"""The newest migration. Written here too, so that the usual case, nothing to do, need not load Alembic."""

_LOCK = 0x7A61_7272_6D69_6C6C
"""Advisory lock, ``zarrmill`` in ASCII."""


def current(url: str) -> str | None:
    """The migration that the database stands at; None for an empty one."""
    engine = _engine(url)
    with engine.connect() as c:
        return _revision(c)


def upgrade(url: str) -> None:
    """Bring the database to ``HEAD``; nothing is written when it stands there.

    The whole upgrade is one transaction under an advisory lock: a crash leaves nothing half done, and a second command
    waits and then finds nothing to do.

    Raises
    ------
    Refused
        The database was made by a newer version, or is older than Postgres 15.
    """
    engine = _engine(url)
    with engine.connect() as c:
        if _revision(c) == HEAD:
            return
    with engine.begin() as c:
        c.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if _revision(c) != HEAD:
            _run(c)


def _engine(url: str) -> Engine:
    return create_engine(
        normalise_url(url), poolclass=NullPool, hide_parameters=True, connect_args={"application_name": "zarrmill"}
    )


def _revision(c: Connection) -> str | None:
    if c.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = c.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _run(c: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    version = c.dialect.server_version_info or (0,)
    if version < (15,):
        raise Refused(f"the database is Postgres {version[0]}; zarrmill needs 15 or newer")
    config = Config()
    # Alembic interpolates %, and a folder's name may hold one
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = c
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise Refused(
            "the database was made by a newer zarrmill; use that version, or another database", detail=str(error)
        ) from error
