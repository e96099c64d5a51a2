"""What ``zarrmill up`` keeps: every part of it, and whether it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.doctor.findings import Finding, unknown
from flows.doctor.services import examine_dask, examine_prefect
from infra.home import Home
from infra.standing import is_up, read_standing
from infra.standing_health import health_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Settings

__all__ = ["examine_services"]


def examine_services(settings: Settings) -> Iterator[Finding]:
    """Lines about Prefect, Dask and its workers: those of the service that stands in this home, else those of the settings."""
    home = Home(settings.home)
    if not (settings.home / "run").is_dir() or not is_up(home):
        yield examine_prefect(settings)
        yield from examine_dask(settings)
        return
    standing = read_standing(home)
    if standing is None:
        yield unknown("service", "it is being brought up; ask again")
        return
    parts = health_of(home, settings, standing)
    for one in parts:
        told = one.told if one.address is None else f"{one.address}: {one.told}"
        yield Finding(name=one.name, health=one.health, told=told)
    dask = standing.addresses.get("dask")
    if any(one.name == "dask-scheduler" and one.health == "healthy" for one in parts):
        yield from examine_dask(settings.model_copy(update={"dask_address": dask}))
