"""``zarrmill republish`` and ``zarrmill reconcile-objects``: what is served brought in order without converting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.runtime import prepare
from cli.wording import json_line, jsonable
from flows.request import StopSignal
from flows.stop import listening
from infra.sizes import format_bytes
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.held_work import Reconciled
    from flows.request import ProgressEvent
    from tasks.publish.objects import DifferentStore

__all__ = ["reconcile_dataset", "republish_dataset"]

_SHOWN = 50
_DIFFERENT = 3


def _quiet(_event: ProgressEvent) -> None:
    """Show nothing on the way: both commands say at the end what they did."""


def republish_dataset(dataset_id: str, *, target: str, as_json: bool, verbose: bool) -> None:
    """Bring provenance and documents up to date, and say of how many stores."""
    settings = prepare(verbose=verbose, as_json=as_json)
    stop = StopSignal()
    with listening(stop):
        from flows.held_work import republish

        done = republish(settings, dataset_id=dataset_id, target=target, on_event=_quiet, stop=stop)
    if as_json:
        typer.echo(json_line(jsonable(done)))
    else:
        roots = done.roots
        typer.echo(
            f"{dataset_id}: {plural(roots.written, 'store')} brought up to date, {roots.current:,} said it already; "
            f"{done.summary.stores:,} served, {done.summary.failures:,} failed, {done.summary.pending:,} pending"
        )
        for line in bounded([f"  not brought up to date: {zarr}" for zarr in roots.failed], _SHOWN):
            typer.echo(line)
    if done.roots.failed:
        raise typer.Exit(1)


def reconcile_dataset(dataset_id: str, *, target: str, execute: bool, as_json: bool, verbose: bool) -> None:
    """Say what differs, and mend it when asked to."""
    settings = prepare(verbose=verbose, as_json=as_json)
    stop = StopSignal()
    with listening(stop):
        from flows.held_work import reconcile_objects

        told = reconcile_objects(
            settings, dataset_id=dataset_id, target=target, execute=execute, on_event=_quiet, stop=stop
        )
    if as_json:
        typer.echo(json_line({**jsonable(told), "executed": told.summary is not None}))
        return
    for line in _lines(told):
        typer.echo(line)


def _lines(told: Reconciled) -> Iterator[str]:
    found = told.differences
    yield (
        f"{told.dataset_id} at {told.target}: {plural(found.objects, 'object')}, {format_bytes(found.size_bytes)}, "
        f"{plural(found.stores, 'store')}"
    )
    yield from bounded([f"  {_store_line(one)}" for one in found.different], _SHOWN)
    yield from bounded([f"  {zarr}: nothing names this store" for zarr in found.orphans], _SHOWN)
    yield from bounded([f"  {key}: no document and no part of a store; left alone" for key in found.strays], _SHOWN)
    if found.unknown:
        yield f"  {plural(len(found.unknown), 'store')} taken over, of which only the root was looked for"
    if found.none:
        yield "Everything stands as it should."
    elif told.summary is not None:
        yield (
            f"{plural(told.due, 'recording')} due again, {plural(told.removed_objects, 'object')} and "
            f"{plural(told.removed_stores, 'store')} removed. The next convert makes what is due."
        )
    elif found.different or found.orphans:
        yield "Nothing was changed. With --execute what is damaged is due again, and what nothing names is removed."


def _store_line(one: DifferentStore) -> str:
    parts = [
        f"{plural(len(names), 'object')} {what} ({', '.join(names[:_DIFFERENT])}{' …' if len(names) > _DIFFERENT else ''})"
        for what, names in (("missing", one.missing), ("with other bytes", one.mismatched), ("too many", one.extra))
        if names
    ]
    return f"{one.zarr}: {'; '.join(parts)}"
