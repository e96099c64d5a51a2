"""A dataset looked at: what its source holds, what the target serves, and what a run would do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import PurePath
from typing import TYPE_CHECKING

from sqlalchemy import text

from contract.errors import Refused
from contract.layout import ENGINE_VERSION, index_key, is_dataset_id, manifest_key
from db import datasets, recordings
from db.runs import Versions
from flows.dataset_choice import choose
from flows.provenance import provenance
from infra.collector import uncollected
from infra.host import host_memory
from infra.storage import open_target
from tasks.bids.dataset_facts import dataset_facts
from tasks.bids.discovery import discover_source
from tasks.plan.fingerprint import options_fingerprint
from tasks.plan.renames import copyable, with_renames
from tasks.plan.worklist import plan
from tasks.publish.live import compare_live, refuse_foreign
from tasks.sources import SourceAddress, open_source

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Engine

    from db.datasets import Dataset, DatasetFacts
    from db.recordings import RecordingState
    from flows.dataset_choice import Choice
    from flows.request import ReconvertRequest
    from infra.settings import Settings
    from infra.storage.protocol import Target
    from tasks.bids.recording import Ambiguity, Discovery
    from tasks.plan.planned import Plan
    from tasks.publish.live import LostStore
    from tasks.sources.protocol import Source

__all__ = ["Survey", "current_versions", "make_plan", "survey"]

_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One source at one moment, beside the target it goes to.

    Parameters
    ----------
    commit
        40 hex characters that name the source's state.
    notes
        Sentences about what discovery met, for people.
    provenance_fetch_failed
        The catalog API that says its provenance could not be read; what it said before stands.
    """

    source: Source
    target: Target
    discovery: Discovery
    facts: DatasetFacts
    commit: str
    choice: Choice
    notes: tuple[str, ...]
    provenance_fetch_failed: bool = False


def current_versions() -> Versions:
    """What this installation converts with."""
    return Versions(
        zarrmill=version("zarrmill"),
        options=options_fingerprint(),
        engine=ENGINE_VERSION,
        biosigio=version("biosigio"),
    )


@uncollected
def survey(settings: Settings, engine: Engine, request: ReconvertRequest) -> Survey:
    """Read the source's tree once and choose the dataset. Writes nothing.

    Raises
    ------
    Refused
        The source, the target or the dataset id cannot be used.
    """
    source = open_source(
        SourceAddress(url=request.source, commit=request.commit, annex=request.annex, at=request.at),
        settings,
        hash_signals=request.hash_signals,
        allow_dirty=request.allow_dirty,
    )
    target = open_target(request.target, settings)
    discovery = discover_source(source)
    _check_places(source.url, target.url)
    described = dataset_facts(source, discovery, archive_name=settings.archive_name)
    with engine.connect() as c:
        choice = choose(c, given=request.dataset_id, source=source.url, target=target.url)
    commit = source.commit(discovery.matters())
    told = provenance(choice.registered, described.facts)
    return Survey(
        source=source,
        target=target,
        discovery=discovery,
        facts=told.facts,
        commit=commit,
        choice=choice,
        notes=(*_moved(engine, choice, target, commit), *told.notes, *described.notes, *_notes(discovery)),
        provenance_fetch_failed=told.fetch_failed,
    )


def _check_places(source: str, target: str) -> None:
    """Refuse a target inside the dataset, which would write into it, and a dataset inside what the target serves."""
    # as paths, addresses of buckets compare by their segments too
    if PurePath(target).is_relative_to(source):
        raise Refused(f"TARGET {target} lies inside the dataset {source}: name a place outside of it with --to.")
    inner = PurePath(source)
    if inner.is_relative_to(target) and is_dataset_id(inner.relative_to(target).parts[0]):
        raise Refused(f"SOURCE {source} lies where TARGET {target} serves datasets: name another target with --to.")


def _moved(engine: Engine, choice: Choice, target: Target, commit: str) -> tuple[str, ...]:
    """A note for a new dataset whose very state is served under another id already."""
    if choice.registered is not None:
        return ()
    with engine.connect() as c:
        known = datasets.list_datasets(c, target=target.url)
    return tuple(
        f"{one.dataset_id} at {target.url} was made from {one.source} in this very state; if the dataset has moved, "
        f"say so with --dataset-id {one.dataset_id}"
        for one in known
        if one.published is not None and one.published.source_commit == commit
    )


def _undecided(ambiguity: Ambiguity) -> str:
    several = ", ".join(ambiguity.others)
    if ambiguity.chosen is None:
        return f"{ambiguity.recording}: {several} apply equally well, so none of them is used"
    return f"{ambiguity.recording}: {ambiguity.chosen} is used, though {several} would fit as well"


def _notes(discovery: Discovery) -> tuple[str, ...]:
    sentences = [f"{problem.path}: {problem.sentence}" for problem in discovery.problems]
    sentences += [_undecided(ambiguity) for ambiguity in discovery.ambiguities]
    if len(sentences) > _EXAMPLES:
        left = len(sentences) - _EXAMPLES
        return (*sentences[:_EXAMPLES], f"… and {left} more notes on the source")
    return tuple(sentences)


@uncollected
def make_plan(
    engine: Engine,
    surveyed: Survey,
    dataset: Dataset | None,
    request: ReconvertRequest,
    settings: Settings,
    *,
    untrusted: Collection[LostStore] = (),
) -> Plan:
    """What there is to do, from one look at the database and at the target. Writes nothing.

    Parameters
    ----------
    untrusted
        Stores whose objects are not what the database believes.

    Raises
    ------
    Refused
        The target serves a dataset of this id that the database does not know.
    """
    with engine.connect() as c:
        now: datetime = c.execute(text("SELECT zarrmill_now()")).scalar_one()
        states = [] if dataset is None else recordings.snapshot(c, dataset=dataset)
    lost = {store.zarr for store in (*untrusted, *_missing(engine, surveyed, dataset, states))}
    versions = current_versions()
    made = plan(
        surveyed.discovery.recordings,
        surveyed.source.tree(),
        states,
        now=now,
        options=versions.options,
        engine=versions.engine,
        biosigio=versions.biosigio,
        mode=request.mode,
        rebuild_on=request.rebuild_on,
        lost=lost,
        largest_worker_bytes=max(settings.largest_worker_bytes or 0, host_memory().limit_bytes),
    )
    changed = made.source_changed_ids()
    current = {column: getattr(versions, column) for column in request.rebuild_on}
    gone = () if request.mode == "full" else copyable(made, states, versions=current, lost=lost)
    if not changed and not gone:
        return made
    with engine.connect() as c:
        former = recordings.inputs(c, recording_ids=(*changed, *(state.id for state in gone)))
    return with_renames(made.with_changes(former), gone, former)


def _missing(
    engine: Engine, surveyed: Survey, dataset: Dataset | None, states: Sequence[RecordingState]
) -> tuple[LostStore, ...]:
    dataset_id = surveyed.choice.dataset_id
    if dataset is None:
        if any(surveyed.target.etag(key(dataset_id)) is not None for key in (index_key, manifest_key)):
            raise refuse_foreign(dataset_id)
        return ()
    live = compare_live(engine, surveyed.target, dataset, states=states)
    if live.kind == "foreign":
        raise refuse_foreign(dataset_id)
    return live.missing
