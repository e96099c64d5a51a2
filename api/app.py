"""The read-only web server of a target: stores, documents, catalog and schemas."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.errors import add_error_handlers, not_found
from api.gateway import serve_object
from api.recipes import recipe_routes
from contract.layout import CATALOG_KEY, is_dataset_id
from infra.storage.opened import opener
from tasks.read.place import target_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.settings import Settings
    from infra.storage.opened import Opened
    from infra.storage.protocol import Target

__all__ = ["create_app"]

_SCHEMA_HEADERS = {"Cache-Control": "public, max-age=86400"}
_READ = ["GET", "HEAD"]
_EXPOSED = ["ETag", "Content-Length", "Content-Range", "Accept-Ranges"]


def create_app(target: Target, settings: Settings) -> FastAPI:
    """An application that serves what stands at ``target`` and writes nothing.

    Parameters
    ----------
    target
        A folder that does not exist yet is 404 throughout until it does.
    settings
        Its ``archive_name`` is shown at ``/``.
    """
    app = FastAPI(title="zarrmill", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    add_error_handlers(app)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"],
        allow_methods=_READ,
        allow_headers=["Range", "If-None-Match", "If-Range"],
        expose_headers=_EXPOSED,
        max_age=86400,
    )
    _add_service_routes(app, settings.archive_name)
    app.include_router(recipe_routes(target_place(target)))
    _add_data_routes(app, opener(target))
    return app


def _add_service_routes(app: FastAPI, archive_name: str) -> None:
    schemas = _schemas()

    @app.api_route("/", methods=_READ)
    def about() -> dict[str, str]:
        return {
            "service": "zarrmill",
            "archive": archive_name,
            "usage": "/catalog.json, then /<dataset_id>/zarr/index.json",
        }

    @app.api_route("/healthz", methods=_READ)
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.api_route("/schemas/{name}", methods=_READ)
    def schema(name: str) -> Response:
        if name not in schemas:
            return JSONResponse({"error": "Unknown schema", "available": sorted(schemas)}, status_code=404)
        return Response(schemas[name], media_type="application/json", headers=_SCHEMA_HEADERS)


def _add_data_routes(app: FastAPI, open_object: Callable[[str], Opened | None]) -> None:
    @app.api_route("/catalog.json", methods=_READ)
    def catalog(request: Request) -> Response:
        return serve_object(request, open_object, CATALOG_KEY)

    @app.api_route("/{dataset_id}/zarr/{path:path}", methods=_READ)
    def served(request: Request, dataset_id: str, path: str) -> Response:
        if not is_dataset_id(dataset_id):
            return not_found()
        return serve_object(request, open_object, f"{dataset_id}/zarr/{path}")

    @app.api_route("/{anything:path}", methods=_READ)
    def elsewhere() -> Response:
        return not_found()


def _schemas() -> dict[str, bytes]:
    """The checked-in JSON Schemas by file name."""
    folder = resources.files("contract") / "schemas"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".json")}
