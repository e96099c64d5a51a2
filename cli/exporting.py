"""The command ``export``, declared; ``cli.export`` carries it out."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import boundary
from cli.options import DEFAULT_TARGET, Annex, AsJson, At, Commit, DatasetArgument, Verbose

__all__ = ["export"]

_Recordings = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RECORDING", help="Paths of recordings in the dataset, or of their stores.", show_default=False
    ),
]
_From = Annotated[
    str,
    typer.Option(
        "--from", metavar="PLACE", help="What serves it: a folder, s3://bucket[/prefix], or the URL above catalog.json."
    ),
]
_All = Annotated[bool, typer.Option("--all", help="Every recording of the dataset that is served.")]
_Group = Annotated[
    str | None, typer.Option("--group", metavar="G", help="The channel group. Default: the one with the most channels.")
]
_Start = Annotated[float, typer.Option("--start", metavar="S", help="Where the part begins, in seconds.")]
_Stop = Annotated[
    float | None, typer.Option("--stop", metavar="S", help="Where it ends. Default: the recording's end.")
]
_Window = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--window",
        metavar="A B",
        help="Trials: seconds around the onset of each event. Default: -0.2 0.8 with --trial-type, else the part as one window.",
        show_default=False,
    ),
]
_TrialType = Annotated[
    list[str] | None,
    typer.Option("--trial-type", metavar="WORD", help="Only events of this trial type; may be repeated."),
]
_Channel = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="LABEL", help="Only this channel, or rows as 3 or 0:16; may be repeated."),
]
_Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="MODE", help="epochs or continuous. Default: epochs with trials, else continuous."),
]
_Schema = Annotated[
    int, typer.Option("--schema", metavar="N", help="Version of the format: 1, or 0 for vneurotk 0.0.1.")
]
_Compression = Annotated[
    str, typer.Option("--compression", metavar="WORD", help="gzip, gzip-0 to gzip-9, lzf or none.")
]
_Stimuli = Annotated[
    bool, typer.Option("--with-stimuli", help="Number stimuli by stim_file, and put those images into the file.")
]
_Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="SOURCE",
        help="The BIDS dataset that holds the images. Default: what it was converted from.",
    ),
]
_Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file; a folder for several recordings. Default: the store's name here, or DATASET-export.",
    ),
]


def export(
    dataset: DatasetArgument,
    recordings: _Recordings = None,
    *,
    every: _All = False,
    place: _From = DEFAULT_TARGET,
    group: _Group = None,
    start: _Start = 0.0,
    stop: _Stop = None,
    window: _Window = None,
    trial_type: _TrialType = None,
    channel: _Channel = None,
    mode: _Mode = None,
    schema: _Schema = 1,
    compression: _Compression = "gzip",
    with_stimuli: _Stimuli = False,
    source: _Source = None,
    commit: Commit = None,
    annex: Annex = None,
    at: At = None,
    output: _Output = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write windows of what is served as VneuroTK files.

    Trials around events, or a part of the signal, read from the served copy alone: of a folder, a bucket or an archive. Several
    recordings become a file each, and export.json.
    """
    with boundary(verbose=verbose, as_json=as_json):
        from cli.export import Told, export_windows
        from tasks.export.asked import asked_of

        asked = asked_of(
            (start, stop),
            window,
            trial_type,
            channel,
            group=group,
            mode=mode,
            schema=schema,
            compression=compression,
            with_stimuli=with_stimuli,
        )
        where = {"source": source, "commit": commit, "annex": annex, "at": at}
        told = Told(dataset, tuple(recordings or ()), every=every, place=place, output=output, **where)
        raise typer.Exit(export_windows(told, asked, as_json=as_json, verbose=verbose))
