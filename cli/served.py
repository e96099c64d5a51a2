"""The commands about what is served already: taken over, brought up to date, compared, offered to agents."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, Annex, AsJson, At, Commit, DatasetArgument, Target, Verbose
from contract.errors import Refused

__all__ = ["adopt", "mcp", "reconcile_objects", "republish", "verify"]


def adopt(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="The dataset's id; with --all, where the sources lie.", show_default=False
        ),
    ],
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="What it is made from.", show_default=False)
    ] = None,
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every dataset in the target's catalog; the only argument is where SOURCE/ID lies."),
    ] = False,
    to: Target = DEFAULT_TARGET,
    commit: Commit = None,
    annex: Annex = None,
    at: At = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Take over a served dataset that is not known here.

    For a target whose state was lost, or that another installation made. Stores that are known to be true to the source are
    carried, the rest is made anew by the next convert.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.adopt import adopt_dataset, adopt_everything
        from flows.request import ReconvertRequest

        if every and source is None:
            sources = ReconvertRequest(source=dataset, target=to, commit=commit, annex=annex, at=at)
            adopt_everything(sources, as_json=as_json, verbose=verbose)
        elif source is not None and not every:
            one = ReconvertRequest(source=source, target=to, dataset_id=dataset, commit=commit, annex=annex, at=at)
            adopt_dataset(one, as_json=as_json, verbose=verbose)
        else:
            raise Refused("Say `zarrmill adopt DATASET SOURCE`, or `zarrmill adopt --all SOURCES`.")


def republish(
    dataset: DatasetArgument,
    to: Target = DEFAULT_TARGET,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Bring what stores say of their dataset up to date.

    DOI, licence, citation, HED version and address are written into each store's root and into the documents. No signal is
    touched and nothing is converted.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.held_work import republish_dataset

        republish_dataset(dataset, target=to, as_json=as_json, verbose=verbose)


def reconcile_objects(
    dataset: DatasetArgument,
    to: Target = DEFAULT_TARGET,
    execute: Annotated[bool, typer.Option("--execute", help="Mend what differs; without it, only tell it.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare what stands at the target with what should.

    A damaged store leaves the index and is due again; objects and stores that nothing names are removed. Dry unless
    --execute is given.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.held_work import reconcile_dataset

        reconcile_dataset(dataset, target=to, execute=execute, as_json=as_json, verbose=verbose)


_Recording = Annotated[
    str | None, typer.Option("--recording", metavar="PATH", help="Only this recording of the dataset, by its path.")
]
_Every = Annotated[bool, typer.Option("--all", help="Also stores, and datasets, whose verdict stands.")]
_Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Which windows of the signals are compared.")]
_OverHttp = Annotated[
    bool, typer.Option("--over-http", help="Read stores at the addresses in the documents, as anyone does.")
]
_Compare = Annotated[
    bool, typer.Option("--execute", help="Compare and write verdicts; without it, only say what is due.")
]
_AnyTarget = Annotated[
    str | None,
    typer.Option("--to", "--target", metavar="TARGET", help="Where they are served from. Default: every target."),
]
_AnyDataset = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET", help="The dataset's id. Default: each whose verdict does not stand.", show_default=False
    ),
]


def verify(
    dataset: _AnyDataset = None,
    *,
    recording: _Recording = None,
    every: _Every = False,
    seed: _Seed = 0,
    over_http: _OverHttp = False,
    execute: _Compare = False,
    to: _AnyTarget = None,
    commit: Commit = None,
    annex: Annex = None,
    at: At = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare served stores with their source.

    Names, units, rates, real samples, view levels, events, objects and metadata, found out without the code that made the stores.
    Nothing at the target is written. Exit 1: something does not hold; 3: something could not be judged now.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.verify import verify_served
        from flows.sweep_request import SweepRequest

        request = SweepRequest(
            target=to,
            dataset_id=dataset,
            path=recording,
            every=every,
            seed=seed,
            over_http=over_http,
            commit=commit,
            annex=annex,
            at=at,
        )
        raise typer.Exit(verify_served(request, execute=execute, as_json=as_json, verbose=verbose))


def mcp(
    to: Target = DEFAULT_TARGET,
    *,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="Read an archive over HTTP instead of a target: the URL above catalog.json."
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Answer at http://127.0.0.1:PORT/mcp instead of on stdin and stdout.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, metavar="PORT", help="Port for --http.")] = 8322,
    verbose: Verbose = False,
) -> None:
    """Let agents read an archive (MCP).

    Search, listings, events, pictures and read recipes; read-only.
    """
    with boundary(verbose=verbose):
        from cli.serve_mcp import serve_mcp

        serve_mcp(to, url=url, over_http=http, port=port, verbose=verbose)
