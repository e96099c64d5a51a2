"""``zarrmill adopt``: take over a dataset that a target serves and this installation does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable
from infra.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.adopt import Adopted
    from flows.request import ReconvertRequest

__all__ = ["adopt_dataset", "adopt_everything"]


def adopt_dataset(request: ReconvertRequest, *, as_json: bool, verbose: bool) -> None:
    """Take over the dataset that the request names, and say what comes next."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.adopt import adopt

    adopted = adopt(settings, request)
    if as_json:
        typer.echo(json_line(jsonable(adopted)))
        return
    for line in _lines(adopted):
        typer.echo(line)


def adopt_everything(request: ReconvertRequest, *, as_json: bool, verbose: bool) -> None:
    """Take over every dataset of the target's catalog whose source lies below the request's."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.adopt import adopt_all

    adopted, skipped = adopt_all(settings, request)
    if as_json:
        typer.echo(json_line({"adopted": jsonable(adopted), "skipped": jsonable(skipped)}))
        return
    for one in adopted:
        for line in _lines(one):
            typer.echo(line)
    for left in skipped:
        typer.echo(f"{left.dataset_id}: not taken over: {left.why}")
    typer.echo(f"{plural(len(adopted), 'dataset')} taken over, {len(skipped):,} not.")


def _lines(adopted: Adopted) -> Iterator[str]:
    yield (
        f"{adopted.dataset_id} at {adopted.target}, which serves {plural(adopted.stores, 'store')}, is now made from "
        f"{adopted.source}."
    )
    yield (
        f"  {plural(adopted.trusted, 'store')} carried as they are; {plural(adopted.to_convert, 'recording')} for the next "
        f"convert; {plural(adopted.failures, 'verdict')} and {adopted.attempts:,} counts of attempts taken over"
    )
    if adopted.gone or adopted.outside_raw:
        yield (
            f"  no index will name {plural(adopted.gone, 'store')} whose recording is not in the source, and "
            f"{adopted.outside_raw:,} outside the raw data; `zarrmill reconcile-objects {adopted.dataset_id}` lists what is left"
        )
    yield from (f"  {note}" for note in adopted.notes)
