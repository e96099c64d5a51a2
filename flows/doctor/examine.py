"""The doctor's rounds: every line about the machine, what it speaks with, and the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from db.datasets import list_datasets
from flows.doctor.findings import Finding, alarm, healthy
from flows.doctor.machine import examine_machine
from flows.doctor.services import examine_state, tables
from flows.doctor.standing import examine_services
from flows.doctor.target import examine_target
from infra.database import engine
from infra.services import database
from infra.storage import open_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["examine"]


def examine(settings: Settings, target: str, *, has_state: bool) -> Iterator[Finding]:
    """Look at everything, a finding at a time. Writes nothing but a small object that it removes.

    ``has_state`` is whether there is any state to look at; what is not there yet is not an alarm.
    """
    yield from examine_machine(settings)
    said_open: bool | None = None
    if has_state:
        try:
            with database(settings) as url:
                there = tables(url)
                yield there
                if there.health == "healthy":
                    made = engine(url)
                    try:
                        with made.connect() as c:
                            yield from examine_state(c)
                            known = list_datasets(c, target=open_target(target, settings).url)
                            said_open = any(one.anonymous for one in known) if known else None
                    finally:
                        made.dispose()
        except ZarrmillError as error:
            yield alarm("database", error.sentence)
    else:
        yield healthy("database", "there is no state yet; the first command makes it")
    yield from examine_services(settings)
    yield from examine_target(settings, target, said_open=said_open)
