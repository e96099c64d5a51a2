"""The flows that run by the clock: each opens the database of the settings, does one thing, and says what it did."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from prefect import flow
from prefect.states import Completed

from infra.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prefect.client.schemas.objects import State
    from prefect.flows import Flow
    from sqlalchemy import Engine

    from infra.settings import Settings

__all__ = ["FLOWS", "publish_catalog", "reconcile", "upkeep", "verify_sweep", "weekly_report"]


@contextmanager
def _opened() -> Iterator[tuple[Settings, Engine]]:
    from flows.preview import opened_database

    settings = load_settings()
    with opened_database(settings) as (engine, _url):
        yield settings, engine


@flow(name="upkeep", persist_result=False)
def upkeep() -> State[Any]:
    """End what was killed, deliver callbacks, remove scratch and old history, look for alarms."""
    from flows.upkeep import keep_up

    with _opened() as (settings, engine):
        return Completed(message=keep_up(settings, engine).sentence)


@flow(name="reconcile", persist_result=False)
def reconcile() -> State[Any]:
    """Ask for what each dataset needs, and say why."""
    from flows.reconcile import reconcile as ask_for_needs

    with _opened() as (settings, engine):
        return Completed(message=ask_for_needs(settings, engine).line())


@flow(name="verify_sweep", persist_result=False)
def verify_sweep() -> State[Any]:
    """Compare what is served with its source: what somebody asked for, and what was published since the last look."""
    from flows.verify_requested import sweep

    with _opened() as (settings, engine):
        return Completed(message=sweep(settings, engine))


@flow(name="publish_catalog", persist_result=False)
def publish_catalog(target: str | None = None) -> State[Any]:
    """Bring the catalog of a target, or of every one, up to date."""
    from flows.catalogs import publish_catalogs

    with _opened() as (settings, engine):
        return Completed(message=publish_catalogs(settings, engine, target=target))


@flow(name="weekly_report", persist_result=False)
def weekly_report() -> State[Any]:
    """Say how the archive stands, whether or not anything is wrong."""
    from flows.weekly import report

    with _opened() as (settings, engine):
        return Completed(message=report(settings, engine))


FLOWS: Final[tuple[Flow[..., Any], ...]] = (reconcile, verify_sweep, publish_catalog, upkeep, weekly_report)
"""Every flow that has a schedule."""
