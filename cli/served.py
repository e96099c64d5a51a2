"""The commands about what is served already: taken over, brought up to date, compared."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, Annex, AsJson, At, Commit, DatasetArgument, Target, Verbose
from contract.errors import Refused

__all__ = ["adopt", "reconcile_objects", "republish"]


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
