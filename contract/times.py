"""Moments as the documents write them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["utc_stamp"]


def utc_stamp(moment: datetime) -> str:
    """``YYYY-MM-DDTHH:MM:SSZ``, cut to the whole second.

    Raises
    ------
    ValueError
        ``moment`` has no time zone: nobody could say which moment it is.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
