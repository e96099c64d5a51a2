"""What operators' commands do and print."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from cli.called import program
from cli.runtime import has_state, prepare
from cli.wording import json_line
from contract.errors import Refused
from contract.times import utc_stamp
from infra.processes import user_name
from infra.sizes import format_bytes
from infra.wording import bounded, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.operators import Action
    from flows.operations import EnginePreview, Operator
    from infra.settings import Settings

__all__ = [
    "Chosen",
    "approve_the_engine",
    "operator_of",
    "pause_them",
    "preview_the_engine",
    "publish_the_catalog",
    "requeue_them",
    "set_the_standing",
    "show_history",
    "upgrade_the_database",
    "withdraw_it",
]

_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What ``requeue`` was told: ids, states, codes, reasons, or everything."""

    datasets: tuple[str, ...]
    states: tuple[str, ...]
    codes: tuple[str, ...]
    reasons: tuple[str, ...]
    every: bool

    @property
    def names_nothing(self) -> bool:
        """Whether neither a dataset nor a condition was named."""
        return not (self.datasets or self.states or self.codes or self.reasons or self.every)


@contextmanager
def _opened(*, verbose: bool, as_json: bool) -> Iterator[tuple[Settings, Engine]]:
    """The settings and the state.

    Raises
    ------
    Refused
        There is no state here.
    """
    from flows.preview import opened_database

    settings = prepare(verbose=verbose, as_json=as_json)
    if not has_state(settings):
        raise Refused(f"there is no state here yet; {program()} register SOURCE or {program()} convert SOURCE makes it")
    with opened_database(settings) as (engine, _url):
        yield settings, engine


def operator_of(by: str | None, why: str | None = None) -> Operator:
    """Who acts: the name given, else that of the user whose process this is."""
    from flows.operations import Operator

    if by is None:
        by = user_name()
    if not by.strip() or not by.isprintable():
        raise Refused("--by must name somebody")
    return Operator(name=by.strip(), why=why)


def _known(settings: Settings, engine: Engine, dataset_id: str, target: str) -> Dataset:
    from flows.trigger import known_dataset

    return known_dataset(settings, engine, dataset_id=dataset_id, target=target)


def _keys_at(settings: Settings, engine: Engine, target: str) -> frozenset[int]:
    """Every dataset at a target."""
    from db.datasets import list_datasets
    from infra.storage import open_target

    with engine.connect() as c:
        return frozenset(one.pk for one in list_datasets(c, target=open_target(target, settings).url))


def _say(as_json: bool, value: dict[str, Any], lines: list[str]) -> None:
    if as_json:
        typer.echo(json_line(value))
        return
    for line in lines:
        typer.echo(line)


def requeue_them(
    chosen: Chosen, *, target: str, execute: bool, by: str | None, why: str | None, as_json: bool, verbose: bool
) -> None:
    """Make recordings due again, or name what would be."""
    from db.requeue import Chosen as ChosenRows
    from flows.operations import requeue_recordings

    if chosen.names_nothing:
        raise Refused("name what is to be requeued: DATASET, --status, --code, --reason, or --all")
    with _opened(verbose=verbose, as_json=as_json) as (settings, engine):
        if chosen.datasets:
            keys = frozenset(_known(settings, engine, one, target).pk for one in chosen.datasets)
        else:
            keys = _keys_at(settings, engine, target)
        rows = ChosenRows(
            datasets=keys,
            states=frozenset(chosen.states),
            codes=frozenset(chosen.codes),
            reasons=frozenset(chosen.reasons),
        )
        found = requeue_recordings(engine, rows, operator_of(by, why), execute=execute)
    verb = "requeued" if execute else "would requeue"
    shown = [f"{verb} {one.dataset_id} ({one.state}): {plural(one.recordings, 'recording')}" for one in found]
    total = f"{plural(len(found), 'dataset')}, {plural(sum(one.recordings for one in found), 'recording')}"
    end = f"{verb} {total}" if execute or not found else f"{verb} {total}; do it with --execute"
    _say(
        as_json,
        {"requeue": found, "executed": execute},
        [*bounded(shown, _SHOWN), end if found else "nothing to requeue"],
    )


def pause_them(
    dataset_id: str | None,
    *,
    target: str,
    paused: bool,
    execute: bool,
    by: str | None,
    why: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Pause or resume a dataset or everything, or say whether that would change anything."""
    from db import pauses
    from flows.operations import set_pause

    with _opened(verbose=verbose, as_json=as_json) as (settings, engine):
        dataset = None if dataset_id is None else _known(settings, engine, dataset_id, target)
        changes = set_pause(engine, dataset, operator_of(by, why), paused=paused, execute=execute)
        with engine.connect() as c:
            now = pauses.current(c)
    what, state = dataset_id or "everything", "paused" if paused else "resumed"
    if not changes:
        told = f"{what} {'is paused already' if paused else 'is not paused'}"
    else:
        told = f"{what} is {state}" if execute else f"{what} would be {state}; do it with --execute"
    standing = [
        f"paused since {utc_stamp(one.paused_at)} by {one.paused_by}: {one.dataset_id or 'everything'}"
        + (f" ({one.why})" if one.why else "")
        for one in now
    ]
    _say(as_json, {"changed": changes, "executed": execute, "paused": now}, [told, *bounded(standing, _SHOWN)])


def publish_the_catalog(
    *, target: str, execute: bool, by: str | None, why: str | None, as_json: bool, verbose: bool
) -> None:
    """Publish the catalog, or say what it would gain and lose."""
    from flows.operations import publish_catalog_now

    with _opened(verbose=verbose, as_json=as_json) as (settings, engine):
        done = publish_catalog_now(settings, engine, operator_of(by, why), target=target, execute=execute)
    lines = [f"lists {one}" for one in done.added] + [f"no longer lists {one}" for one in done.removed]
    end = f"the catalog of {done.target} lists {plural(done.count, 'dataset')}"
    if not execute:
        end = f"{end.replace(' lists ', ' would list ')}; publish it with --execute"
    elif not done.changed:
        end += "; it did already"
    _say(as_json, {"catalog": done, "executed": execute}, [*bounded(lines, _SHOWN), end])


def show_history(dataset_id: str | None, *, limit: int, as_json: bool, verbose: bool) -> None:
    """Print the newest actions."""
    from db import operators

    with _opened(verbose=verbose, as_json=as_json) as (_settings, engine), engine.connect() as c:
        actions = operators.last_actions(c, subject=dataset_id, limit=limit)
    _say(as_json, {"history": actions}, [_told(one) for one in actions] or ["nobody did anything yet"])


def _told(action: Action) -> str:
    what = action.verb if action.executed else f"{action.verb} (only shown)"
    subject = f" {action.subject}" if action.subject else ""
    counts = ", ".join(f"{name} {value}" for name, value in action.counts.items())
    why = f": {action.why}" if action.why else ""
    return (
        f"{utc_stamp(action.acted_at)}  {action.acted_by}  {what}{subject}" + (f"  [{counts}]" if counts else "") + why
    )


def withdraw_it(
    dataset_id: str, *, target: str, execute: bool, by: str | None, why: str | None, as_json: bool, verbose: bool
) -> None:
    """Withdraw a dataset, or say what would go."""
    from flows.withdraw import withdraw

    with _opened(verbose=verbose, as_json=as_json) as (settings, engine):
        dataset = _known(settings, engine, dataset_id, target)
        done = withdraw(settings, engine, dataset, operator_of(by, why), execute=execute)
    size = f"{plural(done.stores, 'store')}, {plural(done.objects, 'object')} of {format_bytes(done.size_bytes)}"
    if execute:
        end = f"{dataset_id} is withdrawn from {done.target}: {size} removed"
    else:
        end = f"{dataset_id} would be withdrawn from {done.target}: {size}; do it with --execute"
    strays = [f"left, because it is no part of a dataset: {key}" for key in done.strays]
    _say(as_json, {"withdraw": done}, [*bounded(strays, _SHOWN), end])


def set_the_standing(
    dataset_id: str,
    *,
    target: str,
    visibility: str | None,
    active: bool | None,
    by: str | None,
    why: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Set how a dataset stands, and say it."""
    from flows.operations import set_standing

    if visibility is None and active is None:
        raise Refused("say what is to be set: --visibility public|private, --active yes|no")
    with _opened(verbose=verbose, as_json=as_json) as (settings, engine):
        dataset = _known(settings, engine, dataset_id, target)
        done = set_standing(engine, dataset, operator_of(by, why), visibility=visibility, active=active)
    value = {"dataset_id": done.dataset_id, "target": done.target, "visibility": done.visibility, "active": done.active}
    part = "takes part" if done.active else "takes no part"
    line = f"{done.dataset_id} at {done.target} is {done.visibility} and {part}; the catalog follows with its next publication"
    _say(as_json, value, [line])


def preview_the_engine(*, as_json: bool, verbose: bool) -> None:
    """Print what is stale and what it would take."""
    from flows.operations import preview_engine

    with _opened(verbose=verbose, as_json=as_json) as (_settings, engine):
        seen = preview_engine(engine)
    _say(as_json, {"engine": seen}, list(_engine_lines(seen)))


def _engine_lines(seen: EnginePreview) -> Iterator[str]:
    cost = seen.cost
    yield f"now: engine {seen.versions.engine}, biosigIO {seen.versions.biosigio}, options {seen.versions.options[:12]}"
    for column, count in sorted(seen.stale.items()):
        word = "not approved" if column in seen.unapproved else "approved"
        yield f"{plural(count, 'dataset')} made with another {column} ({word})"
    if not cost.datasets:
        yield "everything was made with the present converter"
        return
    yield (
        f"making them anew: {plural(cost.recordings, 'recording')}, {format_bytes(cost.size_bytes)} to read, "
        f"{format_bytes(cost.largest_bytes)} of memory for the largest, {cost.hours:.1f} hours one after another"
    )
    if seen.held:
        yield "they wait for somebody's word: engine approve --execute"


def approve_the_engine(
    on: str | None, *, execute: bool, by: str | None, why: str | None, as_json: bool, verbose: bool
) -> None:
    """Approve, or say what would be approved."""
    from flows.operations import approve_engine

    columns = [part.strip() for part in (on or "").split(",") if part.strip()]
    with _opened(verbose=verbose, as_json=as_json) as (_settings, engine):
        seen = approve_engine(engine, operator_of(by, why), columns=columns, execute=execute)
    if execute:
        end = "approved; the next reconciliation asks for all of them" if seen.approved else "it was approved already"
    else:
        end = f"would approve {', '.join(columns) or 'options, engine'}; do it with --execute"
    _say(as_json, {"engine": seen, "executed": execute}, [*_engine_lines(seen), end])


def upgrade_the_database(*, execute: bool, by: str | None, as_json: bool, verbose: bool) -> None:
    """Upgrade the tables, or say from where to where that would go."""
    from db import migrate, operators
    from infra.database import engine as open_engine
    from infra.services import database

    settings = prepare(verbose=verbose, as_json=as_json)
    operator = operator_of(by)
    with database(settings) as url:
        before = migrate.current(url)
        if execute:
            migrate.upgrade(url)
            engine = open_engine(url)
            try:
                with engine.begin() as c:
                    parameters = {"from": before, "to": migrate.HEAD}
                    operators.note(c, acted_by=operator.name, verb="db upgrade", executed=True, parameters=parameters)
            finally:
                engine.dispose()
    if before == migrate.HEAD:
        line = f"the tables are those of this version ({migrate.HEAD})"
    else:
        was = before or "nothing"
        line = f"the tables were brought from {was} to {migrate.HEAD}"
        if not execute:
            line = f"the tables would be brought from {was} to {migrate.HEAD}; do it with --execute"
    _say(as_json, {"from": before, "to": migrate.HEAD, "executed": execute}, [line])
