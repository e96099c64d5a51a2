"""Loaded by a Dask worker (``--preload infra.worker_start``): shows by a lock that it lives, and follows what its machine has.

A command that takes over from one that died asks for the exclusive lock, and has it only when no worker of the dead one can
write any more. One module does both, because Dask gives options to one preload only.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from infra.locks import take
from infra.settings import load_settings
from infra.worker_budget import Given, follow

__all__ = ["dask_setup", "dask_teardown"]

_following: asyncio.Task[None] | None = None


@click.command()
@click.option("--workers-lock", type=click.Path(path_type=Path), default=None)
@click.option("--given-memory", type=int, default=None)
@click.option("--given-scratch", type=int, default=None)
async def dask_setup(
    worker: Any, workers_lock: Path | None, given_memory: int | None, given_scratch: int | None
) -> None:
    """Take the lock, shared, and begin to follow. The kernel gives the lock back when this process is gone, however it went."""
    global _following  # noqa: PLW0603 - one per worker process, ended by its teardown
    if workers_lock is not None:
        take(workers_lock, shared=True)
    settings = load_settings()
    given = Given(memory_bytes=given_memory, scratch_bytes=given_scratch)
    _following = asyncio.create_task(
        follow(worker, given, headroom=settings.memory_headroom, scratch=settings.scratch), name="zarrmill-budget"
    )


async def dask_teardown(_worker: Any) -> None:
    """Follow no longer."""
    if _following is not None:
        _following.cancel()
