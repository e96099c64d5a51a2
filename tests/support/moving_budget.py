"""Loaded by a Dask worker in tests: it follows the limits of a made-up tree instead of the kernel's, and looks often."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from infra.host import HostFiles
from infra.worker_budget import Given, follow

_tasks: list[asyncio.Task[None]] = []


async def dask_setup(worker: Any) -> None:
    """Begin to follow ``proc`` and ``cgroup`` in the folder that the test names."""
    tree = Path(os.environ["MOVING_BUDGET"])
    files = HostFiles(proc=tree / "proc", cgroup=tree / "cgroup")
    following = follow(worker, Given(), headroom=0.25, scratch=tree / "scratch", every_s=0.1, files=files)
    _tasks.append(asyncio.create_task(following))


async def dask_teardown(_worker: Any) -> None:
    for task in _tasks:
        task.cancel()
