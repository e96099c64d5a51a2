"""The clocks of the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Clocks", "clocks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The database's own clock, and the one by which policy and leases go; equal unless somebody set the latter."""

    database: datetime
    zarrmill: datetime


def clocks(c: Connection) -> Clocks:
    """Both clocks at this moment."""
    row = c.execute(text("SELECT clock_timestamp() AS database, zarrmill_now() AS zarrmill")).one()
    return Clocks(database=row.database, zarrmill=row.zarrmill)
