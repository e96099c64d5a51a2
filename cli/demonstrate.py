"""``zarrmill demo``: write the demonstration, convert it, say what to try next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

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
    sidecar = shlex.quote(f"{request.source}/{COLLIDING[0].replace('_eeg.edf', '_channels.tsv')}")
    return [
        "",
        "try",
        f"  zarrmill convert {source}{to}   # again: nothing has changed, so nothing is done",
        f"  sed -i 's/VEOG\\tVEOG/VEOG\\tEOG/' {sidecar}   # change one sidecar, and",
        f"  zarrmill plan {source}{to}   # see which recording that touches, and why",
    ]
