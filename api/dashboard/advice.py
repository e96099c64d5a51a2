"""What to do about each kind of alarm, in a sentence; ``docs/runbook.md`` has more."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ADVICE"]

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nothing_moves": "zarrmill status --system says whether a runner and workers stand, and whether everything is paused or drained.",
        "dataset_stuck": "Look at its run and its log; cancel it, or end its process with SIGTERM: what is done is published, the rest is tried again.",
        "callbacks_undelivered": "Mend the receiver or the token. Nothing is lost: they are delivered in order once it accepts.",
        "no_worker": "Start workers; zarrmill logs worker-1 says why they ended.",
        "scheduler_unreachable": "Start the Dask scheduler; runs wait for it for some minutes and leave what is due to the next.",
        "storage_unreachable": "Look at the storage service, its credentials and the clock. Nothing is removed meanwhile.",
        "database_unreachable": "Start Postgres; nothing is begun until then.",
        "report_undelivered": "Mend ZARRMILL_ALARM_URL or mail, then run weekly_report in Prefect.",
        "engine_gate": "zarrmill engine preview says what making them anew takes; zarrmill engine approve --execute lets it begin.",
        "source_unreadable": "Mend the path, repository or bucket; it is looked at again every hour.",
        "index_foreign": "zarrmill adopt takes over what is served.",
        "given_up": "The dataset's page names the error; mend it, then requeue the dataset.",
        "exhausted": "The pages of the recordings that wait say why: mostly a machine with more memory is needed. Then requeue the dataset.",
    }
)
"""By kind of alarm (``flows.watch.KINDS``)."""
