"""Locks between commands that share a database, for what a target itself does not decide."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

__all__ = ["publishing"]


@contextmanager
def publishing(engine: Engine, *, target: str, key: str) -> Iterator[None]:
    """Be the only one of this database who writes the document ``key`` at ``target``; waits for whoever is.

    It ends with its process, however that ends.
    """
    with engine.begin() as c:
        c.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended('publish ' || :target || ' ' || :key, 0))"),
            {"target": target, "key": key},
        )
        yield
