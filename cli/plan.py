"""``zarrmill plan``: what the next convert would do, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable
from contract.codes import FAILURE_SENTENCES, PENDING_SENTENCES, WHY_DUE_SENTENCES
from infra.sizes import format_bytes
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.request import Preview, PreviewRow, ReconvertRequest

__all__ = ["preview_lines", "preview_object", "show_plan"]

_ROWS_SHOWN = 200
_CHANGED_SHOWN = 3
_TITLES = {
    "convert": "to convert",
    "fail": "cannot be converted",
    "keep_failed": "failed before, and nothing has changed",
    "wait": "waiting for their next attempt",
}
_SENTENCES: dict[str, str] = {
    **{str(why): sentence for why, sentence in WHY_DUE_SENTENCES.items()},
    **{str(code): sentence for code, sentence in FAILURE_SENTENCES.items()},
    **{str(reason): sentence for reason, sentence in PENDING_SENTENCES.items()},
}


def show_plan(request: ReconvertRequest, *, as_json: bool, verbose: bool) -> None:
    """Print the plan. Nothing is written, and neither Prefect nor Dask starts."""
    settings = prepare(verbose=verbose, as_json=as_json)
    from flows.reconvert import preview

    planned = preview(settings, request)
    if as_json:
        typer.echo(json_line(preview_object(planned)))
        return
    for line in preview_lines(planned):
        typer.echo(line)


def preview_object(planned: Preview) -> dict[str, object]:
    """The plan as one JSON object: its fields, and the totals of what is to be converted."""
    rows = [row for row in planned.rows if row.action == "convert"]
    totals = {
        "actions": dict(sorted(Counter(row.action for row in planned.rows).items())),
        "convert_bytes": sum(row.size_bytes for row in rows),
        "projected_bytes": sum(row.projected_bytes or 0 for row in rows),
        "largest_projected_bytes": max((row.projected_bytes or 0 for row in rows), default=0),
        "scratch_bytes": sum(row.scratch_bytes or 0 for row in rows),
    }
    return {**jsonable(planned), "totals": totals}


def preview_lines(planned: Preview) -> Iterator[str]:
    """The plan for people."""
    new = " (new)" if planned.is_new else ""
    yield f"{planned.dataset_id}{new}: {planned.source} at {planned.source_commit} → {planned.target}"
    counts = Counter(row.action for row in planned.rows)
    yield (
        f"{plural(len(planned.rows), 'recording')} discovered: {counts['convert']:,} to convert, "
        f"{counts['carry']:,} carried forward, {counts['wait']:,} waiting, {counts['fail'] + counts['keep_failed']:,} failed; "
        f"{len(planned.dropped):,} dropped"
    )
    yield from planned.notes
    for action, title in _TITLES.items():
        rows = [row for row in planned.rows if row.action == action]
        if rows:
            yield ""
            yield title
            yield from bounded([f"  {line}" for line in map(_row_line, rows)], _ROWS_SHOWN)
    if planned.dropped:
        yield ""
        yield "dropped: no longer in the source"
        yield from bounded([f"  {path}" for path in planned.dropped], _ROWS_SHOWN)
    yield ""
    yield from _total(planned)


def _row_line(row: PreviewRow) -> str:
    if row.action != "convert":
        return row.path if row.why is None else f"{row.path}: {_SENTENCES.get(row.why, row.why)}"
    memory = f", projected {format_bytes(row.projected_bytes)} of memory" if row.projected_bytes is not None else ""
    more = len(row.changed) - _CHANGED_SHOWN
    changed = ", ".join(row.changed[:_CHANGED_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    if row.copy_of is not None:
        return f"{row.path}  {format_bytes(row.size_bytes)}  (renamed: copied from the store of {row.copy_of})"
    reason = f"{row.why}: {changed}" if changed else f"{row.why}"
    return f"{row.path}  {format_bytes(row.size_bytes)}{memory}  ({reason})"


def _total(planned: Preview) -> Iterator[str]:
    rows = [row for row in planned.rows if row.action == "convert"]
    if not rows:
        documents = (
            "and the documents are current" if planned.documents_current else "but the documents will be written"
        )
        yield f"Nothing to convert, {documents}."
        return
    projected = [row.projected_bytes for row in rows if row.projected_bytes is not None]
    memory = (
        f"; memory {format_bytes(max(projected))} for the largest, {format_bytes(sum(projected))} if all ran at once"
        if projected
        else ""
    )
    scratch = max((row.scratch_bytes or 0 for row in rows), default=0)
    yield from _rests_on(rows)
    yield (
        f"In total {format_bytes(sum(row.size_bytes for row in rows))} to read{memory}; "
        f"scratch {format_bytes(scratch)} for the largest."
    )


_BASES = {
    "formula": "the formula over the recordings' headers",
    "size": "a guess from the size of the files, whose header could not be read",
    "floor": "the floor for what nothing is known of",
}


def _rests_on(rows: list[PreviewRow]) -> Iterator[str]:
    """What the projected memory rests on, a line for each kind of recording."""
    counts = Counter((row.kind or "", row.basis or "", row.learnt_factor, row.learnt_attempts) for row in rows)
    for (kind, basis, factor, attempts), count in sorted(counts.items(), key=lambda each: each[0][:2]):
        rests = (
            _BASES.get(basis) or f"{factor or 0:.2f} times the formula, learnt from {plural(attempts or 0, 'attempt')}"
        )
        yield f"Memory of {plural(count, 'recording')} ({kind}) rests on {rests}."
