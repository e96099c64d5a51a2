"""The Prefect side of an export: windows of recordings that are served, written to a folder of the machine that the runner is on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from contract.errors import Refused
from flows.prefect_run import CommitName, DatasetName
from flows.stop import StopSignal, listening
from infra.settings import load_settings

if TYPE_CHECKING:
    from flows.export_request import ExportRequest
    from infra.settings import Settings

__all__ = ["export_window"]

Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=1024)]], Field(max_length=100_000)]


@flow(name="export_window", persist_result=False)
def export_window(
    dataset_id: DatasetName,
    output: str,
    *,
    recordings: Names = [],  # noqa: B006 - Prefect reads the default as JSON, and nobody changes it
    place: str | None = None,
    group: str | None = None,
    start_s: float = 0.0,
    stop_s: float | None = None,
    window_s: tuple[float, float] | None = None,
    trial_types: Names = [],  # noqa: B006 - as above
    channels: Names = [],  # noqa: B006 - as above
    mode: str | None = None,
    schema_version: int = 1,
    compression: str = "gzip",
    with_stimuli: bool = False,
    source: str | None = None,
    commit: CommitName | None = None,
    annex: str | None = None,
) -> State[Any]:
    """Write windows of recordings as VneuroTK files, one each, and export.json.

    Parameters
    ----------
    output
        An absolute folder on the machine of the runner; it is made.
    recordings
        Paths in the dataset; none for every recording that is served.
    place
        What serves it: a folder, s3://bucket/prefix, or an archive's URL. Left out: the one target where it is registered.

    The others are those of `zarrmill export`.
    """
    from tasks.export.asked import asked_of

    asked = asked_of(
        (start_s, stop_s),
        window_s,
        trial_types,
        channels,
        group=group,
        mode=mode,
        schema=schema_version,
        compression=compression,
        with_stimuli=with_stimuli,
    )
    images = {"source": source, "commit": commit, "annex": annex}
    return _carried_out(dataset_id, output, tuple(recordings), place, asked=asked, **images)


def _carried_out(
    dataset_id: str, output: str, recordings: tuple[str, ...], place: str | None, **more: Any
) -> State[Any]:
    from flows.export_window import export_several

    settings = load_settings()
    request = _request(settings, dataset_id, output, recordings, place, **more)
    stop = StopSignal()
    with listening(stop):
        report = export_several(settings, request, stop=stop)
    ended_well = bool(report.exported) or not report.failed
    return Completed(message=report.sentence) if ended_well else Failed(message=report.sentence)


def _request(
    settings: Settings, dataset_id: str, output: str, recordings: tuple[str, ...], place: str | None, **more: Any
) -> ExportRequest:
    from flows.export_request import ExportRequest

    folder = Path(output)
    if not folder.is_absolute():
        raise Refused(f"output: {output!r} is no absolute path; name a folder of the machine that the runner is on.")
    return ExportRequest(
        dataset_id=dataset_id,
        place=place or _only_target(settings, dataset_id),
        recordings=recordings,
        output=folder,
        is_file=False,
        **more,
    )


def _only_target(settings: Settings, dataset_id: str) -> str:
    from flows.asking import registered
    from flows.preview import opened_database

    with opened_database(settings) as (engine, _url), engine.connect() as c:
        return registered(c, dataset_id).target
