"""Options that several commands share, declared once, and how their text is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from contract.errors import Refused

if TYPE_CHECKING:
    from flows.request import ReconvertRequest

__all__ = [
    "DEFAULT_TARGET", "AllowDirty", "Annex", "AsJson", "At", "Commit", "DatasetArgument", "DatasetId", "Hash", "Memory", "Mode", "ModeOption",
    "Priority", "Public", "RebuildOn",
    "Source", "Target", "Verbose", "Workers", "read_rebuild_on", "read_request",
]  # fmt: skip

DEFAULT_REBUILD_ON = "options,engine"

DEFAULT_TARGET = "./served"
Mode = Literal["auto", "full", "retry-pending"]

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="The BIDS dataset: a folder, a git repository, or s3://bucket/prefix.",
        show_default=False,
    ),
]
DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="The dataset's id, such as xx000001.", show_default=False)
]
Target = Annotated[
    str,
    typer.Option(
        "--to", "--target", metavar="TARGET", help="Where datasets are served from: a folder, or s3://bucket[/prefix]."
    ),
]
Public = Annotated[
    bool,
    typer.Option(
        "--public",
        help="Publish openly: refused unless anybody can read the bucket; the index then says so. It is remembered.",
    ),
]
DatasetId = Annotated[
    str | None,
    typer.Option(
        "--dataset-id",
        metavar="ID",
        help="Two letters and six digits. Default: the folder's name if it is one, else the id this source has, else the next free xx.",
    ),
]
ModeOption = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="auto: what is due. full: everything anew. retry-pending: also what still waits for its next attempt.",
    ),
]
RebuildOn = Annotated[
    str,
    typer.Option(
        "--rebuild-on",
        metavar="LIST",
        help="Which changes of the converter rebuild a store: options, engine, biosigio, comma-separated; none for none of them.",
    ),
]
Hash = Annotated[
    bool, typer.Option("--hash", help="Tell changed signal files by their bytes, not by size and times alone.")
]
AllowDirty = Annotated[
    bool,
    typer.Option("--allow-dirty", help="Take a git checkout with uncommitted changes; its tree hash is the commit."),
]
Commit = Annotated[
    str | None,
    typer.Option(
        "--commit",
        metavar="REF",
        help="Read a git repository at this commit, branch or tag instead of the files that lie there.",
    ),
]
Annex = Annotated[
    str | None,
    typer.Option(
        "--annex",
        metavar="URL",
        help="s3://bucket/prefix with objects/KEY: where git-annex content is that is not here.",
    ),
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Read a bucket with versions as it was then: 2026-01-31T00:00:00Z."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, metavar="N", help="Conversions side by side. Default: as cores and memory allow."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Memory of all conversions together, such as 8GiB. Default: the machine's, less headroom.",
    ),
]
Priority = Annotated[
    int,
    typer.Option(
        "--priority",
        metavar="N",
        help="Weight among runs that want the same workers at the same time, 1 to 100: twice as much gets twice as much.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for machines.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the log, and where an error came from.")]


_MOST_PRIORITY = 100


def read_rebuild_on(text: str) -> frozenset[str]:
    """The columns that ``--rebuild-on`` names.

    Raises
    ------
    Refused
        One of them is none.
    """
    from flows.request import REBUILD_COLUMNS

    named = {part.strip() for part in text.split(",") if part.strip()}
    if named in ({"none"}, set()):
        return frozenset()
    unknown = sorted(named - set(REBUILD_COLUMNS))
    if unknown:
        raise Refused(f"--rebuild-on knows {', '.join(REBUILD_COLUMNS)} and none, not {', '.join(map(repr, unknown))}")
    return frozenset(named)


def _checked_priority(priority: int) -> int:
    if not 1 <= priority <= _MOST_PRIORITY:
        raise Refused(f"--priority {priority} is none: a whole number from 1 to {_MOST_PRIORITY}")
    return priority


def read_request(
    source: str,
    *,
    to: str,
    dataset_id: str | None,
    mode: Mode,
    rebuild_on: str,
    hash_signals: bool,
    allow_dirty: bool,
    commit: str | None = None,
    annex: str | None = None,
    at: str | None = None,
    workers: int | None = None,
    memory: str | None = None,
    public: bool = False,
    priority: int = 10,
) -> ReconvertRequest:
    """What the options ask for, checked as far as text alone allows.

    Raises
    ------
    Refused
        A size, a list, a priority or a dataset id is not written as it should be.
    """
    from contract.layout import is_dataset_id
    from flows.request import ReconvertRequest
    from infra.sizes import parse_bytes

    if dataset_id is not None and not is_dataset_id(dataset_id):
        raise Refused(f"--dataset-id {dataset_id!r} is none: two small letters and six digits, such as xx000001")
    try:
        memory_bytes = parse_bytes(memory) if memory is not None else None
    except Refused as refused:
        raise Refused(f"--memory: {refused.sentence}") from None
    return ReconvertRequest(
        source=source,
        target=to,
        dataset_id=dataset_id,
        mode=mode,
        workers=workers,
        memory_bytes=memory_bytes,
        priority=_checked_priority(priority),
        rebuild_on=read_rebuild_on(rebuild_on),
        hash_signals=hash_signals,
        allow_dirty=allow_dirty,
        commit=commit,
        annex=annex,
        at=at,
        public=public,
    )
