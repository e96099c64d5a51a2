"""SQLAlchemy engines for our Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from contract.errors import Refused

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["engine", "normalise_url"]

_DRIVERS = ("postgresql", "postgres", "postgresql+psycopg")


def normalise_url(url: str) -> str:
    """The address of a Postgres database for SQLAlchemy with psycopg 3; any password stays in it.

    Raises
    ------
    Refused
        It is no address of a Postgres database; the sentence does not repeat it, since it may hold a password.
    """
    way_out = "write it like postgresql://user:password@host:5432/database"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        # neither cause nor context may be kept: both quote the address
        raise Refused(
            f"this is not the address of a Postgres database; {way_out}", detail=type(error).__name__
        ) from None
    if parsed.drivername not in _DRIVERS:
        raise Refused(f"{parsed.drivername!r} is not Postgres by psycopg; {way_out}")
    if not parsed.database:
        raise Refused(f"the address names no database; {way_out}")
    return parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def engine(url: str, *, pool_size: int = 2, longest_statement_s: float | None = None) -> Engine:
    """An engine whose sessions speak UTC; connections are checked before use, parameters never shown in errors.

    ``pool_size`` connections are kept and as many again made when needed. A statement that takes longer than
    ``longest_statement_s`` is ended by the server. The caller disposes of it.
    """
    options = "-c timezone=UTC"
    if longest_statement_s is not None:
        options += f" -c statement_timeout={int(longest_statement_s * 1000)}"
    return create_engine(
        normalise_url(url),
        pool_size=pool_size,
        max_overflow=pool_size + 2,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": 10, "application_name": "zarrmill", "options": options},
    )
