"""Reads: the list of datasets, one of them, its recordings, and one of those with its attempts."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import AfterValidator

from api.bodies import (
    DatasetsBody,
    ErrorBody,
    OneDatasetBody,
    OneRecordingBody,
    RecordingsBody,
    attempt_body,
    dataset_body,
    recording_body,
)
from api.codes import ErrorCode
from api.errors import ApiError
from api.service import Service
from contract.codes import FailureCode
from contract.layout import is_dataset_id
from db.listing import SORTS, Filters, find_listed, listed
from db.public_recordings import STATES, attempts_of, find_recording, recording_page

__all__ = ["dataset_routes"]

_KEPT = "public, max-age=30, s-maxage=300, stale-while-revalidate=600"
_MOST = 200
_STATUSES = ("none", "pending", "ready", "failed")
_COVERAGES = ("complete", "partial", "none")
_TRUE = frozenset({"1", "true"})


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it must not hold a NUL")
    return text


Text = Annotated[str, AfterValidator(_plain)]
Words = Annotated[Text | None, Query(max_length=200)]
Flag = Annotated[str | None, Query(description="1 or true; anything else is as if it were absent.", examples=["1"])]
Limit = Annotated[int, Query(description="Taken into 1 to 200.", examples=[50])]

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A parameter cannot be understood."},
    404: {"model": ErrorBody, "description": "There is none that everybody may see."},
    429: {"model": ErrorBody, "description": "Too many requests from this address."},
    503: {"model": ErrorBody, "description": "No database, or it cannot be asked now."},
}
_LIST_ERRORS: dict[int | str, dict[str, Any]] = {status: ERRORS[status] for status in (400, 429, 503)}


def _one_of(name: str, value: str | None, allowed: Any) -> str | None:
    if value is None or value in allowed:
        return value
    raise ApiError(
        HTTPStatus.BAD_REQUEST, f"{name} must be one of: {', '.join(allowed)}.", detail={"allowed": list(allowed)}
    )


def _known_id(dataset_id: str) -> str:
    if not is_dataset_id(dataset_id):
        raise ApiError(
            HTTPStatus.BAD_REQUEST, "A dataset id is two lower-case letters and six digits.", code=ErrorCode.INVALID_ID
        )
    return dataset_id


def _absent(what: str) -> ApiError:
    return ApiError(HTTPStatus.NOT_FOUND, f"{what} not found")


def dataset_routes(service: Service) -> APIRouter:
    """The routes of ``/datasets``."""
    routes = APIRouter(tags=["datasets"])
    _add_lists(routes, service)
    _add_recordings(routes, service)
    return routes


def _add_lists(routes: APIRouter, service: Service) -> None:
    target = service.target

    @routes.get("/datasets", responses=_LIST_ERRORS)
    def datasets(
        response: Response,
        *,
        has_zarr: Flag = None,
        has_zarr_verified: Flag = None,
        search: Words = None,
        modality: Words = None,
        task: Words = None,
        coverage: Annotated[str | None, Query(description=", ".join(_COVERAGES))] = None,
        zarr_status: Annotated[str | None, Query(description=", ".join(_STATUSES))] = None,
        code: Annotated[str | None, Query(description="A failure code of at least one recording.")] = None,
        sort: Annotated[str, Query(description=", ".join(SORTS))] = "id",
        limit: Limit = 50,
        offset: Annotated[int, Query(description="At least 0.", examples=[0])] = 0,
    ) -> DatasetsBody:
        """The datasets that everybody may see and that fit everything asked for."""
        filters = Filters(
            has_zarr=has_zarr in _TRUE,
            has_zarr_verified=has_zarr_verified in _TRUE,
            search=search,
            modality=modality,
            task=task,
            coverage=_one_of("coverage", coverage, _COVERAGES),
            status=_one_of("zarr_status", zarr_status, _STATUSES),
            code=_one_of("code", code, [one.value for one in FailureCode]),
        )
        order = _one_of("sort", sort, SORTS) or "id"
        most, after = min(max(limit, 1), _MOST), min(max(offset, 0), 1 << 31)
        with service.reading() as c:
            page = listed(c, target=target.url, filters=filters, sort=order, limit=most, offset=after)
        response.headers["Cache-Control"] = _KEPT
        found = [dataset_body(row, target) for row in page.datasets]
        return DatasetsBody(
            datasets=list(found), count=len(found), total_count=page.total_count, limit=most, offset=after
        )

    @routes.get("/datasets/{dataset_id}", responses=ERRORS)
    def dataset(dataset_id: str, response: Response) -> OneDatasetBody:
        """One dataset, by its id."""
        with service.reading() as c:
            found = find_listed(c, target=target.url, dataset_id=_known_id(dataset_id))
        if found is None:
            raise _absent("Dataset")
        response.headers["Cache-Control"] = _KEPT
        return OneDatasetBody(dataset=dataset_body(found, target))


def _add_recordings(routes: APIRouter, service: Service) -> None:
    target = service.target

    @routes.get("/datasets/{dataset_id}/recordings", responses=ERRORS)
    def recordings(
        dataset_id: str,
        response: Response,
        *,
        state: Annotated[str | None, Query(description=", ".join(STATES))] = None,
        code: Annotated[str | None, Query(description="A failure code.")] = None,
        after: Annotated[Text, Query(description="Paths after this one.", max_length=4096)] = "",
        limit: Limit = 50,
    ) -> RecordingsBody:
        """The recordings of a dataset by path, a part at a time: give the answer's ``next`` as ``after``."""
        with service.reading() as c:
            page = recording_page(
                c,
                target=target.url,
                dataset_id=_known_id(dataset_id),
                state=_one_of("state", state, STATES),
                code=_one_of("code", code, [one.value for one in FailureCode]),
                after=after,
                limit=min(max(limit, 1), _MOST),
            )
        if page is None:
            raise _absent("Dataset")
        base = target.addresses(dataset_id).contract_base
        response.headers["Cache-Control"] = _KEPT
        found: list[Any] = [recording_body(one, base) for one in page.recordings]
        following = None if page.is_last else page.recordings[-1].path
        return RecordingsBody(dataset_id=dataset_id, recordings=found, count=len(found), next=following)

    @routes.get("/datasets/{dataset_id}/recordings/{path:path}", responses=ERRORS)
    def recording(dataset_id: str, path: Text, response: Response) -> OneRecordingBody:
        """One recording, by its path in the dataset, with the last attempts at it."""
        with service.reading() as c:
            found = find_recording(c, target=target.url, dataset_id=_known_id(dataset_id), path=path)
            attempts = attempts_of(c, recording=found) if found is not None else []
        if found is None:
            raise _absent("Recording")
        response.headers["Cache-Control"] = _KEPT
        shown: Any = recording_body(found, target.addresses(dataset_id).contract_base)
        return OneRecordingBody(
            dataset_id=dataset_id, recording=shown, attempts=[attempt_body(one) for one in attempts]
        )
