"""The flow ``reconcile``: looks at every dataset, asks for what each needs, and says so in one line."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from contract.errors import Refused, StorageError
from contract.layout import index_key
from contract.redact import error_line
from db import alarms, approvals, policies, recordings, requests
from db.standings import DatasetStanding, clock, standings
from flows.survey import current_versions
from infra.storage import open_target
from tasks.policy.need import DatasetSeen, decide, gate_is_open
from tasks.publish.live import foreign
from tasks.sources import SourceAddress
from tasks.sources.version import source_version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.runs import Versions
    from infra.settings import Settings
    from tasks.policy.need import LiveIndex, Need

__all__ = ["ReconcileReport", "Seen", "ask_for_needs", "look_at", "reconcile"]

log = logging.getLogger("zarrmill.flows.reconcile")

_ASKED_BY = "reconcile"
_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a look at a dataset's source and target found.

    ``version`` None: the source could not be looked at, and ``trouble`` says why.
    """

    standing: DatasetStanding
    version: str | None
    index: LiveIndex
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileReport:
    """What one reconciliation found and asked for.

    Parameters
    ----------
    seen, inactive, paused
        Datasets registered; those that take no part; those that are paused.
    enqueued
        Requests for new datasets, new versions and lost indexes.
    recovered
        Requests whose run was never heard of again, waiting once more.
    unreadable, foreign
        Sources that could not be looked at; targets that serve an index which is not ours.
    engine_stale, engine_requeued, engine_held
        Datasets made with another converter; requests for them; those that wait for an operator's word.
    pending_outstanding, pending_requeued, pending_exhausted
        Datasets with a round or a wait before them; requests for those whose time has come; those whose rounds are over.
    given_up
        Datasets whose last five runs published nothing.
    """

    seen: int = 0
    inactive: int = 0
    paused: int = 0
    enqueued: int = 0
    recovered: int = 0
    unreadable: int = 0
    foreign: int = 0
    engine: str = ""
    engine_stale: int = 0
    engine_requeued: int = 0
    engine_held: int = 0
    pending_outstanding: int = 0
    pending_requeued: int = 0
    pending_exhausted: int = 0
    given_up: int = 0
    examples: tuple[str, ...] = ()

    def line(self) -> str:
        """All of it in one line of ``key=value``."""
        told = [f"{each.name}={getattr(self, each.name)}" for each in fields(self) if each.name != "examples"]
        return " ".join(["[reconcile]", *told, *(f"unreadable:{one}" for one in self.examples)])


def reconcile(settings: Settings, engine: Engine) -> ReconcileReport:
    """Look at every dataset and ask for what it needs.

    Sources and targets are looked at outside of transactions: a repository's HEAD, a folder's sizes and times, a bucket's
    listing, one request for each index. What is asked for is decided and written in one transaction. One source that cannot be
    looked at is noted, and hinders no other dataset.
    """
    with engine.begin() as c:
        recovered = requests.recover(c)
        known = standings(c)
    found = [look_at(settings, engine, one) for one in known]
    with engine.begin() as c:
        report = ask_for_needs(c, found, versions=current_versions(), recovered=recovered)
    log.info("%s", report.line())
    return report


def look_at(settings: Settings, engine: Engine, standing: DatasetStanding) -> Seen:
    """The source's version and the index at the target; nothing of a dataset that takes no part is looked at."""
    dataset = standing.dataset
    if not dataset.active:
        return Seen(standing=standing, version=None, index="unknown")
    try:
        version = source_version(SourceAddress(url=dataset.source, annex=dataset.annex), settings)
    except (Refused, StorageError, OSError) as error:
        return Seen(standing=standing, version=None, index="unknown", trouble=_sentence(error))
    return Seen(standing=standing, version=version, index=_index_of(settings, engine, standing))


def _index_of(settings: Settings, engine: Engine, standing: DatasetStanding) -> LiveIndex:
    dataset = standing.dataset
    if dataset.published is None:
        return "unknown"
    key = index_key(dataset.dataset_id)
    try:
        target = open_target(dataset.target, settings)
        etag = target.etag(key)
        if etag is None:
            return "absent"
        if etag == standing.index_etag:
            return "ours"
        live = target.read(key)
        with engine.connect() as c:
            states = recordings.snapshot(c, dataset=dataset)
        return "ours" if live is not None and not foreign(live, states) else "foreign"
    except (Refused, StorageError, OSError) as error:
        log.warning("the index of %s could not be looked at: %s", dataset.dataset_id, error_line(error))
        return "unknown"


def _sentence(error: Exception) -> str:
    return error.sentence if isinstance(error, Refused | StorageError) else error_line(error)


def ask_for_needs(c: Connection, found: Collection[Seen], *, versions: Versions, recovered: int = 0) -> ReconcileReport:
    """Note what was seen, ask for what each dataset needs, open and close alarms; what came of it.

    ``versions`` is the present converter's: what was made with other options or another engine is stale, and with another
    biosigIO when that is approved.
    """
    now = clock(c)
    watched = [one.standing.dataset for one in found if one.standing.dataset.active]
    stale = approvals.stale(c, versions=versions, columns=approvals.STAMPS[:2])
    word = {one.rebuild_column for one in approvals.approved(c, versions=versions)}
    if "biosigio" in word:
        stale = approvals.stale(c, versions=versions, columns=approvals.STAMPS)
    unapproved = [pk for pk, columns in stale.items() if not word.issuperset(columns)]
    is_open = gate_is_open(stale_count=len(unapproved), approved=not unapproved, limit=approvals.GATED_ABOVE)
    asked: list[Need] = []
    for one in found:
        _note_seen(c, one)
        columns = stale.get(one.standing.dataset.pk, ())
        need = decide(_seen(one, columns, gate_open=is_open or word.issuperset(columns)), now=now)
        if need is not None:
            asked.append(need)
            _ask(c, one, need)
    report = replace(
        _report(found, asked),
        recovered=recovered,
        engine=versions.engine,
        engine_stale=len(stale),
        engine_held=0 if is_open else len(unapproved),
    )
    _raise_alarms(c, found, watched, held=report.engine_held)
    return report


def _note_seen(c: Connection, one: Seen) -> None:
    pk = one.standing.dataset.pk
    if one.version is not None:
        policies.note_seen(c, dataset_pk=pk, version=one.version)
    elif one.trouble is not None:
        policies.note_unreadable(c, dataset_pk=pk, error=one.trouble)
    else:
        policies.note_reconciled(c, dataset_pk=pk)


def _seen(one: Seen, columns: tuple[str, ...], *, gate_open: bool) -> DatasetSeen:
    standing = one.standing
    policy, dataset = standing.policy, standing.dataset
    return DatasetSeen(
        takes_part=dataset.active and not standing.paused,
        at_work=standing.at_work,
        state=policy.state,
        next_at=policy.next_at,
        has_run=policy.engine is not None,
        is_published=dataset.published is not None,
        version=one.version,
        done_version=policy.done_version,
        index=one.index,
        stale=columns,
        gate_open=gate_open,
        rebuilding=standing.rebuilding,
    )


def _ask(c: Connection, one: Seen, need: Need) -> None:
    requests.ask(
        c,
        dataset_pk=one.standing.dataset.pk,
        mode=need.mode,
        why=need.why,
        asked_by=_ASKED_BY,
        detail=need.detail,
        rebuild_on=need.rebuild_on,
        version=one.version,
    )


def _report(found: Collection[Seen], asked: Collection[Need]) -> ReconcileReport:
    states = [one.standing.policy.state for one in found if one.standing.dataset.active]
    unreadable = [one for one in found if one.trouble is not None]
    return ReconcileReport(
        seen=len(found),
        inactive=sum(not one.standing.dataset.active for one in found),
        paused=sum(one.standing.paused for one in found),
        enqueued=_count(asked, "new", "version", "index"),
        unreadable=len(unreadable),
        foreign=sum(one.index == "foreign" for one in found),
        engine_requeued=_count(asked, "engine"),
        pending_outstanding=sum(state in {"round", "soon", "backoff"} for state in states),
        pending_requeued=_count(asked, "retry_round", "not_attempted", "backoff"),
        pending_exhausted=states.count("exhausted"),
        given_up=states.count("given_up"),
        examples=tuple(one.standing.dataset.dataset_id for one in unreadable[:_EXAMPLES]),
    )


def _count(asked: Iterable[Need], *whys: str) -> int:
    return sum(need.why in whys for need in asked)


def _raise_alarms(c: Connection, found: Collection[Seen], watched: Collection[Dataset], *, held: int) -> None:
    """Open an alarm for each dataset that cannot be worked on and for a held engine; close those that are over."""
    wrong: dict[str, dict[str, str]] = {"source_unreadable": {}, "index_foreign": {}, "given_up": {}, "exhausted": {}}
    active = {dataset.pk for dataset in watched}
    for one in found:
        if one.standing.dataset.pk not in active:
            continue
        subject = f"{one.standing.dataset.dataset_id} at {one.standing.dataset.target}"[:250]
        if one.trouble is not None:
            wrong["source_unreadable"][subject] = one.trouble
        if one.index == "foreign":
            wrong["index_foreign"][subject] = (
                "The index at the target names recordings that are not known here: adopt it."
            )
        if one.standing.policy.state == "given_up":
            wrong["given_up"][subject] = "Five runs in a row published nothing; `zarrmill requeue` tries again."
        if one.standing.policy.state == "exhausted":
            wrong["exhausted"][subject] = "Five retry rounds were in vain; `zarrmill requeue` tries again."
    for kind, subjects in wrong.items():
        alarms.end_all_but(c, kind=kind, subjects=list(subjects))
        for subject, detail in subjects.items():
            alarms.begin(c, kind=kind, subject=subject, detail=detail)
    if held:
        detail = f"{held} datasets were made with another converter and wait: `zarrmill engine preview`, then `zarrmill engine approve`."
        alarms.begin(c, kind="engine_gate", detail=detail)
    else:
        alarms.end(c, kind="engine_gate")
