"""Where errors end: one clear line on stderr and the exit code that the error tree gives; a traceback only when asked for."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from contract.errors import ZarrmillError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

__all__ = ["boundary", "say"]

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def say(out: TextIO, text: str) -> None:
    """Write now; when nobody reads any more, this and what follows goes nowhere, and the work goes on."""
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit: what it still holds goes the same way.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)


@contextmanager
def boundary(*, verbose: bool = False, as_json: bool = False) -> Iterator[None]:
    """Run a command's body; whatever it raises becomes a line and an exit code.

    With ``as_json`` the error also stands as a last object on stdout, for those who read only that.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except ZarrmillError as error:
        _end(error.sentence, error.detail, code=error.code, exit_code=error.exit_code, verbose=verbose, as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        # Somebody read the first lines and closed.
        for out in (sys.stdout, sys.stderr):
            say(out, "")
        raise typer.Exit(_BROKEN_PIPE) from None
    except Exception as error:  # noqa: BLE001 - the process boundary: a person gets a sentence, not a stack
        first = str(error).partition("\n")[0]
        detail = None if verbose else "--verbose shows where it came from"
        _end(
            f"unexpected {type(error).__name__}: {first}",
            detail,
            code="unexpected",
            exit_code=1,
            verbose=verbose,
            as_json=as_json,
        )


def _end(sentence: str, detail: str | None, *, code: str, exit_code: int, verbose: bool, as_json: bool) -> None:
    if verbose:
        traceback.print_exc()
    say(sys.stderr, f"zarrmill: {sentence}" + (f" ({detail})" if detail else "") + "\n")
    if as_json:
        from cli.wording import json_line

        line = {"event": "error", "code": code, "sentence": sentence, "detail": detail, "exit_code": exit_code}
        say(sys.stdout, json_line(line) + "\n")
    raise typer.Exit(exit_code) from None
