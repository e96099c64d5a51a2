"""``zarrmill adopt``: take over a dataset that a target serves and this installation does not know."""

from __future__ import annotations

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable, plural

__all__ = ["adopt_dataset"]


def adopt_dataset(dataset_id: str, source: str, *, target: str, as_json: bool, verbose: bool) -> None:
    """Take it over, and say what comes next."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.adopt import adopt

    adopted = adopt(settings, dataset_id=dataset_id, source=source, target=target)
    if as_json:
        typer.echo(json_line(jsonable(adopted)))
        return
    typer.echo(
        f"{adopted.dataset_id} at {adopted.target}, which serves {plural(adopted.stores, 'store')}, is now made from "
        f"{adopted.source}. The next convert makes every recording anew and replaces what is served as it goes."
    )
