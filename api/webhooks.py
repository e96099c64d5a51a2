"""``POST /webhooks/zarr-ready``: another converter reports, and what it says is kept."""

from __future__ import annotations

import hmac
import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, Response

from api.bodies import ErrorBody
from api.errors import ApiError
from contract.report import Reported, is_archive_id, read_report, summary_line
from db.received import Report, note_report

if TYPE_CHECKING:
    from api.service import Service

__all__ = ["same_secret", "webhook_routes"]

_TOKEN_HEADER = "x-webhook-token"  # noqa: S105 the name of a header
_EXAMPLE = {
    "dataset_id": "nm000103",
    "status": "ready",
    "store_count": 3522,
    "index_etag": "5d41402abc4b2a76b9719d911017c592",
    "commit": "d14ae5eb3881e368ee328bc1312d3fa51f7e70a9",
    "converted": ["sub-01/eeg/sub-01_task-rest_eeg.zarr"],
    "removed": [],
    "errors": 0,
    "pending_count": 0,
}
_OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["dataset_id"],
                    "properties": {"dataset_id": {"type": "string"}, "status": {"type": "string"}},
                },
                "example": _EXAMPLE,
            }
        },
    },
    "parameters": [{"name": "X-Webhook-Token", "in": "header", "required": True, "schema": {"type": "string"}}],
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"example": {"ok": True, "dataset_id": "nm000103", "status": "ready"}}}},
    400: {"model": ErrorBody},
    401: {"model": ErrorBody},
    404: {"model": ErrorBody},
    413: {"model": ErrorBody},
    500: {"model": ErrorBody},
    503: {"model": ErrorBody},
}
_log = logging.getLogger("zarrmill.api.webhooks")


def same_secret(given: str | None, secret: str) -> bool:
    """Whether the two are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest((given or "").encode("utf-8", "surrogateescape"), secret.encode())


def webhook_routes(service: Service) -> APIRouter:
    """The routes at which others report."""
    routes = APIRouter(tags=["webhooks"])

    @routes.post("/webhooks/zarr-ready", responses=_ERRORS, openapi_extra=_OPENAPI)
    async def zarr_ready(request: Request) -> Response:
        """Take a report of how a run of another converter began or ended."""
        _authorise(service, request)
        report = await to_thread.run_sync(_read, await request.body())
        if report.dropped:
            _log.warning("%s: malformed fields were dropped: %s", report.dataset_id, ", ".join(report.dropped))
        await to_thread.run_sync(_keep, service, report)
        _tell(report)
        answer: dict[str, Any] = {"ok": True, "dataset_id": report.dataset_id, "status": report.status}
        if report.status == "ready":
            # no cache of ours has anything to purge; a sender reads that as done
            answer["cache_purge"] = {"ok": True, "submitted": 0}
        return JSONResponse(answer)

    return routes


def _authorise(service: Service, request: Request) -> None:
    secret = service.settings.webhook_token
    if secret is None:
        _log.error("a report was refused because ZARRMILL_WEBHOOK_TOKEN is not set")
    if secret is None or not same_secret(request.headers.get(_TOKEN_HEADER), secret.get_secret_value()):
        raise ApiError(HTTPStatus.UNAUTHORIZED, "Invalid webhook token")


def _read(body: bytes) -> Reported:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # not UTF-8, no JSON, or nested deeper than anything is
        raise ApiError(HTTPStatus.BAD_REQUEST, "Invalid JSON in request body") from None
    if not isinstance(said, dict) or not isinstance(said.get("dataset_id"), str):
        raise ApiError(HTTPStatus.BAD_REQUEST, "Invalid request body")
    if not is_archive_id(said["dataset_id"]):
        raise ApiError(HTTPStatus.BAD_REQUEST, "dataset_id must be a valid dataset id")
    return read_report(said, said["dataset_id"])


def _keep(service: Service, report: Reported) -> None:
    said = report.fields
    errors, failure_count = report.failures
    kept = Report(
        dataset_id=report.dataset_id,
        status=report.status,
        store_count=said.get("store_count"),
        index_etag=said.get("index_etag"),
        commit=said.get("commit"),
        errors=errors,
        failure_count=failure_count,
        deterministic=said.get("deterministic", False),
        data_failures=report.summary(),
        pool_breaks=said.get("pool_breaks"),
    )
    try:
        with service.state.begin() as c:
            registers = service.settings.webhook_unknown == "register"
            is_known = note_report(c, target=service.target.url, report=kept, register=registers)
    except SQLAlchemyError as trouble:
        _log.exception("the report on %s was not stored", report.dataset_id)
        raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "Failed to record zarr state") from trouble
    if not is_known:
        _log.error("a report on %s was refused: nobody has heard of it", report.dataset_id)
        raise ApiError(HTTPStatus.NOT_FOUND, "Dataset not found")


def _tell(report: Reported) -> None:
    said = report.fields
    # as a warning, because it is to be seen in every log
    _log.warning("%s", summary_line(report))
    if said.get("events_stores_without_rows"):
        count = said["events_stores_without_rows"]
        _log.warning("%s: %d converted stores with events have no usable row", report.dataset_id, count)
    absent = [name for name in ("events", "manifest") if said.get(f"{name}_upload_failed")]
    if absent:
        _log.warning("%s: the index was published without its %s", report.dataset_id, " and its ".join(absent))
    if said.get("pool_breaks") or said.get("calibration"):
        _log.warning(
            "%s: memory: pool_breaks=%s measured=%s calibration=%s",
            report.dataset_id,
            said.get("pool_breaks", "?"),
            said.get("measured_count", "?"),
            json.dumps(said.get("calibration", ()))[:2000],
        )
