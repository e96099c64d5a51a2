"""The parts that a keeper keeps: commands that it starts again, and how each is asked to end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from infra.lifeline import start_bound
from infra.prefect_server import PrefectServer
from infra.standing import PartState

if TYPE_CHECKING:
    from infra.home import Home
    from infra.settings import Settings
    from infra.standing import StandingPlan

__all__ = ["Kept", "KeptCommand", "KeptPrefect", "Part", "parts_of"]

_FIRST_DELAY_S: Final = 0.5
_LONGEST_DELAY_S: Final = 30.0
_STEADY_S: Final = 60.0
"""A part that ran this long begins with a clean slate when it ends."""
_LOG_BYTES: Final = 16 << 20


class Part(Protocol):
    """A process that can be started, looked at and ended."""

    @property
    def pid(self) -> int | None:
        """Its process."""
        ...

    def launch(self) -> None:
        """Start it; it need not answer yet."""
        ...

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs."""
        ...

    def stop(self, patience_s: float) -> None:
        """Ask it to end, and kill it after the patience."""
        ...


class KeptCommand:
    """A command that ends with the keeper."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None

    @property
    def pid(self) -> int | None:
        """Its process."""
        return None if self._process is None else self._process.pid

    def launch(self) -> None:
        """Start it."""
        self._process, self._lifeline = start_bound(self._command, self._environment, self._log)

    def ended(self) -> str | None:
        """How it ended, in words; None while it runs."""
        if self._process is None:
            return "not started"
        code = self._process.poll()
        if code is None:
            return None
        self._forget()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def stop(self, patience_s: float) -> None:
        """Ask it to end, and kill it after the patience."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._forget()

    def _forget(self) -> None:
        self._process = None
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


class KeptPrefect:
    """The Prefect server; its port stays taken while it is started again."""

    def __init__(self, server: PrefectServer) -> None:
        self._server = server

    @property
    def pid(self) -> int | None:
        """Its process."""
        return self._server.pid

    def launch(self) -> None:
        """Start it."""
        self._server.launch()

    def ended(self) -> str | None:
        """Whether it has ended; None while it runs."""
        return None if self._server.alive() else "it ended; its log says why"

    def stop(self, patience_s: float) -> None:  # noqa: ARG002 - it keeps everything in Postgres and may end hard
        """End it and give its port back."""
        self._server.close()


@dataclass(slots=True, kw_only=True)
class Kept:
    """A part with its history. What ends is started again after a delay that doubles until it has run steadily."""

    name: str
    part: Part
    log: Path
    patience_s: float
    restarts: int = 0
    last_exit: str | None = None
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    running: bool = False
    _failures: int = 0
    _began: float = 0.0
    _not_before: float = 0.0

    def look(self) -> bool:
        """Start it if it is due; whether anything changed."""
        now = time.monotonic()
        if not self.running:
            if now < self._not_before:
                return False
            self.part.launch()
            self.running, self._began, self.since = True, now, datetime.now(UTC)
            return True
        why = self.part.ended()
        if why is None:
            return False
        self._failures = 0 if now - self._began > _STEADY_S else self._failures + 1
        self._not_before = now + min(_FIRST_DELAY_S * 2 ** max(self._failures - 1, 0), _LONGEST_DELAY_S)
        self.running, self.last_exit, self.since = False, why, datetime.now(UTC)
        self.restarts += 1
        return True

    def trim_log(self) -> None:
        """Put a long log aside. The part goes on writing at the end of what is empty now."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > _LOG_BYTES:
                self.log.with_name(f"{self.log.name}.1").write_bytes(self.log.read_bytes())
                os.truncate(self.log, 0)

    def state(self) -> PartState:
        """What is told of it."""
        return PartState(
            name=self.name,
            pid=self.part.pid if self.running else None,
            restarts=self.restarts,
            since_utc=self.since.strftime("%Y-%m-%dT%H:%M:%SZ"),
            log=str(self.log),
            last_exit=self.last_exit,
        )


def parts_of(
    home: Home, plan: StandingPlan, settings: Settings, environment: Mapping[str, str], dask_port: int | None
) -> list[Kept]:
    """The commands that stand, in the order in which they start. They end in the opposite one."""
    logs, grace_s = home.logs, settings.stop_grace_s

    def kept(name: str, command: list[str], patience_s: float) -> Kept:
        log = logs / f"{name}.log"
        return Kept(name=name, part=KeptCommand(command, environment, log), log=log, patience_s=patience_s)

    parts = [] if dask_port is None else [kept("dask-scheduler", _scheduler(dask_port), 3.0)]
    number = 0
    for size in plan.workers:
        for _ in range(size.count):
            number += 1
            given = [] if size.memory_bytes is None else ["--memory", str(size.memory_bytes)]
            given += [] if plan.slots is None else ["--slots", str(plan.slots)]
            # a worker on this machine alone must not be spoken to from another
            parts.append(kept(f"worker-{number}", _ours("worker", *given), grace_s + 10))
    given = [] if plan.datasets is None else ["--datasets", str(plan.datasets)]
    parts.append(kept("api", _ours("serve", "--to", plan.target, "--port", str(plan.api_port)), 5.0))
    # datasets finish or let go what runs, and publish
    parts.append(kept("runner", _ours("runner", *given), grace_s + 90))
    return parts


def _ours(*arguments: str) -> list[str]:
    # -P: the folder we were called in must not shadow our modules
    return [sys.executable, "-P", "-m", "cli", *arguments]


def _scheduler(port: int) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", str(port)),
        *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
    ]
