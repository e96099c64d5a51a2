"""From what is due to the orders that workers are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from contract.layout import store_url
from contract.store import Provenance
from contract.times import utc_stamp
from db.durations import recent_durations
from db.measurements import recent_ratios
from flows.headers import headers
from flows.survey import current_versions
from tasks.convert.order import ConversionOrder, Fingerprint
from tasks.formats import load
from tasks.formats.protocol import Route
from tasks.plan.duration import NOTHING_TOOK, expected_s
from tasks.plan.learning import learn
from tasks.plan.projection import NOTHING_LEARNT, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.durations import KindTook
    from db.recordings import RecordingState
    from db.runs import Run, Versions
    from flows.survey import Survey
    from infra.settings import Settings
    from tasks.bids.recording import DiscoveredRecording
    from tasks.formats.protocol import Header
    from tasks.plan.learning import Learnt
    from tasks.plan.planned import PlannedRecording
    from tasks.plan.projection import Projection

__all__ = ["durations", "learnt_kinds", "orders", "projection_of", "provenance_of"]


def learnt_kinds(c: Connection) -> Mapping[tuple[str, str], Learnt]:
    """By (format, route), what earlier conversions teach about memory; one query."""
    kinds = [(name, route.value) for name in load() for route in Route]
    ratios = recent_ratios(c, kinds=kinds, versions=current_versions())
    return {kind: taught for kind, found in ratios.items() if (taught := learn(found)) is not None}


def durations(c: Connection) -> Mapping[tuple[str, str], KindTook]:
    """By (format, route), how long earlier conversions took; one query."""
    return recent_durations(c, kinds=[(name, route.value) for name in load() for route in Route])


def projection_of(
    surveyed: Survey,
    recording: DiscoveredRecording,
    header: Header | None,
    learnt: Mapping[tuple[str, str], Learnt] = NOTHING_LEARNT,
) -> Projection:
    """What one recording's conversion will need, from its header where that is known."""
    size_bytes = recording.size_bytes if recording.size_known else 0
    fetched = surveyed.source.copied_bytes(recording.inputs())
    return project(
        load()[recording.format], header, size_bytes, recording.modality, fetched_bytes=fetched, learnt=learnt
    )


def orders(
    settings: Settings,
    engine: Engine,
    surveyed: Survey,
    run: Run,
    *,
    dataset: Dataset,
    planned: Iterable[PlannedRecording],
    due: Iterable[RecordingState],
    learnt: Mapping[tuple[str, str], Learnt] = NOTHING_LEARNT,
    took: Mapping[tuple[str, str], KindTook] = NOTHING_TOOK,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[ConversionOrder]:
    """One order for each recording that is due now, with an attempt id of its own.

    Parameters
    ----------
    planned
        The plan's conversions; what is due but not among them waits for a later run.
    due
        Pending recordings as the database knows them, after the plan was applied.
    learnt, took
        What ``learnt_kinds`` and ``durations`` gave.
    enough
        Whether no more headers are to be asked for, because the run is to stop.
    """
    ids = {state.path: state.id for state in due}
    base = surveyed.target.addresses(dataset.dataset_id).contract_base
    wanted = {one.recording.path: one for one in planned if one.recording.path in ids}
    found = headers(engine, surveyed.source, (one.recording for one in wanted.values()), enough=enough)
    for recording, header in found:
        one = wanted[recording.path]
        needs = projection_of(surveyed, recording, header, learnt)
        yield ConversionOrder(
            attempt_id=uuid4(),
            recording_id=ids[recording.path],
            run_number=run.number,
            dataset_id=dataset.dataset_id,
            recording=recording,
            source=surveyed.source.address,
            inputs=one.inputs,
            fingerprint=_fingerprint(one.fingerprint, run.versions),
            provenance=provenance_of(surveyed, dataset, store_url(base, recording.zarr)),
            target=surveyed.target.url,
            **_charged(needs),
            fetched_bytes=surveyed.source.copied_bytes(recording.inputs()),
            expected_s=expected_s((recording.format, needs.route.value), recording.size_bytes, took),
            timeout_s=settings.recording_timeout_s,
            updated_utc=utc_stamp(run.started_at),
        )


def _charged(needs: Projection) -> dict[str, Any]:
    """The fields of an order that a projection decides; what is permitted is what is charged."""
    return {
        "route": needs.route,
        "projected_bytes": needs.projected_bytes,
        "permitted_bytes": needs.projected_bytes,
        "floor_bytes": needs.floor_bytes,
        "scratch_bytes": needs.scratch_bytes,
    }


def _fingerprint(source: str, versions: Versions) -> Fingerprint:
    return Fingerprint(source=source, options=versions.options, engine=versions.engine, biosigio=versions.biosigio)


def provenance_of(surveyed: Survey, dataset: Dataset, contract_url: str) -> Provenance:
    """What a store made now says of itself."""
    facts = surveyed.facts
    return Provenance(
        dataset_id=dataset.dataset_id,
        doi=facts.doi,
        license=facts.license,
        citation=facts.citation,
        source_commit=surveyed.commit,
        hed_version=facts.hed_version,
        contract_url=contract_url,
    )
