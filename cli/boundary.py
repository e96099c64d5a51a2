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

__all__ = ["boundary"]

_INTERRUPTED = 130
_BROKEN_PIPE = 141


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
        # Somebody read the first lines and closed. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    typer.echo(f"zarrmill: {sentence}" + (f" ({detail})" if detail else ""), err=True)
    if as_json:
        from cli.wording import json_line

        line = {"event": "error", "code": code, "sentence": sentence, "detail": detail, "exit_code": exit_code}
        typer.echo(json_line(line))
    raise typer.Exit(exit_code) from None
