"""How the parts of a standing installation are: asked of each at the moment of the question."""

from __future__ import annotations

import asyncio
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import psycopg

from infra.dask_security import client_security
from infra.prefect_server import answers
from infra.processes import is_running
from infra.standing import standing_files

if TYPE_CHECKING:
    from infra.home import Home
    from infra.settings import Settings
    from infra.standing import Standing

__all__ = ["Health", "PartHealth", "dask_workers", "health_of", "is_well"]

Health = Literal["healthy", "alarm", "unknown"]
_BEAT_S: Final = 90.0
_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHealth:
    """One part at this moment. ``pid`` is None for one that another machine keeps, or that is not running."""

    name: str
    health: Health
    told: str
    pid: int | None = None
    address: str | None = None
    restarts: int = 0


def is_well(parts: list[PartHealth]) -> bool:
    """Whether every part is healthy."""
    return bool(parts) and all(one.health == "healthy" for one in parts)


def health_of(home: Home, settings: Settings, standing: Standing) -> list[PartHealth]:
    """Every part with what it answers. ``settings`` are those with the addresses of what stands."""
    found = [_postgres(home, settings)]
    workers = dask_workers(settings, standing.addresses.get("dask"))
    found += [_part(home, standing, name, workers) for name in ("prefect", "dask-scheduler", "api", "runner")]
    named = [one.name for one in standing.parts if one.name.startswith("worker-")]
    return found + [_worker(standing, name, len(named), workers) for name in named]


def _postgres(home: Home, settings: Settings) -> PartHealth:
    if settings.database_url is None:
        from infra.services import our_postgres

        pid, url = our_postgres(home)
    else:
        pid, url = None, settings.database_url.get_secret_value().replace("postgresql+psycopg://", "postgresql://", 1)
    if url is None:
        return PartHealth(name="postgres", health="alarm", told="it does not stand")
    try:
        psycopg.connect(url, connect_timeout=int(_TIMEOUT_S)).close()
    except psycopg.Error as error:
        return PartHealth(name="postgres", health="alarm", told=f"it does not answer ({type(error).__name__})", pid=pid)
    return PartHealth(name="postgres", health="healthy", told="it answers", pid=pid)


def _part(home: Home, standing: Standing, name: str, workers: list[Any] | str) -> PartHealth:
    kept = standing.part(name)
    address = standing.addresses.get({"dask-scheduler": "dask"}.get(name, name))
    if kept is not None and (kept.pid is None or not is_running(kept.pid)):
        told = f"it is started again ({kept.last_exit or 'it has just ended'}); its log is {kept.log}"
        return PartHealth(name=name, health="alarm", told=told, address=address, restarts=kept.restarts)
    trouble = {
        "prefect": lambda: answers(address or ""),
        "dask-scheduler": lambda: workers if isinstance(workers, str) else None,
        "api": lambda: _web(address or ""),
        "runner": lambda: _beat(home),
    }[name]()
    told = trouble or ("it works" if name == "runner" else "it answers")
    if name == "dask-scheduler" and not isinstance(workers, str):
        told = f"it answers; workers: {len(workers)}"
    return PartHealth(
        name=name,
        health="healthy" if trouble is None else "alarm",
        told=told,
        pid=None if kept is None else kept.pid,
        address=address,
        restarts=0 if kept is None else kept.restarts,
    )


def _worker(standing: Standing, name: str, expected: int, workers: list[Any] | str) -> PartHealth:
    kept = standing.part(name)
    assert kept is not None, "the names are those of the parts"
    if kept.pid is None or not is_running(kept.pid):
        told = f"it is started again ({kept.last_exit or 'it has just ended'}); its log is {kept.log}"
        return PartHealth(name=name, health="alarm", told=told, restarts=kept.restarts)
    if isinstance(workers, str):
        return PartHealth(name=name, health="unknown", told="the scheduler does not say", pid=kept.pid)
    if len(workers) < expected:
        told = f"it runs, and the scheduler has {len(workers)} workers of {expected}"
        return PartHealth(name=name, health="alarm", told=told, pid=kept.pid, restarts=kept.restarts)
    return PartHealth(
        name=name, health="healthy", told="it is with the scheduler", pid=kept.pid, restarts=kept.restarts
    )


def dask_workers(settings: Settings, address: str | None) -> list[Any] | str:
    """Workers of a Dask scheduler, or why they are not known."""
    if address is None:
        return "it has no address"
    from distributed import rpc

    security = client_security(settings, address)
    arguments = None if security is None else security.get_connection_args("client")

    async def ask() -> list[Any]:
        async with rpc(address, timeout=_TIMEOUT_S, connection_args=arguments) as scheduler:  # type: ignore[no-untyped-call]  # distributed has no types
            told = await asyncio.wait_for(scheduler.identity(n_workers=-1), _TIMEOUT_S)
        return list(told["workers"].values())

    try:
        return asyncio.run(ask())
    except (OSError, TimeoutError) as error:
        return f"it does not answer ({type(error).__name__})"


def _web(address: str) -> str | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=_TIMEOUT_S):
            return None
    except urllib.error.HTTPError as error:
        error.close()
        return None if error.code < 500 else f"it answers {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"it does not answer ({type(error).__name__})"


def _beat(home: Home) -> str | None:
    try:
        beat = standing_files(home).runner_beat
        age_s, word = time.time() - beat.stat().st_mtime, beat.read_text()
    except FileNotFoundError:
        return "it has not begun"
    return (word or None) if age_s < _BEAT_S else f"it has said nothing for {age_s:.0f} s"
