"""One writer at a time for documents that are written on a condition."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from db import locks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from infra.storage.protocol import Target

__all__ = ["one_writer"]


@contextmanager
def one_writer(engine: Engine, target: Target, key: str) -> Iterator[None]:
    """Be the only writer of ``key``: by the target's own conditions, or by a lock in Postgres where it has none."""
    if target.decides_conditions:
        yield
        return
    with locks.publishing(engine, target=target.url, key=key):
        yield
