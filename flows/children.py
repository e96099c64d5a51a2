"""Processes that the runner starts, each of its own: they outlive a runner that is killed, and the next one knows them again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from infra.locks import is_held, take
from infra.settings import inherited_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from infra.home import Home

__all__ = ["Children", "being_child"]

_LOG_BYTES: Final = 16 << 20
_LOOK_S: Final = 0.2


def _folder(home: Home) -> Path:
    folder = home.run / "children"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def being_child(home: Home, name: str) -> Iterator[None]:
    """For the length of the block this process is the child of this name, as every runner of the home can see."""
    path = _folder(home) / f"{name}.lock"
    handle = take(path)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


class Children:
    """What runs now, whichever runner of this home started it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._ours: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, *arguments: str, changes: Mapping[str, str | None] | None = None) -> int:
        """Start a module as the child of this name, with the settings of this process and ``changes``; its process number.

        Its output goes to the log of the name.
        """
        log = self._home.logs / f"{name}.log"
        with contextlib.suppress(FileNotFoundError):
            if log.stat().st_size > _LOG_BYTES:
                os.truncate(log, 0)
        with log.open("ab") as output:
            child = subprocess.Popen(
                # -P: the folder we were called in must not shadow our modules
                [sys.executable, "-P", "-m", module, *arguments],
                env=inherited_environment(**(changes or {})),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                start_new_session=True,
            )
        self._ours[name] = child
        return child.pid

    def ended(self) -> dict[str, int]:
        """Children of this runner that have ended since the last question, with their exit codes."""
        over = {name: code for name, child in self._ours.items() if (code := child.poll()) is not None}
        for name in over:
            del self._ours[name]
        return over

    def running(self) -> set[str]:
        """Names of all that run, those of an earlier runner included."""
        held = {path.stem for path in _folder(self._home).glob("*.lock") if is_held(path)}
        return held | {name for name, child in self._ours.items() if child.poll() is None}

    def end(self, patience_s: float) -> set[str]:
        """Ask every child to finish, and kill what has not within the patience; names of those that were killed."""
        self._signal(self.running(), signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        while self.running() and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        left = self.running()
        self._signal(left, signal.SIGKILL)
        return left

    def _signal(self, names: set[str], number: signal.Signals) -> None:
        for name in names:
            pid = self._ours[name].pid if name in self._ours else self._noted(name)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _noted(self, name: str) -> int | None:
        # the lock is held, so the number in it is that of a living process
        try:
            return int((_folder(self._home) / f"{name}.lock").read_text())
        except (OSError, ValueError):
            return None
