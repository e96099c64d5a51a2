"""A store as the engine writes it, before anything is said of it beside biosigIO's own attributes and the true rates."""

from __future__ import annotations

from pathlib import Path

from tasks.convert.engine import write_chunks
from tasks.convert.pieces import EngineInput, WrittenGroup

__all__ = ["write_engine_store"]


def write_engine_store(given: EngineInput, store: Path) -> tuple[WrittenGroup, ...]:
    """Convert ``given`` into the store of its chunks and their documents."""
    documents, written = write_chunks(given, store)
    documents.write(store)
    return written
