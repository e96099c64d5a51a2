"""Keeps what a Dask worker declares true to what its machine or cgroup has.

A worker's MEMORY and SCRATCH are those of its start until something else on the machine takes memory or gives it back, or a limit is
moved. Then the worker declares the new amounts, and the scheduler and every command see them within seconds. What already runs is left to run.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from infra.host import HostFiles, host_memory, process_memory, scratch_budget_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Budget", "Given", "current_budget", "follow"]

_LOG = logging.getLogger("zarrmill.worker")
_EVERY_S: Final = 5.0
_WORTH_TELLING: Final = 0.03  # of what is declared: less is what other processes and looks between samples make of it
_GRAIN_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a worker declares, in bytes."""

    memory_bytes: int
    scratch_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a worker was told that it may use; None where its machine decides."""

    memory_bytes: int | None = None
    scratch_bytes: int | None = None


def current_budget(given: Given, *, headroom: float, scratch: Path, files: HostFiles | None = None) -> Budget:
    """What the worker process that calls it may use now.

    What is free, and what the worker, its children and its scratch use already, less ``headroom`` of the limit. What was given is never exceeded,
    and is cut only to the limit itself.

    Raises
    ------
    OSError
        The scratch folder cannot be looked at.
    """
    host = host_memory(files) if files is not None else host_memory()
    own_scratch = _stored_bytes(scratch)
    if given.memory_bytes is None:
        memory = host.available_bytes + _own_memory_bytes() - int(host.limit_bytes * headroom)
        memory = min(memory, int(host.limit_bytes * (1 - headroom)))
    else:
        memory = min(given.memory_bytes, host.limit_bytes)
    disk = scratch_budget_bytes(scratch) + own_scratch
    if given.scratch_bytes is not None:
        disk = min(given.scratch_bytes, disk)
    return Budget(memory_bytes=max(memory, 0), scratch_bytes=disk)


def _own_memory_bytes() -> int:
    """Memory of this process and its descendants that cannot be dropped."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = (process_memory(process.pid) for process in processes)
    return sum(memory.real_bytes for memory in found if memory is not None)


def _stored_bytes(folder: Path) -> int:
    """Bytes of the files below ``folder``; what vanishes meanwhile counts or not."""
    return sum(size for size in _sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for where, _folders, names in os.walk(folder):
        for name in names:
            try:
                yield (Path(where) / name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue


def _is_worth_telling(declared: float, now: int) -> bool:
    return abs(now - declared) > max(_WORTH_TELLING * declared, _GRAIN_BYTES)


async def follow(
    worker: Any,
    given: Given,
    *,
    headroom: float,
    scratch: Path,
    every_s: float = _EVERY_S,
    files: HostFiles | None = None,
) -> None:
    """Declare anew whenever it has changed by more than a few percent, until cancelled."""
    while True:
        await asyncio.sleep(every_s)
        try:
            # beside the event loop: a scratch folder may hold many files
            now = await asyncio.to_thread(current_budget, given, headroom=headroom, scratch=scratch, files=files)
        except OSError as error:
            _LOG.warning("what this machine has could not be read: %s", error)
            continue
        declared = worker.state.total_resources
        # as far as each is declared at all: a worker that was started otherwise keeps what it says
        told = {"MEMORY": now.memory_bytes, "SCRATCH": now.scratch_bytes}
        new = {
            name: size for name, size in told.items() if name in declared and _is_worth_telling(declared[name], size)
        }
        if new:
            _LOG.info("this worker now has %s", ", ".join(f"{size} bytes of {name}" for name, size in new.items()))
            await worker.set_resources(**new)
