"""Loaded by a Dask worker (``--preload infra.worker_lock --workers-lock FILE``): shows by a lock that the worker lives.

A command that takes over from one that died asks for the exclusive lock, and has it only when no worker of the dead one can
write any more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from infra.locks import take

__all__ = ["dask_setup"]


@click.command()
@click.option("--workers-lock", type=click.Path(path_type=Path), default=None)
def dask_setup(_worker: Any, workers_lock: Path | None) -> None:
    """Take the lock, shared. The kernel gives it back when this process is gone, however it went."""
    if workers_lock is not None:
        take(workers_lock, shared=True)
