"""``zarrmill doctor``: whether everything is as it should be, a line each."""

from __future__ import annotations

import typer

from cli.runtime import has_state, prepare
from cli.wording import json_line, jsonable

__all__ = ["show_health"]


def show_health(to: str, *, as_json: bool, verbose: bool) -> int:
    """Print each finding as it is found; the exit code: 0 healthy, 1 an alarm, 3 something unknown."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.doctor.examine import examine
    from flows.doctor.findings import exit_code

    found = []
    for one in examine(settings, to, has_state=has_state(settings)):
        found.append(one)
        if not as_json:
            typer.echo(f"{one.health:<8} {one.name:<18} {one.told}")
    code = exit_code(found)
    if as_json:
        typer.echo(json_line({"exit_code": code, "findings": jsonable(found)}))
    return code
