"""What operators do over HTTP. Each action leaves a row of history with who and why."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Depends

from api.admin_bodies import Acknowledge, Drain, Requeue, Trigger, Why
from api.bodies import ErrorBody
from api.errors import ApiError
from api.operators import allowed
from contract.errors import ZarrmillError
from contract.layout import is_dataset_id
from db import datasets, drains, operators
from db.requeue import Chosen
from flows import operations
from flows.operations import Operator, OtherCount
from flows.trigger import trigger
from tasks.catalog import publish_catalog

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from api.service import Service
    from db.dataset_values import Dataset

__all__ = ["admin_routes"]

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 401, 403, 404, 405, 408, 409, 413, 429, 500, 503)
}


def admin_routes(service: Service) -> APIRouter:
    """The routes of ``/admin`` that change something."""
    routes = APIRouter(prefix="/admin", tags=["operators"], responses=ERRORS)
    _add_requests(routes, service)
    _add_pauses(routes, service)
    _add_requeue(routes, service)
    _add_machines(routes, service)
    _add_engine(routes, service)
    return routes


def _dataset(c: Connection, service: Service, dataset_id: str) -> Dataset:
    found = datasets.find(c, dataset_id=dataset_id, target=service.target.url) if is_dataset_id(dataset_id) else None
    if found is None:
        raise ApiError(HTTPStatus.NOT_FOUND, "Dataset not found")
    return found


def _add_requests(routes: APIRouter, service: Service) -> None:
    who = Depends(allowed(service.settings, "operate"))

    def ask(dataset_id: str, by: str, verb: str, asked: Trigger, mode: str) -> dict[str, Any]:
        with service.reading() as c:
            dataset = _dataset(c, service, dataset_id)
        found = trigger(
            service.state,
            dataset,
            asked_by=by,
            mode=mode,
            commit=asked.commit,
            rebuild_on=asked.rebuild_on,
            detail=asked.why,
        )
        told = {"request": found.request.pk, "mode": found.request.mode, "coalesced": found.coalesced}
        commits = {"commit": found.request.commit, "former_commit": found.former_commit}
        with service.state.begin() as c:
            said = asked.model_dump(exclude={"why"}) | {"mode": mode}
            operators.note(
                c,
                acted_by=by,
                verb=verb,
                executed=True,
                subject=dataset_id,
                why=asked.why,
                parameters=said,
                counts=told,
            )
        return {"ok": True, "dataset_id": dataset_id, **told, "widened": found.widened, **commits}

    @routes.post("/datasets/{dataset_id}/trigger")
    def trigger_one(
        dataset_id: str, asked: Annotated[Trigger, Body(default_factory=Trigger)], by: str = who
    ) -> dict[str, Any]:
        """Ask for a conversion. While one waits, this is a part of it."""
        return ask(dataset_id, by, "trigger", asked, asked.mode)

    @routes.post("/datasets/{dataset_id}/verify")
    def verify_one(dataset_id: str, asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """Ask that what is served be compared with its source now."""
        return ask(dataset_id, by, "verify", Trigger(why=asked.why), "verify")


def _add_pauses(routes: APIRouter, service: Service) -> None:
    who = Depends(allowed(service.settings, "operate"))

    def act(dataset_id: str | None, by: str, why: str | None, *, pausing: bool) -> dict[str, Any]:
        with service.reading() as c:
            dataset = None if dataset_id is None else _dataset(c, service, dataset_id)
        operator = Operator(name=by, why=why)
        changed = operations.set_pause(service.state, dataset, operator, paused=pausing, execute=True)
        return {"ok": True, "dataset_id": dataset_id, "paused": pausing, "changed": changed}

    @routes.post("/datasets/{dataset_id}/pause")
    def pause_one(dataset_id: str, asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """Let a dataset start nothing by itself."""
        return act(dataset_id, by, asked.why, pausing=True)

    @routes.post("/datasets/{dataset_id}/resume")
    def resume_one(dataset_id: str, asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """End the pause of a dataset."""
        return act(dataset_id, by, asked.why, pausing=False)

    @routes.post("/pause")
    def pause_all(asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """Let nothing start by itself."""
        return act(None, by, asked.why, pausing=True)

    @routes.post("/resume")
    def resume_all(asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """End the pause of everything; datasets that are paused by themselves stay so."""
        return act(None, by, asked.why, pausing=False)


def _add_requeue(routes: APIRouter, service: Service) -> None:
    who = Depends(allowed(service.settings, "operate"))

    @routes.post("/requeue")
    def requeue_chosen(asked: Annotated[Requeue, Body(default_factory=Requeue)], by: str = who) -> dict[str, Any]:
        """Make recordings due again. Nothing is done without ``execute``: the answer says what would be."""
        if asked.names_nothing:
            raise ApiError(
                HTTPStatus.BAD_REQUEST,
                'Name what is to be requeued: datasets, states, codes or reasons; or "all": true.',
            )
        with service.reading() as c:
            known = {one.dataset_id: one.pk for one in datasets.list_datasets(c, target=service.target.url)}
        if unknown := sorted(set(asked.datasets) - set(known)):
            raise ApiError(HTTPStatus.NOT_FOUND, "Dataset not found", detail={"unknown": unknown})
        chosen = Chosen(
            datasets=frozenset(known[one] for one in asked.datasets or known),
            states=frozenset(asked.states),
            codes=frozenset(asked.codes),
            reasons=frozenset(asked.reasons),
        )
        try:
            found = operations.requeue_recordings(
                service.state, chosen, Operator(name=by, why=asked.why), execute=asked.execute, expect=asked.expect
            )
        except OtherCount as other:
            raise ApiError(HTTPStatus.CONFLICT, other.sentence, detail={"recordings": other.count}) from other
        count = sum(one.recordings for one in found)
        shown = [
            {"dataset_id": one.dataset_id, "state": one.state, "recordings": one.recordings} for one in found[:200]
        ]
        return {"ok": True, "executed": asked.execute, "count": len(found), "recordings": count, "datasets": shown}


def _add_machines(routes: APIRouter, service: Service) -> None:
    who = Depends(allowed(service.settings, "operate"))

    @routes.post("/drain")
    def drain(asked: Annotated[Drain, Body(default_factory=Drain)], by: str = who) -> dict[str, Any]:
        """Let a worker, or all, take nothing new; with ``undo`` end that."""
        with service.state.begin() as c:
            if not asked.undo and asked.worker is not None and not drains.seen(c, worker=asked.worker):
                raise ApiError(HTTPStatus.NOT_FOUND, "No worker of this name has been heard of")
            if asked.undo:
                count = drains.undo(c, worker=asked.worker)
            else:
                grace = service.settings.stop_grace_s if asked.grace_s is None else asked.grace_s
                drains.ask(
                    c, worker=asked.worker or drains.EVERY_WORKER, grace_s=grace, why=asked.why or f"asked for by {by}"
                )
                count = 1
            said = {"worker": asked.worker, "grace_s": asked.grace_s, "undo": asked.undo}
            verb, counts = ("drain undo", {"ended": count}) if asked.undo else ("drain", {"drains": count})
            operators.note(c, acted_by=by, verb=verb, executed=True, why=asked.why, parameters=said, counts=counts)
            now = [{"worker": one.worker, "grace_s": one.grace_s, "why": one.why} for one in drains.current(c)]
        return {"ok": True, "count": count, "drains": now}

    @routes.post("/zarr-catalog/publish")
    def publish(asked: Annotated[Why, Body(default_factory=Why)], by: str = who) -> dict[str, Any]:
        """Bring the catalog up to date now."""
        try:
            published = publish_catalog(service.state, service.target)
        except ZarrmillError as trouble:
            sentence = f"Failed to publish zarr catalog: {trouble.sentence}"
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, sentence) from trouble
        counts = {"count": published.count, "bytes": published.size_bytes}
        with service.state.begin() as c:
            operators.note(c, acted_by=by, verb="publish catalog", executed=True, why=asked.why, counts=counts)
        return {"ok": True, **counts, "changed": published.changed}


def _add_engine(routes: APIRouter, service: Service) -> None:
    who = Depends(allowed(service.settings, "operate"))

    @routes.post("/engine/acknowledge")
    def acknowledge(asked: Annotated[Acknowledge, Body(default_factory=Acknowledge)], by: str = who) -> dict[str, Any]:
        """Approve that what was made with another engine is made anew. Nothing is done without ``execute``."""
        seen = operations.approve_engine(
            service.state, Operator(name=by, why=asked.why), columns=asked.columns, execute=asked.execute
        )
        cost = seen.cost
        told = {"datasets": cost.datasets, "recordings": cost.recordings, "bytes": cost.size_bytes}
        return {"ok": True, "executed": asked.execute, **told, "hours": round(cost.hours, 2)}
