"""What operators look at over HTTP: what was done, what waits, what is paused and drained."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import JSONResponse, Response

from api.admin import ERRORS
from api.operators import allowed
from contract.layout import DATASET_ID_PATTERN
from contract.times import utc_stamp
from db import approvals, drains, operators, pauses, requests
from flows.survey import current_versions

if TYPE_CHECKING:
    from api.service import Service

__all__ = ["admin_reading_routes"]


def admin_reading_routes(service: Service) -> APIRouter:
    """The routes of ``/admin`` that change nothing."""
    reads = [Depends(allowed(service.settings, "read"))]
    routes = APIRouter(prefix="/admin", tags=["operators"], responses=ERRORS, dependencies=reads)

    @routes.get("/history", response_model=dict[str, Any])
    def history(
        subject: Annotated[str | None, Query(pattern=DATASET_ID_PATTERN)] = None,
        limit: Annotated[int, Query(description="Taken into 1 to 200.")] = 50,
    ) -> Response:
        """The last actions, or those on one dataset, the newest first."""
        with service.reading() as c:
            return _told("actions", operators.last_actions(c, subject=subject, limit=min(max(limit, 1), 200)))

    @routes.get("/requests", response_model=dict[str, Any])
    def waiting() -> Response:
        """The requests that wait or run, the first asked first."""
        with service.reading() as c:
            return _told("requests", requests.listed(c, limit=200))

    @routes.get("/pauses", response_model=dict[str, Any])
    def paused() -> Response:
        """What is paused."""
        with service.reading() as c:
            return _told("pauses", pauses.current(c))

    @routes.get("/drains", response_model=dict[str, Any])
    def drained() -> Response:
        """What is drained."""
        with service.reading() as c:
            return _told("drains", drains.current(c))

    @routes.get("/engine", response_model=dict[str, Any])
    def engine() -> Response:
        """What is approved of the present engine."""
        with service.reading() as c:
            return _told("approvals", approvals.approved(c, versions=current_versions()))

    return routes


def _told(name: str, rows: list[Any]) -> Response:
    found = [{key: _json(value) for key, value in asdict(row).items()} for row in rows]
    return JSONResponse({name: found, "count": len(found)}, headers={"Cache-Control": "no-store"})


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_stamp(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, UUID) else value
