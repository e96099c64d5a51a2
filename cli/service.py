"""``zarrmill runner`` and ``zarrmill trigger``: who carries out what is asked, and who asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from cli.called import program
from cli.operate import operator_of
from cli.runtime import prepare, target_url
from cli.wording import json_line, jsonable
from contract.errors import Refused
from flows.stop import StopSignal, listening
from infra.home import Home
from infra.standing import is_up

if TYPE_CHECKING:
    from cli.options import Mode
    from infra.settings import Settings

__all__ = ["run_service", "trigger_dataset"]


def run_service(*, datasets_at_a_time: int | None, verbose: bool) -> None:
    """Be the runner until SIGTERM or SIGINT.

    Raises
    ------
    Refused
        There is no Prefect for good, or the database is only there for the length of a command.
    """
    settings = prepare(verbose=verbose)
    import prefect.main  # noqa: F401 - it puts handlers of its own in the place of those it finds

    from infra.telemetry import set_up_logging

    set_up_logging(verbose=True, json=False, secrets=settings.secret_values(), alone=True)
    stop = StopSignal()
    from flows.preview import opened_database
    from flows.runner import Runner

    with listening(stop), opened_database(settings) as (engine, _url):
        at_a_time = datasets_at_a_time or settings.datasets_at_a_time
        Runner(settings, engine, datasets_at_a_time=at_a_time, stop=stop).run()


def trigger_dataset(
    dataset: str,
    *,
    mode: Mode,
    commit: str | None,
    target: str | None,
    by: str | None,
    why: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Put a request into the state and say what became of it.

    Raises
    ------
    Refused
        The dataset is not known here, or mode or commit cannot be used.
    """
    settings = prepare(verbose=verbose, as_json=as_json)
    from cli.runtime import has_state
    from flows.asking import ask_as_operator
    from flows.preview import opened_database

    if not has_state(settings):
        raise Refused(f"there is no state here, so no dataset either; {program()} convert SOURCE makes the first")
    url = None if target is None else target_url(target, settings)
    with opened_database(settings) as (engine, _url):
        answer = ask_as_operator(engine, dataset, operator_of(by, why), mode=mode, commit=commit, target=url)
    held = [told for told in (_nobody_here(settings), answer.held) if told is not None]
    answer = replace(answer, held="; ".join(held) or None)
    if as_json:
        typer.echo(json_line(jsonable(answer)))
        return
    typer.echo(answer.sentence)
    for told in held:
        typer.echo(told)


def _nobody_here(settings: Settings) -> str | None:
    """That nothing takes requests up, where that is certain: a database of another place may have its runner there."""
    if settings.database_url is not None or is_up(Home(settings.home)):
        return None
    return f"the service is not up here, so nothing takes it up now; `{program()} up` does"
