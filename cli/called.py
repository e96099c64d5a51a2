"""How this command was called, so that a suggested command can be run as it is printed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["program", "spelled"]

_NAME = "zarrmill"


def program() -> str:
    """What a shell in this folder takes for this zarrmill: ``zarrmill``, or the path of the script, quoted."""
    called = Path(sys.argv[0])
    # started by its module, or by a test: the script lies beside the interpreter
    script = called if called.name == _NAME else Path(sys.executable).with_name(_NAME)
    return spelled(script, found=shutil.which(_NAME))


def spelled(script: Path, *, found: str | None) -> str:
    """``script`` as a shell takes it; ``found`` is what the shell finds under the bare name, if anything."""
    if not script.exists():
        return _NAME
    if found is not None and Path(found).samefile(script):
        return _NAME
    whole = os.path.abspath(script)  # noqa: PTH100 - a path of pathlib would lose the links that the person typed
    relative = os.path.relpath(whole)
    shorter = relative if os.sep in relative else f".{os.sep}{relative}"
    return shlex.quote(min(shorter, whole, key=len))
