"""``zarrmill verify``: what is due for a comparison, and what comparisons found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable
from flows.stop import StopSignal, listening
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.sweep_request import DatasetSwept, SweepRequest

__all__ = ["verify_served"]

_SHOWN = 20
_FAILED, _UNJUDGED = 1, 3


def verify_served(request: SweepRequest, *, execute: bool, as_json: bool, verbose: bool) -> int:
    """Say what is due, or compare it and say what was found; the exit code."""
    from flows.preview import opened_database
    from flows.verify_due import due_for_sweep
    from flows.verify_sweep import verify_sweep

    settings = prepare(verbose=verbose, as_json=as_json)
    stop = StopSignal()
    with listening(stop), opened_database(settings) as (engine, _url):
        if not execute:
            for dataset, paths in due_for_sweep(settings, engine, request):
                if as_json:
                    typer.echo(json_line({"dataset_id": dataset.dataset_id, "target": dataset.target, "due": paths}))
                else:
                    typer.echo(f"{dataset.dataset_id} at {dataset.target}: {plural(len(paths), 'store')} to compare")
                    for line in bounded([f"  {path}" for path in paths], _SHOWN):
                        typer.echo(line)
            if not as_json:
                typer.echo("Nothing was compared, nor any object looked at; do it with --execute.")
            return 0
        swept = verify_sweep(settings, engine, request, on_dataset=lambda one: _tell(one, as_json=as_json), stop=stop)
    if not swept and not as_json:
        typer.echo("Every verdict stands, and what stands at the targets is as it was left; --all compares again.")
    if any(one.failed or one.status == "failed" for one in swept):
        return _FAILED
    return _UNJUDGED if any(one.status is None for one in swept) else 0


def _tell(swept: DatasetSwept, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_line(jsonable(swept)))
        return
    for line in _lines(swept):
        typer.echo(line)


def _lines(swept: DatasetSwept) -> Iterator[str]:
    counts = f"{swept.verified:,} verified, {swept.failed:,} failed, {swept.unverifiable:,} unverifiable"
    more = f", {swept.unjudged:,} without a verdict" if swept.unjudged else ""
    left = f", the objects of {plural(swept.as_left, 'store')} are as they were left" if swept.as_left else ""
    yield (
        f"{swept.dataset_id} at {swept.target}: {swept.status or 'no verdict'}; {counts}{more}; "
        f"{plural(len(swept.stores), 'store')} compared{left}"
    )
    if swept.trouble is not None:
        yield f"  no verdict, for {swept.trouble}"
    for example in swept.examples:
        assert isinstance(example, dict)
        yield f"  {example['path']}: {example['check']}: {example['detail']}"
    unverifiable = [
        f"  {one.path}: {one.why}" for one in swept.stores if one.status in {"unverifiable", None} and one.why
    ]
    yield from bounded(unverifiable, _SHOWN)
