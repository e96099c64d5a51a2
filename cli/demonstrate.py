"""``zarrmill demo``: write the demonstration, convert it, say what to try next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.called import program
from cli.convert import convert_dataset
from cli.demo.dataset import COLLIDING, ensure_dataset

if TYPE_CHECKING:
    from flows.request import ReconvertRequest

__all__ = ["demonstrate"]


def demonstrate(request: ReconvertRequest, *, write_only: bool, as_json: bool, verbose: bool) -> int:
    """Write the dataset where ``request.source`` says, convert it to ``request.target``; the exit code of convert."""
    folder = Path(request.source)
    written = ensure_dataset(folder)
    # With --json stdout belongs to the events; these words are for whoever watches.
    typer.echo(_what_stands(folder, written=written), err=as_json)
    if write_only:
        return 0
    code = convert_dataset(request, strict=False, as_json=as_json, verbose=verbose)
    if not as_json:
        for line in _what_next(request):
            typer.echo(line)
    return code


def _what_stands(folder: Path, *, written: bool) -> str:
    if written:
        return f"wrote a made-up BIDS dataset with four planted faults to {folder} (its README names them)"
    return f"{folder} holds the demonstration already; it is left as it is"


def _what_next(request: ReconvertRequest) -> list[str]:
    source, there = shlex.quote(request.source), shlex.quote(request.target)
    to = "" if request.target == "./served" else f" --to {there}"
    again = f"  {program()} convert {source}{to}   # again: nothing has changed, so nothing is done"
    change = change_line(Path(request.source))
    if change is None:
        return ["", "try", again]
    then = f"  {program()} plan {source}{to}   # see which recording that touches, and why"
    return ["", "try", again, f"  {change}, and", then]


def change_line(folder: Path) -> str | None:
    """A command that changes one sidecar, or changes it back when it was run before; None when the sidecar is gone."""
    sidecar = folder / COLLIDING[0].replace("_eeg.edf", "_channels.tsv")
    if not sidecar.is_file():
        return None
    at = shlex.quote(str(sidecar))
    if b"VEOG\tEOG" in sidecar.read_bytes():
        return f"sed -i 's/VEOG\\tEOG/VEOG\\tVEOG/' {at}   # change one sidecar back"
    return f"sed -i 's/VEOG\\tVEOG/VEOG\\tEOG/' {at}   # change one sidecar"
