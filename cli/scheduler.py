"""``zarrmill scheduler``: the Dask scheduler that workers and commands of many machines share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli.runtime import prepare

if TYPE_CHECKING:
    from typing import Never

__all__ = ["run_scheduler"]


def run_scheduler(*, host: str, port: int, dashboard_port: int, verbose: bool) -> Never:
    """Become a Dask scheduler; does not return.

    Raises
    ------
    Refused
        It would listen unencrypted beyond this machine.
    """
    settings = prepare(verbose=verbose, uses_home=False)
    from infra.scheduler import scheduler_command, scheduler_environment

    command = scheduler_command(settings, host=host, port=port, dashboard_port=dashboard_port)
    os.execvpe(command[0], command, scheduler_environment(settings))  # noqa: S606 - an argument list of our own, no shell
