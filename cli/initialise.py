"""``zarrmill init``: what must stand before anything converts."""

from __future__ import annotations

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable

__all__ = ["show_init"]


def show_init(to: str, *, public: bool, as_json: bool, verbose: bool) -> None:
    """See to everything, a line each."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.initialise import initialise

    for step in initialise(settings, to, public=public):
        if as_json:
            typer.echo(json_line(jsonable(step)))
        else:
            typer.echo(f"{'done' if step.done else 'fine':<6}{step.name:<13}{step.sentence}")
