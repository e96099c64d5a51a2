"""The verify sweep as the service runs it: datasets that somebody asked for, then every one whose verdict does not stand."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from contract.redact import error_line
from db import requests
from flows.stop import StopSignal, listening
from flows.verify_sweep import SweepRequest, verify_sweep

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.requests import Request
    from flows.verify_sweep import DatasetSwept
    from infra.settings import Settings

__all__ = ["sweep"]

log = logging.getLogger("zarrmill.flows.verify")


def sweep(settings: Settings, engine: Engine) -> str:
    """Verify what is asked for and what is due; what was found, in a sentence. SIGTERM ends it after the present store."""
    stop = StopSignal()
    with listening(stop):
        with engine.connect() as c:
            asked = requests.next_due(c, work="verify", limit=1000)
        swept: list[DatasetSwept] = []
        for one in asked:
            if stop.state == "go":
                swept += _requested(settings, engine, one, stop)
        swept += verify_sweep(settings, engine, SweepRequest(), on_dataset=_tell, stop=stop)
    counts = {status: sum(one.status == status for one in swept) for status in ("verified", "failed", "unverifiable")}
    without = sum(one.status is None for one in swept)
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{len(swept)} datasets looked at, {len(asked)} of them asked for: {told}, {without} without a verdict"


def _requested(settings: Settings, engine: Engine, request: Request, stop: StopSignal) -> tuple[DatasetSwept, ...]:
    with engine.begin() as c:
        if requests.start(c, pk=request.pk) is None:
            return ()
    wanted = SweepRequest(target=request.target, dataset_id=request.dataset_id, every=True)
    error = None
    found: tuple[DatasetSwept, ...] = ()
    try:
        found = verify_sweep(settings, engine, wanted, on_dataset=_tell, stop=stop)
    except ZarrmillError as trouble:
        error = error_line(trouble)
        log.warning("%s was not verified: %s", request.dataset_id, error)
    with engine.begin() as c:
        requests.end(c, pk=request.pk, error=error)
    return found


def _tell(swept: DatasetSwept) -> None:
    log.info("%s: %s", swept.dataset_id, swept.status or swept.trouble)
