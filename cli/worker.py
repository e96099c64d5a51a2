"""``zarrmill worker``: a Dask worker with the resources and the environment that conversions need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cli.runtime import prepare
from contract.errors import Refused

if TYPE_CHECKING:
    from typing import Never

__all__ = ["run_worker"]


def run_worker(
    scheduler: str | None,
    *,
    memory: str | None,
    scratch: str | None,
    slots: int | None,
    name: str | None,
    verbose: bool,
) -> Never:
    """Become a Dask worker for ``scheduler``; does not return.

    ``name`` is what the scheduler calls it: what starts and ends workers knows them by it.

    Raises
    ------
    Refused
        No scheduler is named, or no database that other machines reach too.
    """
    settings = prepare(verbose=verbose, uses_home=False)
    address = scheduler or settings.dask_address
    if address is None:
        raise Refused("no scheduler: name one with --scheduler tcp://host:8786, or set ZARRMILL_DASK_ADDRESS")
    if settings.database_url is None:
        raise Refused("a worker for an external scheduler needs ZARRMILL_DATABASE_URL, the one that convert uses")
    from infra.cluster import worker_command, worker_environment
    from infra.dask_security import check_reach, is_loopback, tls_environment
    from infra.sizes import parse_bytes

    check_reach(settings, address)
    command = worker_command(
        settings,
        scheduler=address,
        memory_bytes=parse_bytes(memory) if memory else None,
        scratch_bytes=parse_bytes(scratch) if scratch else None,
        slots=slots,
        # Dask opens it whether it has a dashboard or not, and on every interface unless told
        options=(
            *("--dashboard-address", "127.0.0.1:0"),
            # a scheduler that only this machine reaches needs no worker that others do
            *(("--host", "127.0.0.1") if is_loopback(urlsplit(address).hostname) else ()),
            *(() if name is None else ("--name", name)),
        ),
    )
    # Under the worker's own name from here on, so that children never import this command again.
    environment = {**worker_environment(settings), **tls_environment(settings, address)}
    os.execvpe(command[0], command, environment)  # noqa: S606 - an argument list of our own, no shell
