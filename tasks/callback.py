"""The zarr-ready callback: what a run tells, put into the outbox with the state it tells of, and delivered from there.

Every run that announced itself tells exactly one terminal status. Without a callback address nothing is sent: what is
due is closed when deliveries are made, so that an address set later is not told old news.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract.callback import Calibration, ZarrReady
from contract.documents import dump
from contract.errors import ZarrmillError
from contract.redact import error_line
from db import outbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    import httpx
    from sqlalchemy import Connection, Engine

    from contract.index import FailureEntry
    from db.datasets import Dataset
    from db.measurements import KindMeasured
    from db.outbox import Delivery
    from db.runs import Run
    from infra.endpoints import Endpoint
    from infra.settings import Settings
    from tasks.publish.dataset import Published

__all__ = [
    "Deliveries",
    "RunReport",
    "calibration_of",
    "deliver_due",
    "enqueue",
    "enqueue_converting",
    "failed_body",
    "ready_body",
    "refused_body",
]

CONNECT_TIMEOUT_S = 10.0
TOTAL_TIMEOUT_S = 30.0
_ROUNDS = 50

_log = logging.getLogger("zarrmill.callback")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What one run did, whatever it published.

    Parameters
    ----------
    commit
        State of the source that the run worked on.
    discovered_count
        Raw recordings in the source.
    converted
        Store paths that the run wrote.
    failed
        Paths of recordings that did not succeed, for whatever cause.
    data_failures
        The verdicts among them.
    pending_count, not_attempted_count
        Recordings that this run left pending, and those of them that it did not reach.
    deterministic
        Something failed, and nothing of it because of a machine.
    pool_breaks, measured_count, calibration, retryable_failures
        Workers that died; recordings whose peak was measured; measured against projected memory, worst first; failures
        of machines.
    provenance_fetch_failed
        The dataset's facts could not be read, so that nulls mean nothing.
    events_stores_without_rows
        Converted stores with events of which no row could be used.
    """

    commit: str
    discovered_count: int
    converted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    data_failures: tuple[FailureEntry, ...] = ()
    pending_count: int = 0
    not_attempted_count: int = 0
    deterministic: bool = False
    pool_breaks: int = 0
    measured_count: int = 0
    calibration: tuple[Calibration, ...] = ()
    retryable_failures: int = 0
    provenance_fetch_failed: bool = False
    events_stores_without_rows: int = 0


def calibration_of(kinds: Iterable[KindMeasured]) -> tuple[Calibration, ...]:
    """Measured against projected memory of one run as the callback tells it, worst first."""
    worst_first = sorted(kinds, key=lambda kind: (-kind.worst_ratio, kind.format, kind.route))
    return tuple(
        Calibration(
            format=kind.format,
            route=kind.route,
            measured_count=kind.attempts,
            median_ratio=round(kind.median_ratio, 4),
            worst_ratio=round(kind.worst_ratio, 4),
        )
        for kind in worst_first
    )


def ready_body(dataset: Dataset, published: Published, report: RunReport) -> ZarrReady:
    """The body of a run that published: totals of the published index, failures of the run."""
    counts = published.coverage
    return ZarrReady(
        dataset_id=dataset.dataset_id,
        status="ready",
        store_count=counts.stores,
        index_etag=published.etag,
        commit=report.commit,
        converted=report.converted,
        removed=published.removed,
        errors=len(report.failed),
        failed=report.failed,
        failure_count=counts.failures,
        data_failures=report.data_failures,
        deterministic=report.deterministic,
        pool_breaks=report.pool_breaks,
        measured_count=report.measured_count,
        calibration=report.calibration,
        retryable_failures=report.retryable_failures,
        pending_count=counts.pending,
        discovered_count=counts.discovered,
        not_attempted_count=published.not_attempted_count,
        non_raw_dropped=0,  # discovery lists raw recordings only, so none can be dropped later
        provenance_fetch_failed=report.provenance_fetch_failed,
        manifest_upload_failed=published.manifest_upload_failed,
        events_row_count=published.events_row_count,
        events_upload_failed=published.events_upload_failed,
        events_stores_without_rows=report.events_stores_without_rows,
    )


def failed_body(
    dataset: Dataset, report: RunReport, error: BaseException, *, events_upload_failed: bool = False
) -> ZarrReady:
    """The body of a run that published nothing: the standing stores, failures of the run, and why.

    ``converted`` and ``removed`` are empty: no published index names what the run may have written.
    """
    standing = dataset.published
    return ZarrReady(
        dataset_id=dataset.dataset_id,
        status="failed",
        store_count=standing.counts.stores if standing else 0,
        commit=report.commit,
        converted=(),
        removed=(),
        errors=len(report.failed),
        failed=report.failed,
        failure_count=len(report.data_failures),
        data_failures=report.data_failures,
        deterministic=report.deterministic,
        error=error.sentence if isinstance(error, ZarrmillError) else error_line(error),
        pool_breaks=report.pool_breaks,
        pending_count=report.pending_count,
        discovered_count=report.discovered_count,
        not_attempted_count=report.not_attempted_count,
        provenance_fetch_failed=report.provenance_fetch_failed,
        events_upload_failed=events_upload_failed,
        events_stores_without_rows=report.events_stores_without_rows,
    )


def refused_body(dataset: Dataset, error: BaseException) -> ZarrReady:
    """The body of a run that could not be begun: the standing stores, and why. Of its source nothing is known."""
    standing = dataset.published
    return ZarrReady(
        dataset_id=dataset.dataset_id,
        status="failed",
        store_count=standing.counts.stores if standing else 0,
        converted=(),
        removed=(),
        errors=0,
        failed=(),
        failure_count=0,
        data_failures=(),
        deterministic=False,
        error=error.sentence if isinstance(error, ZarrmillError) else error_line(error),
        pending_count=0,
        not_attempted_count=0,
        pool_breaks=0,
        provenance_fetch_failed=False,
        events_upload_failed=False,
    )


def enqueue_converting(c: Connection, *, run: Run, dataset: Dataset) -> bool:
    """Announce the run; False when it is announced already."""
    body = ZarrReady(dataset_id=dataset.dataset_id, status="converting")
    return outbox.enqueue(c, run=run, status="converting", body=dump(body))


def enqueue(c: Connection, *, run: Run, body: ZarrReady) -> bool:
    """Put a body into the outbox, in the transaction of the state that it tells; False when it is there already.

    Raises
    ------
    LostLease
        The run told another terminal status before.
    """
    return outbox.enqueue(c, run=run, status=body.status, body=dump(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """How many callbacks were accepted, how many were not and are tried again later, and how many had no address."""

    accepted: int = 0
    refused: int = 0
    unaddressed: int = 0


def deliver_due(engine: Engine, settings: Settings) -> Deliveries:
    """Deliver what the outbox holds and is due, oldest first per dataset, to each address. Trouble is noted there, never raised.

    An address that does not answer holds up no other one.
    """
    endpoints = settings.callback_endpoints()
    if not endpoints:
        with engine.begin() as c:
            return Deliveries(unaddressed=outbox.close_told(c, endpoints=()))
    accepted = refused = 0
    for endpoint in endpoints:
        good, bad = _deliver_to(engine, endpoint)
        accepted += good
        refused += bad
    with engine.begin() as c:
        outbox.close_told(c, endpoints=[endpoint.name for endpoint in endpoints])
    return Deliveries(accepted=accepted, refused=refused)


def _deliver_to(engine: Engine, endpoint: Endpoint) -> tuple[int, int]:
    """How many callbacks an address accepted, and how many it did not."""
    import httpx

    headers = {"Content-Type": "application/json", "User-Agent": "zarrmill"}
    if endpoint.token is not None:
        headers["X-Webhook-Token"] = endpoint.token.get_secret_value()
    accepted = refused = 0
    # Neither redirects nor proxies of the environment: the token goes to the address that was set and nowhere else.
    timeout = httpx.Timeout(TOTAL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    with httpx.Client(headers=headers, timeout=timeout, follow_redirects=False, trust_env=False) as client:
        for _ in range(_ROUNDS):
            with engine.begin() as c:
                due = outbox.due_deliveries(c, endpoint=endpoint.name)
            if not due:
                break
            for delivery in due:
                error = _post(client, endpoint.url, delivery)
                accepted += error is None
                refused += error is not None
                with engine.begin() as c:
                    if error is None:
                        outbox.delivered(c, pk=delivery.pk, endpoint=endpoint.name)
                    else:
                        outbox.failed_delivery(c, pk=delivery.pk, endpoint=endpoint.name, error=error)
    return accepted, refused


def _post(client: httpx.Client, url: str, delivery: Delivery) -> str | None:
    """Why a callback was not accepted, redacted; None when it was. The answer's body is not read.

    Sent again it carries the same key, so that a receiver can tell a repetition.
    """
    import httpx

    key = {"Idempotency-Key": f"{delivery.run_id}/{delivery.status}"}
    try:
        with client.stream("POST", url, content=delivery.body, headers=key) as answer:
            if answer.is_success:
                return None
            error = f"the receiver answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL) as trouble:
        error = error_line(trouble)
    _log.warning(
        "callback %s of %s was not accepted (try %d): %s", delivery.status, delivery.dataset_id, delivery.tries, error
    )
    return error
