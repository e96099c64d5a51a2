"""What this installation speaks with: Postgres, Prefect, Dask, whoever is told by callbacks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from contract.errors import Refused, ZarrmillError
from db.callbacks_waiting import waiting_callbacks
from db.clocks import clocks
from db.migrate import HEAD, current
from flows.doctor.findings import Finding, alarm, healthy, unknown
from infra.cluster import cluster
from infra.dask_security import is_loopback
from infra.prefect_server import answers
from infra.sizes import format_bytes
from infra.worker_questions import identify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client
    from sqlalchemy import Connection

    from infra.settings import Settings

__all__ = ["examine_dask", "examine_prefect", "examine_state", "tables"]

_CLOCK_S: Final = 5.0  # leases are a minute long and compared with the database's clock by each worker
_WAITING: Final = timedelta(hours=1)


def tables(url: str) -> Finding:
    """Whether the database has the tables of this version."""
    found = current(url)
    if found == HEAD:
        return healthy("database", f"it answers, with the tables of this version ({HEAD})")
    was = "no tables" if found is None else f"the tables of another version ({found})"
    return alarm("database", f"it has {was} and this version needs {HEAD}; run zarrmill init")


def examine_state(c: Connection) -> Iterator[Finding]:
    """Lines about what the database says."""
    yield _clock(c)
    yield _callbacks(c)


def _clock(c: Connection) -> Finding:
    before = datetime.now(UTC)
    seen = clocks(c)
    here = before + (datetime.now(UTC) - before) / 2
    off_s = (seen.database - here).total_seconds()
    set_s = (seen.zarrmill - seen.database).total_seconds()
    if abs(off_s) > _CLOCK_S:
        return alarm(
            "clocks", f"the database's clock is {off_s:+.1f} s off this machine's; set both by NTP, leases rest on them"
        )
    if abs(set_s) > _CLOCK_S:
        return alarm("clocks", f"zarrmill_now() is {set_s:+.0f} s off the database's own clock: somebody has set it")
    return healthy("clocks", f"the database's clock and this machine's are {abs(off_s):.1f} s apart")


def _callbacks(c: Connection) -> Finding:
    waiting = waiting_callbacks(c, older_than=_WAITING)
    if waiting.count == 0:
        return healthy("callbacks", "none has waited for an hour")
    why = f" ({waiting.last_error})" if waiting.last_error else ""
    return alarm(
        "callbacks",
        f"{waiting.count} were not delivered for over an hour{why}; see whether ZARRMILL_CALLBACK_URL answers",
    )


def examine_prefect(settings: Settings) -> Finding:
    """Whether Prefect answers."""
    if settings.prefect_api_url is None:
        return healthy("prefect", "one of our own is started when a command needs it")
    reason = answers(settings.prefect_api_url, timeout_s=10.0)
    if reason is not None:
        return alarm("prefect", f"{settings.prefect_api_url} does not answer ({reason}); start it")
    return healthy("prefect", f"{settings.prefect_api_url} answers")


def examine_dask(settings: Settings) -> Iterator[Finding]:
    """Lines about the scheduler and each of its workers."""
    if settings.dask_address is None:
        yield healthy("workers", "workers of our own are started when a command needs them")
        return
    try:
        with cluster(settings) as client:
            info: dict[str, dict[str, Any]] = client.scheduler_info(n_workers=-1).get("workers", {})
            yield _scheduler(settings.dask_address, len(info))
            for address in sorted(info):
                yield _worker(client, address, info[address])
    except ZarrmillError as error:
        yield alarm("scheduler", error.sentence)


def _scheduler(address: str, workers: int) -> Finding:
    where = urlsplit(address)
    how = "encrypted" if where.scheme == "tls" else "loopback" if is_loopback(where.hostname) else "a trusted network"
    told = f"{address} answers ({how}), workers: {workers}"
    return healthy("scheduler", told) if workers else alarm("scheduler", f"{told}; start some with zarrmill worker")


def _worker(client: Client, address: str, worker: dict[str, Any]) -> Finding:
    name = f"worker {address}"
    try:
        identity = identify(client, [address]).get(address)
    except Refused as error:
        return alarm(name, error.sentence)
    if identity is None:
        return unknown(name, "it does not say who it is")
    memory = worker["resources"].get("MEMORY")
    if memory is None:
        return alarm(name, f"{identity.host_name} declares no MEMORY and takes nothing; start it with zarrmill worker")
    told = (
        f"{identity.host_name}: {format_bytes(int(memory))} for conversions of a limit of "
        f"{format_bytes(identity.memory_limit_bytes)}, {int(worker['resources'].get('SLOT', 0))} at once"
    )
    if memory > identity.memory_limit_bytes:
        return alarm(name, f"{told}: it promises more than it has; start it with a smaller --memory")
    return healthy(name, told)
