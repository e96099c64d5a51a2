"""Processes that stand for good on one machine: what is wanted of them, and what is known of each while they stand."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from contract.errors import Refused
from infra.home import Home
from infra.locks import is_held

__all__ = [
    "PartState",
    "Standing",
    "StandingFiles",
    "StandingPlan",
    "WorkerSize",
    "is_up",
    "kept_port",
    "port_is_free",
    "read_standing",
    "standing_files",
]

_PORTS: Final = range(21000, 32000)
"""Below the ports that the kernel gives to connections: one of those could meet itself where a server restarts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSize:
    """Workers of one size. ``memory_bytes`` None: what the machine has, less headroom."""

    count: int = 1
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or (self.memory_bytes is not None and self.memory_bytes < 1):
            raise Refused("a worker's count and memory must be above zero; write them like 2 or 2x4GiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPlan:
    """What is asked to stand.

    Parameters
    ----------
    target
        Address of the target that the API answers for.
    datasets
        Datasets that convert at a time; None: what the settings say.
    prefect_port, dask_port
        Ports of 127.0.0.1; None: the one of last time, else a free one.
    """

    target: str
    api_port: int
    workers: tuple[WorkerSize, ...] = (WorkerSize(),)
    slots: int | None = None
    datasets: int | None = None
    prefect_port: int | None = None
    dask_port: int | None = None

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StandingPlan:
        """The plan that ``to_json`` wrote."""
        given: dict[str, Any] = json.loads(text)
        workers = tuple(WorkerSize(**one) for one in given.pop("workers"))
        return cls(workers=workers, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """One process that is kept. ``pid`` is None while it waits to be started again."""

    name: str
    pid: int | None
    restarts: int
    since_utc: str
    log: str
    last_exit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What stands: the keeper's process, the addresses by name, and every part."""

    keeper_pid: int
    target: str
    addresses: dict[str, str] = field(default_factory=dict)
    parts: tuple[PartState, ...] = ()

    def part(self, name: str) -> PartState | None:
        """The part of this name."""
        return next((one for one in self.parts if one.name == name), None)

    def write(self, path: Path) -> None:
        """Replace the file at once, so that a reader sees the old or the new."""
        fresh = path.with_name(f"{path.name}.fresh")
        fresh.write_text(json.dumps(asdict(self)))
        fresh.replace(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingFiles:
    """``lock`` is held by the one keeper of a home; ``plan`` is what it was asked, ``state`` what stands, ``error`` why it gave up."""

    lock: Path
    plan: Path
    state: Path
    error: Path
    log: Path
    runner_beat: Path


def standing_files(home: Home) -> StandingFiles:
    """The files by which ``up``, ``down`` and the keeper find each other."""
    run = home.run
    return StandingFiles(
        lock=run / "keeper.lock",
        plan=run / "keeper.plan.json",
        state=run / "keeper.json",
        error=run / "keeper.error",
        log=home.logs / "keeper.log",
        runner_beat=run / "runner.beat",
    )


def is_up(home: Home) -> bool:
    """Whether a keeper is at work in this home."""
    lock = standing_files(home).lock
    return lock.exists() and is_held(lock)


def read_standing(home: Home) -> Standing | None:
    """What stands in this home now; None when nothing does, or its keeper has not yet begun."""
    if not is_up(home):
        return None
    try:
        given: dict[str, Any] = json.loads(standing_files(home).state.read_text())
    except (OSError, ValueError):
        return None
    parts = tuple(PartState(**one) for one in given.pop("parts"))
    return Standing(parts=parts, **given)


def kept_port(remembered: Path, wanted: int | None = None, *, avoid: Collection[int] = ()) -> int:
    """A port of 127.0.0.1 for a server that may be restarted: the one wanted, else the one remembered, else a free one.

    ``avoid`` are ports that are promised to others, who do not listen there yet.

    Raises
    ------
    Refused
        The one that is wanted is taken.
    """
    if wanted is not None:
        if wanted in avoid or not port_is_free(wanted):
            raise Refused(f"port {wanted} of 127.0.0.1 is taken; name another one")
        remembered.write_text(str(wanted))
        return wanted
    try:
        last = int(remembered.read_text())
    except (OSError, ValueError):
        last = 0
    begin = _PORTS.start + os.getpid() * 37 % len(_PORTS)
    candidates: list[int] = [last, *range(begin, _PORTS.stop), *range(_PORTS.start, begin)]
    for port in candidates:
        if port and port not in avoid and port_is_free(port):
            remembered.write_text(str(port))
            return port
    raise Refused("no port of 127.0.0.1 is free")


def port_is_free(port: int) -> bool:
    """Whether nothing listens at a port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return False
    return True
