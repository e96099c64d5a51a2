"""The verify sweep as the service runs it: what somebody asked for, what is due, and then the catalogs that say so."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contract.errors import ZarrmillError
from contract.redact import error_line
from flows.catalogs import publish_catalogs
from flows.stop import StopSignal, listening
from flows.sweep_request import SweepRequest
from flows.verify_sweep import verify_sweep

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from flows.sweep_request import DatasetSwept
    from infra.settings import Settings

__all__ = ["sweep"]

log = logging.getLogger("zarrmill.flows.verify")


def sweep(settings: Settings, engine: Engine) -> str:
    """Verify what is asked for and what is due; what was found, in a sentence. SIGTERM ends it after the present store.

    Catalogs of targets where a verdict was written are brought up to date; one that cannot be is left to its own schedule.
    """
    stop = StopSignal()
    with listening(stop):
        swept = verify_sweep(settings, engine, SweepRequest(), on_dataset=_tell, stop=stop)
    for target in sorted({one.target for one in swept if one.status is not None}):
        try:
            publish_catalogs(settings, engine, target=target)
        except ZarrmillError as trouble:
            log.warning("verdicts are not in the catalog yet: %s", error_line(trouble))
    counts = {status: sum(one.status == status for one in swept) for status in ("verified", "failed", "unverifiable")}
    without = sum(one.status is None for one in swept)
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{len(swept)} datasets looked at: {told}, {without} without a verdict"


def _tell(swept: DatasetSwept) -> None:
    log.info("%s: %s", swept.dataset_id, swept.status or swept.trouble)
