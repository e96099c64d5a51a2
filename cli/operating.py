"""The commands of operators, declared; ``cli.operate`` carries them out. What changes something is dry without ``--execute``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, Annex, AsJson, DatasetArgument, DatasetId, Target, Verbose

__all__ = ["add_operator_commands"]

Execute = Annotated[bool, typer.Option("--execute", help="Do it; without it, only tell what would be done.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who acts, for the history. Default: the name of this user.")
]
Why = Annotated[str | None, typer.Option("--why", metavar="TEXT", help="Why, for the history.")]
Upstream = Annotated[
    str | None,
    typer.Option(
        "--upstream", metavar="URL", help="A catalog API that says its DOI, licence, citation and HED version."
    ),
]
ImportedFrom = Annotated[
    str | None,
    typer.Option(
        "--catalog", metavar="URL", help="Register every dataset that this catalog API lists; dry without --execute."
    ),
]
OptionalDataset = Annotated[
    str | None, typer.Argument(metavar="DATASET", help="One dataset's id. Default: everything.", show_default=False)
]
_dataset = typer.Typer(help="Say how a dataset stands.", no_args_is_help=True)
_engine = typer.Typer(help="Approve what another converter makes anew.", no_args_is_help=True)
_database = typer.Typer(help="Look after the database that holds the state.", no_args_is_help=True)


def add_operator_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (register, requeue, pause, resume, catalog, history, withdraw):
        app.command()(command)
    app.add_typer(_dataset, name="dataset")
    app.add_typer(_engine, name="engine")
    app.add_typer(_database, name="db")


def register(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="BIDS datasets; with --catalog, where each of them lies under its id.",
            show_default=False,
        ),
    ],
    *,
    to: Target = DEFAULT_TARGET,
    dataset_id: DatasetId = None,
    annex: Annex = None,
    visibility: Annotated[
        Literal["public", "private"] | None,
        typer.Option("--visibility", help="Whether it is in the catalog and filters."),
    ] = None,
    upstream: Upstream = None,
    catalog: ImportedFrom = None,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Make datasets known, without converting them.

    Reconciliation then asks for what they need. Nothing is written to the target.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.register import Registration, register_them

        given = Registration(
            sources=tuple(sources),
            target=to,
            dataset_id=dataset_id,
            annex=annex,
            visibility=visibility,
            upstream=upstream,
        )
        register_them(given, catalog=catalog, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


def requeue(
    datasets: Annotated[
        list[str] | None, typer.Argument(metavar="DATASET", help="Ids of datasets.", show_default=False)
    ] = None,
    *,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATE", help="Datasets whose policy is so, such as exhausted or given_up."),
    ] = None,
    code: Annotated[
        list[str] | None, typer.Option("--code", metavar="CODE", help="Recordings with this failure code.")
    ] = None,
    reason: Annotated[
        list[str] | None, typer.Option("--reason", metavar="REASON", help="Recordings that wait for this reason.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every dataset at the target.")] = False,
    to: Target = DEFAULT_TARGET,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Make what failed or waits due again.

    The attempts of those recordings are forgotten, and a run of each dataset is asked for. What is served stays served.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import Chosen, requeue_them

        chosen = Chosen(
            datasets=tuple(datasets or ()),
            states=tuple(status or ()),
            codes=tuple(code or ()),
            reasons=tuple(reason or ()),
            every=every,
        )
        requeue_them(chosen, target=to, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


def pause(
    dataset: OptionalDataset = None,
    *,
    to: Target = DEFAULT_TARGET,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Let a dataset, or everything, start nothing by itself.

    What runs goes on; requests wait until it is resumed.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import pause_them

        pause_them(dataset, target=to, paused=True, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


def resume(
    dataset: OptionalDataset = None,
    *,
    to: Target = DEFAULT_TARGET,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """End the pause of a dataset, or of everything."""
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import pause_them

        pause_them(dataset, target=to, paused=False, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


def catalog(
    *,
    to: Target = DEFAULT_TARGET,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Publish the catalog of a target now."""
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import publish_the_catalog

        publish_the_catalog(target=to, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


def history(
    dataset: OptionalDataset = None,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, metavar="N", help="How many, newest first.")] = 50,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show what operators did, or asked about."""
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import show_history

        show_history(dataset, limit=limit, as_json=as_json, verbose=verbose)


def withdraw(
    dataset: DatasetArgument,
    *,
    to: Target = DEFAULT_TARGET,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Take a dataset out and remove what is served of it.

    Out of the catalog and every filter first, then its index, its other documents and its stores. Its history stays.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import withdraw_it

        withdraw_it(dataset, target=to, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


@_dataset.command("set")
def dataset_set(
    dataset: DatasetArgument,
    *,
    to: Target = DEFAULT_TARGET,
    visibility: Annotated[
        Literal["public", "private"] | None,
        typer.Option(
            "--visibility", help="Whether it is in the catalog and filters; private is refused where anybody can read."
        ),
    ] = None,
    active: Annotated[
        Literal["yes", "no"] | None,
        typer.Option("--active", help="Whether it takes part; yes also ends a withdrawal."),
    ] = None,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Set who may see a dataset, and whether it takes part."""
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import set_the_standing

        set_the_standing(
            dataset,
            target=to,
            visibility=visibility,
            active=None if active is None else active == "yes",
            by=by,
            why=why,
            as_json=as_json,
            verbose=verbose,
        )


@_engine.command("preview")
def engine_preview(as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Show what was made with another converter, and what making it anew would take."""
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import preview_the_engine

        preview_the_engine(as_json=as_json, verbose=verbose)


@_engine.command("approve")
def engine_approve(
    *,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="LIST", help="Of options, engine, biosigio, comma-separated. Default: options,engine."
        ),
    ] = None,
    execute: Execute = False,
    by: By = None,
    why: Why = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Let everything that another converter made be made anew.

    All of it or nothing; it holds for the present values, and the next reconciliation asks for it.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import approve_the_engine

        approve_the_engine(on, execute=execute, by=by, why=why, as_json=as_json, verbose=verbose)


@_database.command("upgrade")
def db_upgrade(execute: Execute = False, by: By = None, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Bring the tables to this version.

    Every command does so by itself; this one is for those who want it done before.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.operate import upgrade_the_database

        upgrade_the_database(execute=execute, by=by, as_json=as_json, verbose=verbose)
