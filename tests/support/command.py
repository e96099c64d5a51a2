"""The command line as a user runs it: processes of their own, with a home of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_CLI = [str(Path(sys.executable).with_name("zarrmill"))]


@dataclass(frozen=True)
class Finished:
    """A command that has ended. ``events`` and ``summary`` are what ``--json`` told."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        return self.lines[-1]


@dataclass(frozen=True)
class Zarrmill:
    """``zarrmill`` with this home, called in this folder."""

    home: Path
    cwd: Path
    settings: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "ZARRMILL_HOME": str(self.home), **self.settings}

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start it and go on; it leads a process group of its own."""
        return subprocess.Popen(
            [*_CLI, *map(str, arguments)],
            cwd=self.cwd,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str | Path, code: int | None = 0, timeout_s: float = 240) -> Finished:
        """Run it to its end; ``code`` is the exit code it must have, None for any."""
        process = self.start(*arguments)
        return finish(process, code=code, timeout_s=timeout_s)


def finish(process: subprocess.Popen[str], *, code: int | None = 0, timeout_s: float = 240) -> Finished:
    """Wait for a started command."""
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    ended = Finished(process.returncode, stdout, stderr)
    assert code is None or ended.code == code, f"exit {ended.code} instead of {code}\n{stdout}\n{stderr}"
    return ended
