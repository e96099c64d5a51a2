"""Read recipes over HTTP: what a client needs to read one window of a recording by itself."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from api.bodies import ErrorBody
from api.codes import ErrorCode
from api.errors import error
from contract.documents import dump
from contract.errors import NotServed, Refused, StorageError, ZarrmillError
from contract.recipe import Recipe
from contract.window import WindowAsked
from tasks.read.recipe import recipe_for

if TYPE_CHECKING:
    from tasks.read.place import Place

__all__ = ["channels_of", "recipe_routes"]

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The question is wrong; `message` begins with the parameter's name."},
    404: {"model": ErrorBody, "description": "Not served. Of a recording that failed or is pending, `store` says so."},
    429: {"model": ErrorBody, "description": "Too many requests from this address."},
    503: {"model": ErrorBody, "description": "The target cannot be read now, or the store is being replaced."},
}
_ABSENT = {"failed": ErrorCode.STORE_FAILED, "pending": ErrorCode.STORE_PENDING}
_HEADERS = {"Cache-Control": "public, max-age=60"}
_Recording = Annotated[
    str, Query(description="Its path in the dataset, as its index names it.", min_length=1, max_length=1024)
]
_Group = Annotated[
    str | None, Query(description="Channel group; else the one with the most channels.", max_length=1024)
]
_Start = Annotated[float, Query(description="Seconds from the start of the recording.")]
_Stop = Annotated[float | None, Query(description="Seconds; else the end of the recording.")]
_Channels = Annotated[
    list[str] | None,
    Query(description="Labels, or rows as `3` or `0:16`, separated by commas or given again; else all."),
]
_Level = Annotated[int, Query(description="0 for the signal, from 1 a view level.", ge=0, le=64)]


def recipe_routes(place: Place) -> APIRouter:
    """The routes that answer with recipes for what stands at a place."""
    routes = APIRouter(tags=["recipes"])

    @routes.get("/datasets/{dataset_id}/recipe", response_model=Recipe, responses=_ERRORS)
    def recipe(
        request: Request,
        dataset_id: str,
        *,
        recording: _Recording,
        group: _Group = None,
        start: _Start = 0.0,
        stop: _Stop = None,
        channels: _Channels = None,
        level: _Level = 0,
    ) -> Response:
        """How to read a window: addresses, slices, scales, what it costs, and programs to paste."""
        try:
            asked = WindowAsked(
                recording=recording,
                group=group,
                start_s=start,
                stop_s=stop,
                channels=channels_of(channels or ()),
                level=level,
            )
            found = recipe_for(place, dataset_id, asked)
        except (Refused, NotServed, StorageError) as raised:
            return _trouble(request, raised)
        return Response(dump(found), media_type="application/json", headers=_HEADERS)

    return routes


def channels_of(given: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Channels named in texts, each perhaps several with commas between them."""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip())


def _trouble(request: Request, raised: ZarrmillError) -> Response:
    if isinstance(raised, NotServed):
        known = raised.state != "unknown"
        return error(
            request.scope,
            HTTPStatus.NOT_FOUND,
            raised.sentence,
            code=_ABSENT.get(raised.state, ErrorCode.NOT_SERVED),
            detail=raised.detail,
            more={"store": {"state": raised.state, "code": raised.reason}} if known else None,
        )
    if isinstance(raised, StorageError):
        return error(request.scope, HTTPStatus.SERVICE_UNAVAILABLE, raised.sentence)
    return error(request.scope, HTTPStatus.BAD_REQUEST, raised.sentence, code=ErrorCode.REFUSED)
