"""Which dataset a page is about, and what of it may be shown to whom."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from api.errors import ApiError
from contract.layout import is_dataset_id
from db import datasets, operators

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from starlette.requests import Request

    from api.dashboard.sessions import Reader
    from api.dashboard.site import Site
    from db.dataset_values import Dataset
    from db.operators import Action

__all__ = ["acted", "dataset_for"]

_NONE = "There is no such dataset, or it is not for everybody."


def dataset_for(c: Connection, site: Site, reader: Reader, dataset_id: str) -> Dataset:
    """The dataset of this id at the target of this server.

    Raises
    ------
    ApiError
        404 when there is none, and for whoever has not signed in, when it is not public or takes no part.
    """
    found = None
    if is_dataset_id(dataset_id):
        found = datasets.find(c, dataset_id=dataset_id, target=site.service.target.url)
    if found is None or not (reader.is_signed_in or (found.active and found.visibility == "public")):
        raise ApiError(HTTPStatus.NOT_FOUND, _NONE)
    return found


def acted(c: Connection, request: Request, dataset: Dataset) -> Action | None:
    """The action on this dataset that the address names, because it has just been done."""
    given = request.query_params.get("acted", "")
    if not given.isdecimal() or len(given) > 18:
        return None
    found = operators.find_action(c, pk=int(given))
    return found if found is not None and found.subject in {dataset.dataset_id, None} and found.executed else None
