"""``zarrmill register``: datasets made known one by one, or as a catalog API lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from cli.operate import operator_of
from cli.runtime import prepare
from cli.wording import json_line
from contract.errors import Refused
from contract.layout import is_dataset_id
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from flows.operations import Operator
    from flows.registration import Imported, Registered
    from infra.settings import Settings

__all__ = ["Registration", "register_them"]

_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What ``register`` was told."""

    sources: tuple[str, ...]
    target: str
    dataset_id: str | None
    annex: str | None
    visibility: str | None
    upstream: str | None


def register_them(
    given: Registration,
    *,
    catalog: str | None,
    execute: bool,
    by: str | None,
    why: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Register, and say what is known now.

    Raises
    ------
    Refused
        Options do not go together, or a source cannot be used.
    """
    _check(given, catalog)
    from flows.preview import opened_database

    settings = prepare(verbose=verbose, as_json=as_json)
    with opened_database(settings) as (engine, _url):
        if catalog is not None:
            imported = _import(settings, engine, given, operator_of(by, why), catalog, execute=execute)
            lines = list(_imported_lines(imported)) if not as_json else [json_line({"imported": imported})]
        else:
            done = [_register(settings, engine, given, one, operator_of(by, why)) for one in given.sources]
            lines = [line for one in done for line in _lines(one)] if not as_json else [json_line({"registered": done})]
    for line in lines:
        typer.echo(line)


def _check(given: Registration, catalog: str | None) -> None:
    if given.dataset_id is not None and not is_dataset_id(given.dataset_id):
        raise Refused(f"--dataset-id {given.dataset_id!r} is none: two small letters and six digits, such as xx000001")
    if len(given.sources) > 1 and (given.dataset_id is not None or catalog is not None):
        raise Refused("--dataset-id and --catalog go with one SOURCE")
    if catalog is not None and (given.dataset_id or given.visibility or given.upstream):
        raise Refused("--catalog tells ids and provenance itself: leave --dataset-id, --visibility and --upstream away")


def _register(settings: Settings, engine: Engine, given: Registration, source: str, operator: Operator) -> Registered:
    from flows.registration import register_source
    from flows.request import ReconvertRequest

    request = ReconvertRequest(source=source, target=given.target, dataset_id=given.dataset_id, annex=given.annex)
    return register_source(settings, engine, request, operator, visibility=given.visibility, upstream=given.upstream)


def _import(
    settings: Settings, engine: Engine, given: Registration, operator: Operator, catalog: str, *, execute: bool
) -> Imported:
    from flows.registration import import_catalog
    from flows.request import ReconvertRequest

    sources = ReconvertRequest(source=given.sources[0], target=given.target, annex=given.annex)
    return import_catalog(settings, engine, sources, operator, catalog=catalog, execute=execute)


def _lines(one: Registered) -> Iterator[str]:
    dataset = one.dataset
    word = "registered" if one.is_new else "known already"
    yield f"{dataset.dataset_id} at {dataset.target}: {word}, {dataset.visibility}, {plural(one.discovered, 'recording')} in {dataset.source}"
    yield from (f"  {note}" for note in one.notes)


def _imported_lines(done: Imported) -> Iterator[str]:
    verb = "registered" if done.executed else "would register"
    yield from bounded([f"{verb} {one}" for one in done.added], _SHOWN)
    yield from bounded([f"no longer listed, takes no part: {one}" for one in done.unlisted], _SHOWN)
    yield from bounded([f"listed, and takes no part here: {one}" for one in done.relisted], _SHOWN)
    yield from bounded([f"refused {one}: {sentence}" for one, sentence in done.refused], _SHOWN)
    yield from bounded([f"no dataset's id: {one}" for one in done.rejected], _SHOWN)
    end = f"{plural(done.listed, 'dataset')} listed: {len(done.added):,} {verb}, {done.known:,} known already"
    yield end if done.executed else f"{end}; do it with --execute"
