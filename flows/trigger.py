"""A request for a dataset's conversion: asked for, turned into what a run is asked, and settled when no run was needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, get_args

from contract.errors import Refused
from db import datasets, policies, requests
from db.approvals import STAMPS
from flows.request import MODES, Mode, ReconvertRequest
from infra.storage import open_target
from tasks.sources import check_commit

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection, Engine

    from db.datasets import Dataset
    from db.requests import Asked, Request, RequestMode
    from db.runs import Run, Versions
    from infra.settings import Settings

__all__ = [
    "LeftBecause",
    "checked_request",
    "claim_for_run",
    "end_without_publishing",
    "known_dataset",
    "refuse_request",
    "run_request",
    "settle_run",
    "settle_unchanged",
    "trigger",
]

LeftBecause = Literal["stopped", "unserved"]
"""Why a run left work that is still wanted: it was asked to stop, or no machine took what was due."""
_COMMIT: Final = re.compile(r"[A-Za-z0-9][\w./+~^@{}-]{0,199}")


def known_dataset(settings: Settings, engine: Engine, *, dataset_id: str, target: str) -> Dataset:
    """The dataset of this id at this target.

    Raises
    ------
    Refused
        It is not known.
    """
    place = open_target(target, settings)
    with engine.connect() as c:
        dataset = datasets.find(c, dataset_id=dataset_id, target=place.url)
    if dataset is None:
        raise Refused(
            f"{dataset_id} at {place.url} is not known here: `zarrmill register SOURCE` makes it known, `zarrmill status` lists what is."
        )
    return dataset


def trigger(
    engine: Engine,
    dataset: Dataset,
    *,
    asked_by: str,
    mode: str = "auto",
    commit: str | None = None,
    rebuild_on: Collection[str] = requests.DEFAULT_REBUILD_ON,
    detail: str | None = None,
) -> Asked:
    """Ask for a dataset's conversion, or with mode ``verify`` for its verification; the request that stands now.

    Raises
    ------
    Refused
        The dataset takes no part, a parameter is wrong, or its source has no such commit; the sentence names it and the way out.
    """
    checked = checked_request(dataset, mode=mode, commit=commit, rebuild_on=rebuild_on)
    with engine.begin() as c:
        return requests.ask(
            c,
            dataset_pk=dataset.pk,
            mode=checked,
            asked_by=asked_by,
            commit=commit,
            rebuild_on=rebuild_on,
            detail=detail,
        )


def checked_request(
    dataset: Dataset,
    *,
    mode: str,
    commit: str | None = None,
    rebuild_on: Collection[str] = requests.DEFAULT_REBUILD_ON,
) -> RequestMode:
    """The mode, once it is sure that this can be asked of the dataset.

    Raises
    ------
    Refused
        As ``trigger`` does.
    """
    checked = _checked_mode(mode)
    if commit is not None and not _COMMIT.fullmatch(commit):
        raise Refused(
            f"commit {commit!r} is no name of a commit, branch or tag; leave it out for the source as it then stands."
        )
    if unknown := set(rebuild_on) - set(STAMPS):
        raise Refused(f"rebuild_on names {min(unknown)!r}; it knows {', '.join(STAMPS)}.")
    if not dataset.active:
        state = "is withdrawn" if dataset.withdrawn_at else "takes no part"
        raise Refused(
            f"{dataset.dataset_id} {state}, so nothing is done for it; `zarrmill dataset set {dataset.dataset_id} --active yes` changes that."
        )
    if commit is not None:
        check_commit(dataset.source, commit)
    return checked


def _checked_mode(mode: str) -> RequestMode:
    for known in requests.MODES:
        if mode == known:
            return known
    raise Refused(f"mode {mode!r} is none of {', '.join(requests.MODES)}.")


def run_request(dataset: Dataset, request: Request) -> ReconvertRequest:
    """What a run is asked that does what a request asks."""
    if request.mode not in get_args(Mode):
        raise Refused(f"a request to {request.mode} is none for a conversion")
    mode: Mode = next(known for known in MODES if known == request.mode)
    return ReconvertRequest(
        source=dataset.source,
        target=dataset.target,
        dataset_id=dataset.dataset_id,
        mode=mode,
        commit=request.commit,
        annex=dataset.annex,
        rebuild_on=request.rebuild_on,
    )


def claim_for_run(c: Connection, *, run: Run, commits: Collection[str | None]) -> Request | None:
    """The request that a run which just got its dataset does on its way, if one waits."""
    return requests.claim(c, run=run, commits=[commit for commit in commits if commit])


def settle_run(
    c: Connection, *, run: Run, rebuilt: Collection[str], stopped: bool, left: LeftBecause | None = None
) -> None:
    """Move policy and request of a run that published, in the transaction that ends it.

    ``left`` says why it ended before its work: then its request waits again, and nothing else moves.

    A run that was stopped early brought nothing to the present converter: its stamp stays, and what it left is due soon. So is
    what a comparison of objects found damaged.
    """
    if left is not None and requests.wait_again(c, run=run, unserved=left == "unserved"):
        return
    ended = requests.end_of_run(c, run=run)
    if run.mode == "reconcile":
        policies.settle(c, dataset_pk=run.dataset_pk, versions=run.versions, rebuilt=None, run=run)
    if run.mode not in MODES:
        return
    policies.settle(
        c,
        dataset_pk=run.dataset_pk,
        versions=run.versions,
        rebuilt=() if stopped else STAMPS if run.mode == "full" else rebuilt,
        run=run,
        version=ended.version if ended else None,
    )


def end_without_publishing(c: Connection, *, run: Run, error: str, counts: bool, stopped: bool = False) -> None:
    """Move policy and request of a run that published nothing; ``counts``: it is trouble, and not somebody's wish.

    Of one that was asked to stop, and is still wanted, the request waits again.
    """
    if stopped and requests.wait_again(c, run=run, unserved=False):
        return
    ended = requests.end_of_run(c, run=run, error=error)
    if counts and run.mode in MODES:
        policies.trouble(c, dataset_pk=run.dataset_pk, version=ended.version if ended else None)


def settle_unchanged(
    c: Connection, *, dataset: Dataset, asked: ReconvertRequest, commit: str, versions: Versions
) -> None:
    """Move policy and request of a dataset at which a closer look found nothing to do."""
    commits = [name for name in (asked.commit, commit) if name]
    done = requests.settle(c, dataset_pk=dataset.pk, mode=asked.mode, commits=commits)
    policies.settle(
        c,
        dataset_pk=dataset.pk,
        versions=versions,
        rebuilt=STAMPS if asked.mode == "full" else asked.rebuild_on,
        version=done.version if done else None,
    )


def refuse_request(engine: Engine, request: Request, *, error: str) -> None:
    """End a request that could not be begun, because its source or target cannot be used; the dataset backs off."""
    with engine.begin() as c:
        refused = requests.refuse(c, pk=request.pk, error=error)
        if refused is not None and refused.work == "convert":
            policies.trouble(c, dataset_pk=refused.dataset_pk, version=refused.version)
