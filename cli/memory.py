"""``zarrmill memory``: what conversions measured against what was projected for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.runtime import has_state, prepare, reading, target_url
from cli.status import check_id, unknown
from cli.wording import json_line, jsonable
from contract.errors import Refused
from infra.sizes import format_bytes
from infra.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

    from db.measurements import KindMeasured, MeasuredAttempt

__all__ = ["Look", "look", "memory_lines", "show_memory"]

_PLOT_ENDINGS = (".svg", ".png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was measured, in all or of one dataset or run. ``attempts`` is empty unless they were asked for."""

    target: str
    dataset_id: str | None
    run_number: int | None
    kinds: tuple[KindMeasured, ...]
    attempts: tuple[MeasuredAttempt, ...] = ()


def show_memory(
    dataset_id: str | None,
    *,
    target: str,
    run: int | None,
    output: str | None,
    timeline: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Print the table, and write a plot when one is asked for.

    Raises
    ------
    Refused
        The dataset or run is not known, nothing was measured that could be plotted, or the file cannot be written.
    """
    check_id(dataset_id)
    path = _plot_path(output, dataset_id, run=run, timeline=timeline)
    settings = prepare(verbose=verbose, as_json=as_json)
    url = target_url(target, settings)
    if not has_state(settings):
        if dataset_id is not None:
            raise unknown(dataset_id, url)
        found = Look(target=url, dataset_id=None, run_number=None, kinds=())
    else:
        with reading(settings) as connection:
            found = look(
                connection, target=url, dataset_id=dataset_id, run=run, last_run=timeline, attempts=path is not None
            )
    if path is not None:
        _plot(found, path, timeline=timeline)
    if as_json:
        said = {"target": found.target, "dataset_id": found.dataset_id, "run_number": found.run_number}
        typer.echo(json_line({**said, "kinds": jsonable(found.kinds), "plot": None if path is None else str(path)}))
        return
    for line in memory_lines(found):
        typer.echo(line)
    if path is not None:
        typer.echo(f"The plot is in {path}.")


def _plot_path(output: str | None, dataset_id: str | None, *, run: int | None, timeline: bool) -> Path | None:
    if dataset_id is None and (run is not None or timeline):
        raise Refused("--run and --timeline are about one dataset: name its id, such as xx000001")
    if output is None:
        if timeline:
            raise Refused("--timeline is a plot: name its file with -o, such as -o timeline.png")
        return None
    path = Path(output)
    if path.suffix.lower() not in _PLOT_ENDINGS:
        raise Refused(f"-o {output}: a plot's file ends in {' or '.join(_PLOT_ENDINGS)}")
    return path


def look(
    c: Connection,
    *,
    target: str,
    dataset_id: str | None,
    run: int | None,
    last_run: bool = False,
    attempts: bool = False,
) -> Look:
    """What was measured at this target, of one dataset or one of its runs where they are named.

    Raises
    ------
    Refused
        The dataset or the run is not known.
    """
    from db.datasets import find
    from db.measurements import kinds_measured, measured_attempts
    from db.runs import find_run, last_runs

    dataset = made = None
    if dataset_id is not None:
        dataset = find(c, dataset_id=dataset_id, target=target)
        if dataset is None:
            raise unknown(dataset_id, target)
        if run is not None:
            made = find_run(c, dataset=dataset, number=run)
        elif last_run:
            made = next((record.run for record in last_runs(c, dataset=dataset, limit=1)), None)
        if made is None and (run is not None or last_run):
            raise Refused(f"{dataset_id} has no run {run}" if run is not None else f"{dataset_id} was never converted")
    return Look(
        target=target,
        dataset_id=dataset_id,
        run_number=None if made is None else made.number,
        kinds=kinds_measured(c, target=target, dataset=dataset, run=made),
        attempts=measured_attempts(c, target=target, dataset=dataset, run=made) if attempts else (),
    )


def memory_lines(found: Look) -> Iterator[str]:
    """The table for people."""
    if not found.kinds:
        yield f"No conversion{_whose(found)} at {found.target} was measured yet."
        return
    count = sum(kind.attempts for kind in found.kinds)
    yield f"Measured memory as a part of what was projected, {plural(count, 'conversion')}{_whose(found)} at {found.target}"
    yield ""
    rows = [("format", "route", "n", "median", "p99", "worst", "worst recording"), *map(_row, found.kinds)]
    yield from _aligned(rows)


def _row(kind: KindMeasured) -> tuple[str, ...]:
    worst = (
        f"{kind.worst_path} ({format_bytes(kind.worst_measured_bytes)} of {format_bytes(kind.worst_projected_bytes)})"
    )
    ratios = (f"{ratio:.2f}" for ratio in (kind.median_ratio, kind.p99_ratio, kind.worst_ratio))
    return (kind.format, kind.route.replace("_", " "), f"{kind.attempts:,}", *ratios, worst)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Rows in columns: words to the left, the four figures to the right, the last cell as it is."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  ".join((*cells, row[-1]))


def _whose(found: Look) -> str:
    if found.dataset_id is None:
        return ""
    return f" of {found.dataset_id}" + ("" if found.run_number is None else f", run {found.run_number},")


def _plot(found: Look, path: Path, *, timeline: bool) -> None:
    from tasks.plots.figures import scatter_figure, timeline_figure

    measured = [one for one in found.attempts if one.measured_bytes]
    if not timeline:
        measured = [one for one in measured if one.outcome == "done" or one.reason == "memory_budget"]
    if not measured:
        raise Refused(f"nothing{_whose(found)} was measured yet, so there is nothing to plot")
    title = f"{found.dataset_id or found.target}" + ("" if found.run_number is None else f", run {found.run_number}")
    figure = timeline_figure(found.attempts, title) if timeline else scatter_figure(measured, title)
    try:
        figure.savefig(path, format=path.suffix.lower().lstrip("."))
    except OSError as error:
        raise Refused(f"-o {path}: the file cannot be written: {error.strerror or error}") from error
