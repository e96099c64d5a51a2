"""``zarrmill drain``: let workers take nothing new, as every flow sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.called import program
from cli.operate import operator_of
from cli.runtime import has_state, prepare, reading
from cli.wording import json_line, jsonable
from contract.errors import Refused
from contract.times import utc_stamp

if TYPE_CHECKING:
    from db.drains import Drain

__all__ = ["drain_line", "drain_worker"]


def drain_worker(worker: str | None, *, grace_s: float | None, undo: bool, as_json: bool, verbose: bool) -> None:
    """Drain a worker or all of them, or end that; print what is drained now.

    Raises
    ------
    Refused
        There is no state here, or no worker of this name was ever heard of.
    """
    from db import drains, operators

    settings = prepare(verbose=verbose, as_json=as_json)
    if not has_state(settings):
        raise Refused(f"there is no state here, so no worker either; {program()} convert SOURCE makes the first")
    with reading(settings) as c:
        if undo:
            ended = drains.undo(c, worker=worker)
        else:
            if worker is not None and not drains.seen(c, worker=worker):
                raise Refused(
                    f"no worker {worker!r} has been heard of; name a host, or a worker as {program()} why shows it, or none for all"
                )
            grace = settings.stop_grace_s if grace_s is None else grace_s
            drains.ask(c, worker=worker or drains.EVERY_WORKER, grace_s=grace, why="asked for")
            ended = 0
        said = {"worker": worker, "grace_s": grace_s, "undo": undo}
        verb, counts = ("drain undo", {"ended": ended}) if undo else ("drain", {"drains": 1})
        operators.note(c, acted_by=operator_of(None).name, verb=verb, executed=True, parameters=said, counts=counts)
        c.commit()
        now = drains.current(c)
    if as_json:
        typer.echo(json_line({"drains": [jsonable(each) for each in now], "ended": ended}))
        return
    if undo:
        typer.echo(f"{ended} no longer drained" if ended else "nothing of that was drained")
    for line in map(drain_line, now):
        typer.echo(line)


def drain_line(drain: Drain) -> str:
    """One drain for people."""
    from db.drains import EVERY_WORKER

    who = "every worker" if drain.worker == EVERY_WORKER else f"the worker {drain.worker}"
    left_s = drain.grace_s - drain.since_s
    rest = f"what runs there has {left_s:.0f} s to finish" if left_s > 0 else "what ran there was let go"
    why = f" ({drain.why})" if drain.why else ""
    return f"{who} takes nothing new since {utc_stamp(drain.asked_at)}{why}; {rest}"
