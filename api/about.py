"""What the server says of itself: what it is, whether it lives and is ready, its measurements, and the schemas."""

from __future__ import annotations

import logging
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, Response

from api.bodies import ErrorBody
from api.codes import ErrorCode
from api.errors import error
from contract.errors import ZarrmillError
from contract.layout import CATALOG_KEY
from infra.storage.folder import FolderTarget

if TYPE_CHECKING:
    from api.metrics import Metrics
    from api.service import Service

__all__ = ["READ", "about_routes"]

READ = ("GET", "HEAD")
_SCHEMA_HEADERS = {"Cache-Control": "public, max-age=86400"}
_log = logging.getLogger("zarrmill.api")


def about_routes(service: Service, metrics: Metrics) -> APIRouter:
    """The routes beside data."""
    routes = APIRouter(tags=["server"])
    schemas = _schemas()

    @routes.get("/")
    def about() -> dict[str, str]:
        """What this is and where to begin."""
        return {
            "service": "zarrmill",
            "archive": service.settings.archive_name,
            "usage": "/catalog.json, then /<dataset_id>/zarr/index.json",
        }

    @routes.get("/healthz")
    def health() -> dict[str, str]:
        """That the server runs."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {"description": "Something that the server needs does not answer."}})
    def ready() -> Response:
        """Whether the database and the target answer."""
        found = {"database": _database(service), "target": _target(service)}
        is_ready = "unavailable" not in found.values()
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        body = {"status": "ready" if is_ready else "not ready", **found}
        return JSONResponse(body, status_code=status, headers={"Cache-Control": "no-store"})

    @routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    def page() -> Response:
        """Measurements in the text format of Prometheus."""
        return Response(metrics.page(), media_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})

    @routes.get("/schemas/{name}", responses={404: {"model": ErrorBody}}, response_model=dict[str, Any])
    def schema(request: Request, name: str) -> Response:
        """A JSON Schema, such as zarr-index-v3.json or zarr-manifest-v1.json."""
        if name not in schemas:
            available = {"available": sorted(schemas)}
            return error(
                request.scope, HTTPStatus.NOT_FOUND, "Unknown schema", code=ErrorCode.UNKNOWN_SCHEMA, more=available
            )
        return Response(schemas[name], media_type="application/json", headers=_SCHEMA_HEADERS)

    for path, answer in (("/", about), ("/healthz", health), ("/readyz", ready), ("/schemas/{name}", schema)):
        routes.add_api_route(path, answer, methods=["HEAD"], include_in_schema=False)
    return routes


def _database(service: Service) -> str:
    if service.engine is None:
        return "none"
    try:
        with service.reading() as c:
            c.execute(text("SELECT 1"))
    except SQLAlchemyError as trouble:
        _log.warning("not ready, the database: %s", type(trouble).__name__)
        return "unavailable"
    return "ok"


def _target(service: Service) -> str:
    target = service.target
    if isinstance(target, FolderTarget):
        return "ok" if target.root.is_dir() else "none"
    try:
        target.etag(CATALOG_KEY)
    except ZarrmillError as trouble:
        _log.warning("not ready, the target: %s", trouble)
        return "unavailable"
    return "ok"


def _schemas() -> dict[str, bytes]:
    """The checked-in JSON Schemas by file name."""
    folder = resources.files("contract") / "schemas"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".json")}
