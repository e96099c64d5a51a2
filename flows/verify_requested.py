"""The verify sweep as the service runs it: by the clock, and as soon as somebody asks for a verification."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from flows.stop import StopSignal, listening
from flows.verify_sweep import SweepRequest, verify_sweep

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from flows.verify_sweep import DatasetSwept
    from infra.settings import Settings

__all__ = ["sweep"]

log = logging.getLogger("zarrmill.flows.verify")


def sweep(settings: Settings, engine: Engine) -> str:
    """Verify what is asked for and what is due; what was found, in a sentence. SIGTERM ends it after the present store."""
    stop = StopSignal()
    with listening(stop):
        swept = verify_sweep(settings, engine, SweepRequest(), on_dataset=_tell, stop=stop)
    counts = {status: sum(one.status == status for one in swept) for status in ("verified", "failed", "unverifiable")}
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return f"{len(swept)} datasets looked at: {told}, {sum(one.status is None for one in swept)} without a verdict"


def _tell(swept: DatasetSwept) -> None:
    log.info("%s: %s", swept.dataset_id, swept.status or swept.trouble)
