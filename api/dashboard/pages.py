"""Every page of the dashboard: one line each, in the order in which their addresses are tried."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import APIRouter, HTTPException
from fastapi.routing import APIRoute
from starlette.responses import RedirectResponse, Response

from api.dashboard.actions import add_actions
from api.dashboard.addresses import HOME
from api.dashboard.assets import add_assets
from api.dashboard.datasets import add_datasets
from api.dashboard.overview import add_overview
from api.dashboard.plots import add_plots
from api.dashboard.recordings import add_recordings
from api.dashboard.runs import add_runs
from api.dashboard.signing_in import add_signing_in
from api.dashboard.view import add_view

if TYPE_CHECKING:
    from api.dashboard.site import Site

__all__ = ["dashboard_routes"]


def dashboard_routes(site: Site) -> APIRouter:
    """The routes of ``/dashboard``."""
    routes = APIRouter(include_in_schema=False)
    for add in (add_overview, add_plots, add_signing_in, add_view, add_datasets, add_recordings, add_actions, add_runs):
        add(routes, site)
    add_assets(routes)
    _add_ends(routes)
    for route in routes.routes:
        if isinstance(route, APIRoute) and route.methods and "GET" in route.methods:
            route.methods.add("HEAD")  # the server leaves the body out
    return routes


def _add_ends(routes: APIRouter) -> None:
    @routes.get(f"{HOME}/")
    def with_slash() -> Response:
        return RedirectResponse(HOME, status_code=HTTPStatus.PERMANENT_REDIRECT)

    # last: the gateway behind it would look for an object of this name
    @routes.get(f"{HOME}/{{anything:path}}")
    def elsewhere() -> Response:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such page.")
