"""The commands of a standing installation: up, down, logs, runner, trigger; declared here, carried out in ``cli.stand`` and ``cli.service``."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.operating import By, Why
from cli.options import DEFAULT_TARGET, AsJson, Commit, DatasetArgument, ModeOption, Target, Verbose

__all__ = ["down", "logs", "runner", "trigger", "up"]


AtATime = Annotated[
    int | None,
    typer.Option("--datasets", min=1, metavar="N", help="Datasets at a time. Default: ZARRMILL_DATASETS_AT_A_TIME."),
]


def up(
    *,
    to: Target = DEFAULT_TARGET,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="LIST",
            help="Workers as COUNT or COUNTxSIZE, comma-separated: 2x4GiB,1x16GiB. Default: 1.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option("--slots", min=1, metavar="N", help="Conversions side by side a worker. Default: one per core."),
    ] = None,
    datasets: AtATime = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port of the API. Default: ZARRMILL_PORT.")
    ] = None,
    prefect_port: Annotated[
        int | None,
        typer.Option("--prefect-port", min=1, max=65535, help="Port of Prefect. Default: that of last time."),
    ] = None,
    dask_port: Annotated[
        int | None, typer.Option("--dask-port", min=1, max=65535, help="Port of Dask. Default: that of last time.")
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, for a service manager; SIGTERM ends everything.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Bring the whole service up on this machine.

    Postgres, Prefect, a Dask scheduler, workers, the runner and the API, each started again when it ends. Without Docker.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.stand import Wanted, bring_up

        wanted = Wanted(
            to=to,
            workers=workers,
            slots=slots,
            datasets=datasets,
            port=port,
            prefect_port=prefect_port,
            dask_port=dask_port,
        )
        raise typer.Exit(bring_up(wanted, foreground=foreground, as_json=as_json, verbose=verbose))


def down(
    now: Annotated[bool, typer.Option("--now", help="Do not wait for what runs; it is tried again later.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Take down what up brought up.

    Datasets that convert publish what is done. Nothing that up did not start is touched.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.stand import take_down

        raise typer.Exit(take_down(now=now, as_json=as_json, verbose=verbose))


def logs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A part, such as runner or worker-1. Default: list them.", show_default=False
        ),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, metavar="N", help="Lines from the end.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows, until interrupted.")] = False,
    verbose: Verbose = False,
) -> None:
    """Show the log of a part of the service."""
    with boundary(verbose=verbose):
        from cli.stand import show_log

        show_log(name, lines=lines, follow=follow, verbose=verbose)


def trigger(
    dataset: DatasetArgument,
    *,
    mode: ModeOption = "auto",
    commit: Commit = None,
    to: Annotated[
        str | None,
        typer.Option("--to", "--target", metavar="TARGET", help="Where it is served, if several targets have one."),
    ] = None,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Ask the service to convert a registered dataset.

    Of one dataset at most one request waits; a further one is answered with that.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.service import trigger_dataset

        trigger_dataset(dataset, mode=mode, commit=commit, target=to, by=by, why=why, as_json=as_json, verbose=verbose)


def runner(
    datasets: AtATime = None,
    verbose: Verbose = False,
) -> None:
    """Start what is due, a process for each dataset.

    Until interrupted. Takes requests from the state and due flow runs from Prefect, and registers the deployments there.
    """
    with boundary(verbose=verbose):
        from cli.service import run_service

        run_service(datasets_at_a_time=datasets, verbose=verbose)
