"""The overview: is anything stuck, how far along, what to look at."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.dashboard.addresses import HOME
from api.dashboard.sessions import Reader
from api.dashboard.site import Site
from db.standings import clock

__all__ = ["add_overview"]


def add_overview(routes: APIRouter, site: Site) -> None:
    """The route of the overview."""
    anybody = Depends(site.reader)

    @routes.get(HOME)
    def overview(request: Request, reader: Reader = anybody) -> Response:
        with site.service.reading() as c:
            now = clock(c)
        return site.page(request, "overview.html", reader=reader, title="Overview", as_of=now)
