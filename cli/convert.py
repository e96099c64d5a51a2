"""``zarrmill convert``: run, show, sum up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.progress import open_progress
from cli.runtime import prepare
from cli.summary import exit_code, summary_lines, summary_object
from cli.wording import json_line
from flows.request import StageChanged, StopSignal
from flows.stop import listening

if TYPE_CHECKING:
    from flows.request import ReconvertRequest

__all__ = ["convert_dataset"]


def convert_dataset(request: ReconvertRequest, *, strict: bool, as_json: bool, verbose: bool) -> int:
    """Convert and publish, show how it goes on stderr and the summary on stdout; the exit code.

    The first SIGINT or SIGTERM finishes or releases what runs and publishes what is done, the second stops at once.
    """
    settings = prepare(verbose=verbose, as_json=as_json)
    stop = StopSignal()
    with listening(stop), open_progress(as_json=as_json) as progress:
        progress.show(StageChanged(stage="planning"))
        from flows.reconvert import reconvert

        summary = reconvert(settings, request, progress.show, stop)
    code = exit_code(summary, strict=strict)
    if as_json:
        typer.echo(json_line(summary_object(summary, code)))
    else:
        for line in summary_lines(summary, target=request.target):
            typer.echo(line)
    return code
