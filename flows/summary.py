"""How a dataset stands, as a run's last word."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from contract.layout import CATALOG_KEY, events_key, index_key, manifest_key
from db.published import published_snapshot
from flows.request import RunSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Engine

    from contract.codes import FailureCode, PendingReason
    from db.coverage import Coverage
    from db.datasets import Dataset
    from flows.session import Session
    from infra.storage.protocol import Target

__all__ = ["Standing", "documents_of", "standing", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Coverage of a dataset, with the paths of everything that is not served."""

    counts: Coverage
    failed_by_code: Mapping[FailureCode, tuple[str, ...]]
    pending_by_reason: Mapping[PendingReason, tuple[str, ...]]
    has_events: bool


def standing(engine: Engine, dataset: Dataset) -> Standing:
    """How the dataset stands in the database now."""
    failed: defaultdict[FailureCode, list[str]] = defaultdict(list)
    pending: defaultdict[PendingReason, list[str]] = defaultdict(list)
    with published_snapshot(engine, dataset) as snapshot:
        for failure in snapshot.failures():
            failed[failure.code].append(failure.path)
        for waiting in snapshot.pending():
            pending[waiting.reason].append(waiting.path)
        return Standing(
            counts=snapshot.coverage,
            failed_by_code=MappingProxyType({code: tuple(paths) for code, paths in failed.items()}),
            pending_by_reason=MappingProxyType({reason: tuple(paths) for reason, paths in pending.items()}),
            has_events=snapshot.events_row_count > 0,
        )


def documents_of(target: Target, dataset_id: str, *, has_events: bool) -> Mapping[str, str]:
    """Where each document stands at the target, by the names index, manifest, events and catalog."""
    keys = {"index": index_key(dataset_id), "manifest": manifest_key(dataset_id)}
    if has_events:
        keys["events"] = events_key(dataset_id)
    keys["catalog"] = CATALOG_KEY
    return MappingProxyType({name: f"{target.url}/{key}" for name, key in keys.items()})


def summarise(
    session: Session,
    *,
    converted: int,
    changed: bool,
    notes: tuple[str, ...],
    seconds: float,
    unserved: str | None = None,
) -> RunSummary:
    """The last word of a run that published."""
    now = standing(session.engine, session.dataset)
    dataset_id = session.dataset.dataset_id
    return RunSummary(
        dataset_id=dataset_id,
        target=session.survey.target.url,
        run_number=session.run.number,
        discovered=now.counts.discovered,
        stores=now.counts.stores,
        failures=now.counts.failures,
        pending=now.counts.pending,
        converted=converted,
        carried=max(now.counts.stores - converted, 0),
        failed_by_code=now.failed_by_code,
        pending_by_reason=now.pending_by_reason,
        changed=changed,
        published=True,
        documents=documents_of(session.survey.target, dataset_id, has_events=now.has_events),
        notes=(*session.survey.notes, *notes),
        seconds=seconds,
        stopped=session.stop.kind,
        unserved=unserved,
    )
