"""What operators do: each is shown unless it is to be executed, and leaves a row in the history either way."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from contract.codes import FailureCode, PendingReason
from contract.errors import Refused
from db import approvals, datasets, operators, pauses
from db.approvals import STAMPS
from db.catalog import catalog_rows
from db.requeue import Chosen, named, requeue, would_requeue
from flows.survey import current_versions
from infra.storage import open_target
from tasks.catalog import listed_datasets, publish_catalog
from tasks.policy.need import gate_is_open

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Engine

    from db.approvals import Cost
    from db.datasets import Dataset
    from db.requeue import Requeued
    from db.runs import Versions
    from infra.settings import Settings

__all__ = [
    "STATES",
    "CatalogAction",
    "EnginePreview",
    "Operator",
    "OtherCount",
    "OtherStanding",
    "approve_engine",
    "check_standing_change",
    "preview_engine",
    "publish_catalog_now",
    "requeue_recordings",
    "set_pause",
    "set_standing",
]

STATES = ("clean", "round", "soon", "exhausted", "backoff", "given_up", "terminal")
"""States of a dataset's policy, by which datasets can be chosen."""
_MOST_NOTED = 50


class OtherStanding(Refused):
    """What an action would concern stands otherwise than the one who asks has seen."""

    def __init__(self) -> None:
        super().__init__("What this would concern has changed since you looked; look again.")


class OtherCount(Refused):
    """An action would concern another number of recordings than the one who asks has seen."""

    def __init__(self, count: int) -> None:
        super().__init__(f"It would be {count} recordings by now; look again.")
        self.count = count


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Who acts, and why."""

    name: str
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePreview:
    """What bringing every dataset to the present converter would take.

    Parameters
    ----------
    stale
        By column, the datasets whose stamp is another than the present value.
    unapproved
        Columns that some dataset is stale by and that nobody has approved.
    held
        Whether the reconcile flow leaves the stale datasets alone until somebody approves.
    """

    versions: Versions
    stale: Mapping[str, int]
    unapproved: tuple[str, ...]
    held: bool
    cost: Cost
    approved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAction:
    """Datasets that the catalog of a target comes to list, and those that it gains and loses by that."""

    target: str
    count: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: bool


def requeue_recordings(
    engine: Engine,
    chosen: Chosen,
    operator: Operator,
    *,
    execute: bool,
    expect: int | None = None,
    seen: str | None = None,
) -> list[Requeued]:
    """Make chosen recordings due again and ask for a run of each dataset; without ``execute`` only say which.

    ``seen`` is the digest of ``db.requeue.named`` that the one who asks has seen.

    Raises
    ------
    Refused
        A code, reason or state is none.
    OtherCount
        It would be another number of recordings than ``expect``; nothing is done.
    OtherStanding
        They are others than those of ``seen``, or stand otherwise; nothing is done.
    """
    _check("--code", chosen.codes, tuple(FailureCode))
    _check("--reason", chosen.reasons, tuple(PendingReason))
    _check("--status", chosen.states, STATES)
    asked = chosen
    with engine.begin() as c:
        if execute and seen is not None:
            recordings, standing = named(c, chosen=chosen)
            if standing != seen:
                raise OtherStanding
            chosen = replace(chosen, recordings=frozenset(recordings))  # not what has failed since then
        if execute:
            found = requeue(c, chosen=chosen, asked_by=operator.name, detail=operator.why)
        else:
            found = would_requeue(c, chosen=chosen)
        count = sum(one.recordings for one in found)
        if execute and expect not in (None, count):
            raise OtherCount(count)  # which takes back what was moved
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="requeue",
            executed=execute,
            subject=found[0].dataset_id if len(found) == 1 else None,
            parameters=_parameters(asked),
            counts={"datasets": len(found), "recordings": count},
        )
    return found


def _parameters(chosen: Chosen) -> dict[str, list[str] | list[int]]:
    told: dict[str, list[str] | list[int]] = {
        name: sorted(getattr(chosen, name)) for name in ("states", "codes", "reasons")
    }
    if chosen.recordings is not None:
        told["recordings"] = sorted(chosen.recordings)[:_MOST_NOTED]
    return told


def _check(option: str, given: Collection[str], known: Collection[str]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise Refused(f"{option} knows {', '.join(known)}, not {unknown[0]!r}")


def set_pause(engine: Engine, dataset: Dataset | None, operator: Operator, *, paused: bool, execute: bool) -> bool:
    """Pause or resume a dataset, or with None everything; whether that changes, or would change, anything."""
    with engine.begin() as c:
        standing = pauses.current(c)
        key = (None, None) if dataset is None else (dataset.dataset_id, dataset.target)
        changes = any((one.dataset_id, one.target) == key for one in standing) is not paused
        if execute and paused:
            changes = pauses.pause(c, dataset=dataset, paused_by=operator.name, why=operator.why)
        elif execute:
            changes = pauses.resume(c, dataset=dataset)
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="pause" if paused else "resume",
            executed=execute,
            subject=None if dataset is None else dataset.dataset_id,
            counts={"changed": int(changes)},
        )
    return changes


def preview_engine(
    engine: Engine, *, versions: Versions | None = None, columns: Collection[str] = STAMPS
) -> EnginePreview:
    """How many datasets were made with another converter, and what making those anew would take that are stale by ``columns``.

    Writes nothing.
    """
    current = versions or current_versions()
    with engine.connect() as c:
        stale = approvals.stale(c, versions=current, columns=STAMPS)
        word = {one.rebuild_column for one in approvals.approved(c, versions=current)}
        gated = approvals.stale(c, versions=current, columns=STAMPS[:2])
        left = sum(not word.issuperset(columns) for columns in gated.values())
        cost = approvals.preview(c, datasets=[one for one, by in stale.items() if set(by) & set(columns)])
    counted = Counter(column for columns in stale.values() for column in columns)
    return EnginePreview(
        versions=current,
        stale=dict(counted),
        unapproved=tuple(sorted(set(counted) - word)),
        held=not gate_is_open(stale_count=left, approved=left == 0, limit=approvals.GATED_ABOVE),
        cost=cost,
    )


def approve_engine(
    engine: Engine,
    operator: Operator,
    *,
    columns: Collection[str] = (),
    execute: bool,
    versions: Versions | None = None,
) -> EnginePreview:
    """Let all datasets that are stale by these columns be made anew, by the next reconciliation; without ``execute`` only say it.

    With no ``columns`` named, options and engine. biosigIO is approved by name alone.

    Raises
    ------
    Refused
        A column is none.
    """
    _check("--on", columns, STAMPS)
    named = sorted(set(columns)) or list(STAMPS[:2])
    seen = preview_engine(engine, versions=versions, columns=named)
    with engine.begin() as c:
        approved = 0
        if execute:
            approved = approvals.approve(
                c,
                versions=seen.versions,
                columns=named,
                approved_by=operator.name,
                why=operator.why,
                cost=seen.cost,
            )
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="engine approve",
            executed=execute,
            parameters={column: getattr(seen.versions, column) for column in named},
            counts={"approved": approved, **asdict(seen.cost)},
        )
    return EnginePreview(
        versions=seen.versions,
        stale=seen.stale,
        unapproved=seen.unapproved,
        held=seen.held,
        cost=seen.cost,
        approved=approved,
    )


def publish_catalog_now(
    settings: Settings, engine: Engine, operator: Operator, *, target: str, execute: bool
) -> CatalogAction:
    """Bring the catalog of a target up to date; without ``execute`` only say what it would gain and lose."""
    place = open_target(target, settings)
    listed = set(listed_datasets(place) or ())
    with engine.connect() as c:
        rows = {row.dataset_id for row in catalog_rows(c, target=place.url)}
        known = {dataset.dataset_id for dataset in datasets.list_datasets(c, target=place.url)}
    coming = rows | (listed - known)
    changed = publish_catalog(engine, place).changed if execute else False
    done = CatalogAction(
        target=place.url,
        count=len(coming),
        added=tuple(sorted(coming - listed)),
        removed=tuple(sorted(listed - coming)),
        changed=changed,
    )
    with engine.begin() as c:
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="catalog",
            executed=execute,
            parameters={"target": place.url},
            counts={"datasets": done.count, "added": len(done.added), "removed": len(done.removed)},
        )
    return done


def set_standing(
    engine: Engine, dataset: Dataset, operator: Operator, *, visibility: str | None = None, active: bool | None = None
) -> Dataset:
    """Say who may see a dataset and whether it takes part; how it then stands.

    Raises
    ------
    Refused
        It would be private where anybody can read it, or is published in a folder.
    """
    check_standing_change(dataset, visibility=visibility)
    with engine.begin() as c:
        done = datasets.set_standing(c, dataset=dataset, visibility=visibility, active=active)
        operators.note(
            c,
            acted_by=operator.name,
            why=operator.why,
            verb="dataset set",
            executed=True,
            subject=dataset.dataset_id,
            parameters={"visibility": visibility, "active": active, "target": dataset.target},
        )
    return done


def check_standing_change(dataset: Dataset, *, visibility: str | None) -> None:
    """Make sure that a dataset may be called so.

    Raises
    ------
    Refused
        It would be private where anybody can read it, or is published in a folder.
    """
    if visibility not in (None, "public", "private"):
        raise Refused(f"--visibility is public or private, not {visibility!r}")
    if visibility == "private" and dataset.anonymous:
        raise Refused(
            f"{dataset.dataset_id} at {dataset.target} can be read by anybody, so calling it private would hide nothing: remove what "
            f"is served with `zarrmill withdraw {dataset.dataset_id} --execute`, then register its source at a target that only you can read."
        )
    in_folder = not dataset.target.startswith("s3://")
    if visibility == "private" and dataset.visibility == "public" and dataset.published is not None and in_folder:
        raise Refused(
            f"{dataset.dataset_id} is public, and what is published of it at {dataset.target} may be served to anybody: remove it with "
            f"`zarrmill withdraw {dataset.dataset_id} --execute`, then call it private, or register its source at a target that only you can read."
        )
