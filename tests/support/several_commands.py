"""Several commands, one after another, in one process of their own: each would spend a second on its imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from command import Zarrmill

__all__ = ["Told", "run_all"]

_CODE = """
import json, sys
from typer.testing import CliRunner
from cli.main import app
told = []
for arguments in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, arguments, prog_name="zarrmill")
    told.append([done.exit_code, done.stdout, done.stderr])
print(json.dumps(told))
"""


class Told(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


def run_all(zarrmill: Zarrmill, *commands: Sequence[str | Path]) -> list[Told]:
    """Run them in order, whatever each says."""
    given = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", _CODE, given],
        cwd=zarrmill.cwd,
        env=zarrmill.environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Told(*one) for one in json.loads(done.stdout.splitlines()[-1])]
