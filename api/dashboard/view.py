"""The viewer of a store: the page, and the opening document that it begins with. The signal comes from the gateway."""

from __future__ import annotations

import re
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.absent import absent, state_of_store
from api.bodies import sentence_of
from api.dashboard.addresses import HOME, dataset_page, gateway_store, recording_page, viewer_page
from api.dashboard.sessions import Reader
from api.dashboard.site import Site
from api.errors import ApiError
from contract.documents import compact
from contract.errors import Refused, StorageError
from contract.layout import ROOT_METADATA, is_dataset_id, store_key
from contract.times import utc_stamp
from db import datasets
from tasks.read.opening import read_opening
from tasks.read.place import target_place, version_of

if TYPE_CHECKING:
    from db.public_recordings import PublicRecording
    from tasks.read.place import Place

__all__ = ["add_view"]

_MOST_TOLD_BYTES = 1 << 20
_NONE = "There is no such store. The viewer shows what is served to everybody, so it has no store of a private dataset."
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


def add_view(routes: APIRouter, site: Site) -> None:
    """The routes of the viewer."""
    anybody = Depends(site.reader)
    place = target_place(site.service.target)

    @routes.get(f"{HOME}/datasets/{{dataset_id}}/view/{{zarr:path}}/opening.json", dependencies=[anybody])
    def opening(request: Request, dataset_id: str, zarr: str) -> Response:
        key = _key(site, dataset_id, zarr)
        if version_of(place, f"{key}/{ROOT_METADATA}") is None:
            found = state_of_store(site.service, dataset_id, zarr)
            if found is None or found.state != "served":
                return absent(request, found)
        body = compact(_opening(place, dataset_id, zarr))
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    @routes.get(f"{HOME}/datasets/{{dataset_id}}/view/{{zarr:path}}")
    def view(request: Request, dataset_id: str, zarr: str, reader: Reader = anybody) -> Response:
        key, closed = _store(dataset_id, zarr), None
        if not site.service.is_public(dataset_id):
            closed = _closed(site, reader, dataset_id)
        found = state_of_store(site.service, dataset_id, zarr)
        if closed is not None:
            return _nothing(request, site, reader, dataset_id, zarr, found=found, reason=closed)
        is_there = version_of(place, f"{key}/{ROOT_METADATA}") is not None
        reason = None if is_there or (found and found.state == "served") else _why_not(found)
        name = PurePosixPath(zarr).name.removesuffix(".zarr")
        return site.page(
            request,
            "view.html",
            reader=reader,
            title=name,
            trail=_trail(dataset_id, found),
            status=HTTPStatus.OK if reason is None else HTTPStatus.NOT_FOUND,
            reason=reason,
            told=_told(place, dataset_id, zarr) if is_there else None,
            dataset=dataset_page(dataset_id) if found else None,
            recording=found and recording_page(dataset_id, found.path),
            opening=f"{viewer_page(dataset_id, zarr)}/opening.json",
            file_name=_PLAIN.sub("-", name)[:80],
        )


def _key(site: Site, dataset_id: str, zarr: str) -> str:
    """The store's key at the target. ApiError when it can be none, or when its dataset is not served to everybody."""
    key = _store(dataset_id, zarr)
    if not site.service.is_public(dataset_id):
        raise ApiError(HTTPStatus.NOT_FOUND, _NONE)
    return key


def _store(dataset_id: str, zarr: str) -> str:
    if is_dataset_id(dataset_id):
        try:
            return store_key(dataset_id, zarr)
        except Refused:
            pass
    raise ApiError(HTTPStatus.NOT_FOUND, _NONE)


def _closed(site: Site, reader: Reader, dataset_id: str) -> str:
    """Why nothing of a dataset is served to everybody. ApiError for whoever may not know of it."""
    with site.service.reading() as c:
        found = datasets.find(c, dataset_id=dataset_id, target=site.service.target.url)
    if found is not None and found.withdrawn_at is not None and (found.visibility == "public" or reader.is_signed_in):
        return f"{dataset_id} was withdrawn on {utc_stamp(found.withdrawn_at)}, so nothing of it is served any more."
    if found is None or not reader.is_signed_in:
        raise ApiError(HTTPStatus.NOT_FOUND, _NONE)
    how = "is private" if found.visibility == "private" else "takes no part"
    return f"{dataset_id} {how}, and the viewer shows what is served to everybody."


def _nothing(
    request: Request,
    site: Site,
    reader: Reader,
    dataset_id: str,
    zarr: str,
    *,
    found: PublicRecording | None,
    reason: str,
) -> Response:
    """The page of a store of a dataset that is not served; those who have not signed in may not see the dataset's own pages."""
    return site.page(
        request,
        "view.html",
        reader=reader,
        title=PurePosixPath(zarr).name.removesuffix(".zarr"),
        trail=_trail(dataset_id, found) if reader.is_signed_in else (),
        status=HTTPStatus.NOT_FOUND,
        reason=reason,
        recording=recording_page(dataset_id, found.path) if found and reader.is_signed_in else None,
        dataset=dataset_page(dataset_id) if reader.is_signed_in else None,
    )


def _why_not(found: PublicRecording | None) -> str:
    said = found and sentence_of(found)
    return said or "There is no such store: the recording was never converted, or what was served of it was withdrawn."


def _trail(dataset_id: str, found: PublicRecording | None) -> tuple[tuple[str, str], ...]:
    dataset = (dataset_id, dataset_page(dataset_id))
    if found is None:
        return (dataset,)
    return (dataset, (PurePosixPath(found.path).name, recording_page(dataset_id, found.path)))


def _opening(place: Place, dataset_id: str, zarr: str) -> dict[str, Any]:
    opening = read_opening(place, dataset_id, zarr)
    return {
        "url": f"{gateway_store(dataset_id, zarr)}/",
        "version": f'"{opening.version}"',
        "root": opening.root,
        "groups": [{"name": group.name, "documents": group.documents} for group in opening.groups],
        "events": opening.events,
    }


def _told(place: Place, dataset_id: str, zarr: str) -> dict[str, Any] | None:
    """The opening for the page to hold, which saves a request; None when it is large, or cannot be read now."""
    try:
        opening = _opening(place, dataset_id, zarr)
    except (Refused, StorageError):
        return None  # the script asks for it and says what is wrong
    return opening if len(compact(opening)) <= _MOST_TOLD_BYTES else None
