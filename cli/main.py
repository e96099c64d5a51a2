"""The command line. Commands import what they need when they run, so that a mistyped option is answered at once."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.exporting import export
from cli.installation import doctor, init, scheduler
from cli.operating import add_operator_commands
from cli.options import (
    DEFAULT_REBUILD_ON,
    DEFAULT_TARGET,
    AllowDirty,
    Annex,
    AsJson,
    At,
    Commit,
    DatasetArgument,
    DatasetId,
    Hash,
    Memory,
    ModeOption,
    Priority,
    Public,
    RebuildOn,
    Source,
    Target,
    Verbose,
    Workers,
    read_request,
)
from cli.report import report
from cli.served import adopt, mcp, reconcile_objects, republish, verify
from cli.standing import down, logs, runner, trigger, up

__all__ = ["app", "main"]

DEFAULT_DEMO_FOLDER = "./demo-dataset"

app = typer.Typer(
    name="zarrmill",
    help="Converts BIDS datasets of EEG, MEG, iEEG and EMG recordings to Zarr stores and keeps the served copies true to their source.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and plain errors: quick, and the same in a log
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; what ``zarrmill`` starts."""
    app(prog_name="zarrmill")


def _say_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


@app.command()
def plan(
    source: Source,
    *,
    to: Target = DEFAULT_TARGET,
    dataset_id: DatasetId = None,
    mode: ModeOption = "auto",
    rebuild_on: RebuildOn = DEFAULT_REBUILD_ON,
    hash_signals: Hash = False,
    allow_dirty: AllowDirty = False,
    commit: Commit = None,
    annex: Annex = None,
    at: At = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show what convert would do, and why.

    Writes nothing.
    """
    with boundary(verbose=verbose, as_json=as_json):
        request = read_request(
            source,
            to=to,
            dataset_id=dataset_id,
            mode=mode,
            rebuild_on=rebuild_on,
            hash_signals=hash_signals,
            allow_dirty=allow_dirty,
            commit=commit,
            annex=annex,
            at=at,
        )
        from cli.plan import show_plan

        show_plan(request, as_json=as_json, verbose=verbose)


@app.command()
def convert(
    source: Source,
    *,
    to: Target = DEFAULT_TARGET,
    dataset_id: DatasetId = None,
    mode: ModeOption = "auto",
    workers: Workers = None,
    memory: Memory = None,
    priority: Priority = 10,
    rebuild_on: RebuildOn = DEFAULT_REBUILD_ON,
    hash_signals: Hash = False,
    allow_dirty: AllowDirty = False,
    commit: Commit = None,
    annex: Annex = None,
    at: At = None,
    public: Public = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 when anything is pending or failed.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Convert what is new or changed and publish the dataset."""
    with boundary(verbose=verbose, as_json=as_json):
        request = read_request(
            source,
            to=to,
            dataset_id=dataset_id,
            mode=mode,
            rebuild_on=rebuild_on,
            hash_signals=hash_signals,
            allow_dirty=allow_dirty,
            commit=commit,
            annex=annex,
            at=at,
            workers=workers,
            memory=memory,
            public=public,
            priority=priority,
        )
        from cli.convert import convert_dataset

        raise typer.Exit(convert_dataset(request, strict=strict, as_json=as_json, verbose=verbose))


app.command()(adopt)
app.command()(republish)
app.command("reconcile-objects")(reconcile_objects)
app.command()(verify)
app.command()(export)
add_operator_commands(app)


@app.command()
def status(
    dataset: Annotated[
        str | None,
        typer.Argument(metavar="DATASET", help="One dataset's id. Default: all of them.", show_default=False),
    ] = None,
    *,
    system: Annotated[
        bool, typer.Option("--system", help="Show what up keeps and how it is, and what the state takes on disk.")
    ] = False,
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show how datasets stand.

    Coverage, the last runs, what failed, what waits and until when.
    """
    with boundary(verbose=verbose, as_json=as_json):
        if system:
            from cli.system import show_system

            show_system(as_json=as_json, verbose=verbose)
            return
        from cli.status import show_status

        show_status(dataset, target=to, as_json=as_json, verbose=verbose)


@app.command()
def why(
    dataset: DatasetArgument,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The recording's path in the dataset.", show_default=False)
    ],
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show why a recording is as it is.

    Its state and the reason, every attempt with memory, seconds and versions, and what its store discloses.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.why import show_why

        show_why(dataset, path, target=to, as_json=as_json, verbose=verbose)


@app.command()
def memory(
    dataset: Annotated[
        str | None,
        typer.Argument(metavar="DATASET", help="One dataset's id. Default: all of them.", show_default=False),
    ] = None,
    *,
    run: Annotated[
        int | None, typer.Option("--run", min=1, metavar="N", help="One run of the dataset. Default: all of them.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a plot of it: a .svg or .png file."),
    ] = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Plot the workers' memory over a run, by default the last one.")
    ] = False,
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show measured against projected memory.

    By format and route: how many were measured, median, 99th percentile, and the worst recording.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.memory import show_memory

        show_memory(dataset, target=to, run=run, output=output, timeline=timeline, as_json=as_json, verbose=verbose)


app.command()(report)
for _command in (up, down, logs, trigger, runner):
    app.command()(_command)


@app.command()
def serve(
    to: Target = DEFAULT_TARGET,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, help="The port. Default: ZARRMILL_PORT, which documents name."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Serve a target over HTTP.

    Objects at the addresses that the documents name, and the API beside them. Answers on 127.0.0.1, or where
    ZARRMILL_LISTEN says, until interrupted.
    """
    with boundary(verbose=verbose):
        from cli.serve import serve_target

        serve_target(to, port=port, verbose=verbose)


app.command()(mcp)


@app.command()
def demo(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the dataset is written.")
    ] = DEFAULT_DEMO_FOLDER,
    *,
    to: Target = DEFAULT_TARGET,
    workers: Workers = None,
    memory: Memory = None,
    write_only: Annotated[bool, typer.Option("--write-only", help="Write the dataset and convert nothing.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write a made-up dataset, convert it, say where to look.

    The dataset is small, has EEG, MEG, iEEG and EMG, and four faults planted on purpose.
    """
    with boundary(verbose=verbose, as_json=as_json):
        request = read_request(
            folder,
            to=to,
            dataset_id=None,
            mode="auto",
            rebuild_on=DEFAULT_REBUILD_ON,
            hash_signals=False,
            allow_dirty=False,
            workers=workers,
            memory=memory,
        )
        from cli.demonstrate import demonstrate

        raise typer.Exit(demonstrate(request, write_only=write_only, as_json=as_json, verbose=verbose))


@app.command()
def drain(
    worker: Annotated[
        str | None,
        typer.Argument(
            metavar="WORKER", help="A host, or one worker as why names it. Default: every worker.", show_default=False
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace", min=0, metavar="SECONDS", help="Time to finish for what runs. Default: ZARRMILL_STOP_GRACE_S."
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let the worker, or all, take recordings again.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Let workers take nothing new.

    For every run that uses them, until it is undone. What runs may finish, or is let go, uncounted, after the grace.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.drain import drain_worker

        drain_worker(worker, grace_s=grace, undo=undo, as_json=as_json, verbose=verbose)


@app.command()
def clean(
    execute: Annotated[
        bool, typer.Option("--execute", "--yes", help="Remove what is named; without it, only name it.")
    ] = False,
    scratch_only: Annotated[
        bool, typer.Option("--scratch-only", help="Leave the state; remove scratch alone.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Remove scratch and state of this machine.

    Names them first, and removes them with --execute. What is served stays.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.clean import clean_home

        raise typer.Exit(clean_home(execute=execute, scratch_only=scratch_only, as_json=as_json))


@app.command()
def worker(
    *,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="URL", help="The Dask scheduler. Default: ZARRMILL_DASK_ADDRESS."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Memory for conversions. Default: the machine's, less headroom."),
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option("--scratch", metavar="SIZE", help="Scratch disk for conversions. Default: what is free."),
    ] = None,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, metavar="N", help="Conversions side by side. Default: one per core.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="What the scheduler calls it. Default: its address.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Start a worker that converts for a Dask scheduler."""
    with boundary(verbose=verbose):
        from cli.worker import run_worker

        run_worker(scheduler, memory=memory, scratch=scratch, slots=slots, name=name, verbose=verbose)


app.command()(init)
app.command()(doctor)
app.command()(scheduler)


@app.command()
def version() -> None:
    """Show the version."""
    from importlib.metadata import version as version_of

    typer.echo(f"zarrmill {version_of('zarrmill')}")
