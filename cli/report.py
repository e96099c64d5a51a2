"""``zarrmill report``: the report of a run, made again from what Postgres knows now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, AsJson, DatasetArgument, Target, Verbose
from contract.errors import Refused

__all__ = ["report", "write_report"]


def report(
    dataset: DatasetArgument,
    *,
    run: Annotated[
        int | None, typer.Option("--run", min=1, metavar="N", help="One run of the dataset. Default: its last one.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file it is written to. Default: DATASET-run-N.html."),
    ] = None,
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write the report of a run as one HTML file.

    What was asked, how it ended and what changed, failures, memory, time and cost. Each run also leaves it at the target.
    """
    with boundary(verbose=verbose, as_json=as_json):
        write_report(dataset, target=to, run=run, output=output, as_json=as_json, verbose=verbose)


def write_report(
    dataset_id: str, *, target: str, run: int | None, output: str | None, as_json: bool, verbose: bool
) -> None:
    """Make the report of a run and write it.

    Raises
    ------
    Refused
        The dataset or the run is not known, or the file cannot be written.
    """
    from cli.runtime import has_state, prepare, reading, target_url
    from cli.status import check_id, unknown
    from cli.wording import json_line
    from infra.sizes import format_bytes

    check_id(dataset_id)
    settings = prepare(verbose=verbose, as_json=as_json)
    url = target_url(target, settings)
    if not has_state(settings):
        raise unknown(dataset_id, url)
    from db.datasets import find
    from db.run_list import head_of
    from db.run_reports import of_run
    from flows.run_report import made_report

    with reading(settings) as c:
        dataset = find(c, dataset_id=dataset_id, target=url)
        if dataset is None:
            raise unknown(dataset_id, url)
        head = head_of(c, dataset_pk=dataset.pk, number=run)
        page = None if head is None else made_report(c, run_id=head.id)
        if head is None or page is None:
            raise Refused(f"{dataset_id} was never converted" if run is None else f"{dataset_id} has no run {run}")
        left = of_run(c, run_id=head.id)
    path = _written(Path(output or f"{dataset_id}-run-{head.number}.html"), page)
    if as_json:
        said = {
            "dataset_id": dataset_id,
            "target": url,
            "run_number": head.number,
            "run_id": head.id,
            "state": head.state,
        }
        typer.echo(json_line({**said, "report": str(path), "size_bytes": len(page), "left": left}))
        return
    typer.echo(f"The report of {dataset_id}, run {head.number}, is in {path} ({format_bytes(len(page))}).")
    if left is not None and left.trouble is not None:
        typer.echo(f"The run itself could not leave it at the target: {left.trouble}")


def _written(path: Path, page: bytes) -> Path:
    try:
        path.write_bytes(page)
    except OSError as error:
        raise Refused(f"-o {path}: the file cannot be written: {error.strerror or error}") from error
    return path
