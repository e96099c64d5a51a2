"""The one web application: the objects of a target, questions to the state, reports of others, operators' actions."""

from __future__ import annotations

from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Match, Route
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from api.about import READ, about_routes
from api.admin import admin_routes
from api.admin_reads import admin_reading_routes
from api.bodies import ErrorBody
from api.caching import Origins
from api.dashboard.pages import dashboard_routes
from api.dashboard.site import Site
from api.dashboard.trouble import ErrorPages
from api.datasets import dataset_routes
from api.errors import add_error_handlers, not_found
from api.gateway import Gateway
from api.guard import Limits, Measured
from api.metrics import Metrics
from api.recipes import recipe_routes
from api.service import Service
from api.webhooks import webhook_routes
from tasks.read.place import target_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

    from infra.settings import Settings
    from infra.storage.protocol import Target

__all__ = ["create_app"]

_EXPOSED = ["ETag", "Content-Length", "Content-Range", "Accept-Ranges", "X-Request-Id"]
_OBJECT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}, "application/json": {}}},
    206: {"description": "The range that was asked for."},
    302: {"description": "Sent on to the bucket, as the server is set."},
    304: {"description": "The reader has it already."},
    404: {"model": ErrorBody, "description": "Not served. Below a store that is not there, `store` says why."},
    416: {"model": ErrorBody, "description": "The range lies past the end."},
    503: {"model": ErrorBody, "description": "It is there and cannot be read now."},
}


def create_app(target: Target, settings: Settings, engine: Engine | None = None) -> FastAPI:
    """The application that serves ``target``.

    Parameters
    ----------
    target
        A folder that does not exist yet is 404 throughout until it does.
    engine
        The state. Without it objects, documents and schemas are served; all else is 503 until ``app.state.service.engine`` is set.
    """
    service = Service(target, settings, engine)
    metrics, origins, site = Metrics(service), Origins(settings), Site(service)
    app = FastAPI(
        title="zarrmill",
        version=version("zarrmill"),
        summary="Zarr stores of neurophysiology datasets, and how they stand.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    add_error_handlers(app)
    # The last that is added stands outermost.
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(ErrorPages, site=site)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=["*"] if origins.everybody else [],
        allow_origin_regex=None if origins.everybody else origins.pattern,
        allow_methods=READ,
        allow_headers=["Range", "If-None-Match", "If-Range"],
        expose_headers=_EXPOSED,
        max_age=86400,
    )
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=settings.trusted_proxies)
    questions = (
        about_routes(service, metrics),
        dataset_routes(service),
        webhook_routes(service),
        admin_routes(service),
        admin_reading_routes(service),
        dashboard_routes(site),
    )
    for routes in questions:
        app.include_router(routes)
    app.include_router(recipes := recipe_routes(target_place(target)), dependencies=[Depends(_public_only(service))])
    # last, because its last route takes every path
    app.include_router(_object_routes(Gateway(service, origins), others=(*questions, recipes)))
    return app


def _public_only(service: Service) -> Callable[[str], None]:
    """What stands before a route that reads a dataset at the target: 404 for one that is not for everybody."""

    def check(dataset_id: str) -> None:
        if not service.is_public(dataset_id):
            raise HTTPException(HTTPStatus.NOT_FOUND, "Not found")

    return check


def _object_routes(gateway: Gateway, others: tuple[APIRouter, ...]) -> APIRouter:
    routes = APIRouter(tags=["objects"])

    @routes.get("/catalog.json", responses=_OBJECT, response_class=Response)
    def catalog(request: Request) -> Response:
        """The catalog of the target."""
        return gateway.catalog(request)

    @routes.get("/{dataset_id}/zarr/{path:path}", responses=_OBJECT, response_class=Response)
    def served(request: Request, dataset_id: str, path: str) -> Response:
        """An object of a dataset: a document, or a part of a store. There is no listing."""
        return gateway.object(request, dataset_id, path)

    for where, answer in (("/catalog.json", catalog), ("/{dataset_id}/zarr/{path:path}", served)):
        routes.add_api_route(where, answer, methods=["HEAD"], include_in_schema=False)

    @routes.api_route("/{anything:path}", methods=list(READ), include_in_schema=False)
    def elsewhere(request: Request) -> Response:
        if other := _other_methods(request, others):
            raise HTTPException(
                HTTPStatus.METHOD_NOT_ALLOWED, "Method Not Allowed", headers={"Allow": ", ".join(sorted(other))}
            )
        return not_found(request.scope)

    return routes


def _other_methods(request: Request, routers: tuple[APIRouter, ...]) -> set[str]:
    """The methods of the routes that have this path and not this method."""
    return {
        method
        for router in routers
        for route in router.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods or ()
    }
