"""Processes that the runner starts, each of its own: they outlive a runner that is killed, and the next one knows them again.

Each is known by the lock that it holds, and from its first moment by the record of who started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from infra.locks import is_held, take
from infra.processes import begun, is_running
from infra.settings import inherited_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from infra.home import Home

__all__ = ["PUBLISHES_S", "Children", "being_child"]

PUBLISHES_S: Final = 60.0
"""A dataset that was asked to finish publishes this long, past the grace of what runs."""
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
        record = {"child": begun(child.pid), "starter": begun(os.getpid())}
        (_folder(self._home) / f"{name}.json").write_text(json.dumps(record))
        return child.pid

    def ended(self) -> dict[str, int]:
        """Children of this runner that have ended since the last question, with their exit codes."""
        over = {name: code for name, child in self._ours.items() if (code := child.poll()) is not None}
        for name in over:
            del self._ours[name]
        return over

    def running(self) -> set[str]:
        """Names of all that run, those of an earlier runner included."""
        folder = _folder(self._home)
        held = {path.stem for path in folder.glob("*.lock") if is_held(path)}
        recorded = {path.stem for path in folder.glob("*.json") if self._recorded(path.stem, "child") is not None}
        return held | recorded | {name for name, child in self._ours.items() if child.poll() is None}

    def orphans(self) -> set[str]:
        """Names of those whose runner lives no more: nobody but the next runner would ever hear how they end."""
        return {name for name in self.running() if self._recorded(name, "starter") is None}

    def end(
        self, patience_s: float, *, orphans: bool = False, hurried: Callable[[], bool] = lambda: False
    ) -> dict[str, bool]:
        """Ask every child, or only ``orphans``, to finish, and kill what has not within the patience.

        ``hurried`` ends the patience early. Without patience nothing is asked. Names, and whether each was killed.
        """
        there = self.orphans if orphans else self.running
        asked = there()
        if patience_s > 0:
            self._signal(asked, signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        while (asked & self.running()) and time.monotonic() < deadline and not hurried():
            time.sleep(_LOOK_S)
        left = asked & self.running()
        self._signal(left, signal.SIGKILL)
        return {name: name in left for name in asked}

    def gone(self, patience_s: float) -> bool:
        """Whether no orphan is left within the patience."""
        deadline = time.monotonic() + patience_s
        while self.orphans():
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def pid(self, name: str) -> int | None:
        """The process of this name, while it is known."""
        if name in self._ours:
            return self._ours[name].pid
        return self._recorded(name, "child") or self._noted(name)

    def _signal(self, names: set[str], number: signal.Signals) -> None:
        for name in names:
            pid = self.pid(name)
            if pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _recorded(self, name: str, who: str) -> int | None:
        """A process of the child's record, if it is still the one that was recorded: numbers are given again."""
        try:
            found = json.loads((_folder(self._home) / f"{name}.json").read_text())[who]
            pid = int(found.partition(" ")[0])
        except (OSError, ValueError, KeyError, AttributeError):
            return None
        return pid if is_running(pid) and begun(pid) == found else None

    def _noted(self, name: str) -> int | None:
        path = _folder(self._home) / f"{name}.lock"
        try:
            # while the lock is held the number in it is that of a living process
            return int(path.read_text()) if is_held(path) else None
        except (OSError, ValueError):
            return None
