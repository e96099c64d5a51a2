"""The commands of an installation: init, doctor, scheduler; declared here, each carried out in a module of its name."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, AsJson, Target, Verbose

__all__ = ["doctor", "init", "scheduler"]


def init(
    to: Target = DEFAULT_TARGET,
    public: Annotated[
        bool, typer.Option("--public", help="Let anybody, and any web page, read the bucket; proved by unsigned calls.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Make what must stand before anything converts.

    Tables, bucket, who may read it, deployments. What stands already is left as it is, so it may be run again at any time.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.initialise import show_init

        show_init(to, public=public, as_json=as_json, verbose=verbose)


def doctor(
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say whether everything is as it should be.

    Versions, limits, clocks, space, Postgres, Prefect, workers, the target as anybody sees it, callbacks. Exit 1 with an alarm, 3 with something unknown.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.doctor import show_health

        raise typer.Exit(show_health(to, as_json=as_json, verbose=verbose))


def scheduler(
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="The address to listen on; 0.0.0.0 is every one.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port for workers and commands.")] = 8786,
    dashboard_port: Annotated[
        int, typer.Option("--dashboard-port", min=1, max=65535, help="The port of Dask's dashboard on 127.0.0.1.")
    ] = 8787,
    verbose: Verbose = False,
) -> None:
    """Start a Dask scheduler for workers of many machines."""
    with boundary(verbose=verbose):
        from cli.scheduler import run_scheduler

        run_scheduler(host=host, port=port, dashboard_port=dashboard_port, verbose=verbose)
