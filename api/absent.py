"""Why a store is not there, in the answer to whoever asked for it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from api.bodies import recording_body, sentence_of
from api.codes import ErrorCode
from api.errors import error, not_found
from db.public_recordings import store_state

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from api.service import Service
    from db.public_recordings import PublicRecording

__all__ = ["absent", "state_of_store"]


def state_of_store(service: Service, dataset_id: str, zarr: str) -> PublicRecording | None:
    """The recording whose store is, or would be, at this path; None when none is known."""
    if service.engine is None:
        return None
    with service.reading() as c:
        return store_state(c, target=service.target.url, dataset_id=dataset_id, zarr=zarr)


def absent(request: Request, found: PublicRecording | None) -> Response:
    """The 404 for a store that is not there, with what became of its recording."""
    if found is None or found.state == "served":
        return not_found(request.scope)
    return error(
        request.scope,
        HTTPStatus.NOT_FOUND,
        sentence_of(found) or "Not found",
        code=ErrorCode.STORE_FAILED if found.state == "failed" else ErrorCode.STORE_PENDING,
        more={"store": recording_body(found)},
    )
