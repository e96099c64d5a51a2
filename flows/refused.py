"""The terminal word on a run that could not be begun: whoever is told of conversions hears of that too."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from contract.errors import Busy, LostLease, ZarrmillError
from contract.redact import error_line
from db import datasets, leases, runs
from flows.ownership import is_gone, owning
from flows.survey import current_versions
from infra.home import Home
from infra.settings import load_settings
from tasks.callback import enqueue, refused_body

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.datasets import Dataset
    from db.runs import Mode

__all__ = ["tell_refused"]

log = logging.getLogger("zarrmill.flows.refused")


def tell_refused(engine: Engine, dataset: Dataset, mode: Mode, error: BaseException) -> bool:
    """Open a run of the dataset and end it at once as failed, with its callback; False when another run holds the dataset.

    What is served stays as it is.
    """
    sentence = error.sentence if isinstance(error, ZarrmillError) else error_line(error)
    with owning(Home(load_settings().home)) as ownership:
        try:
            with engine.begin() as c:
                run = leases.acquire(
                    c,
                    dataset=dataset,
                    owner=ownership.owner,
                    mode=mode,
                    versions=current_versions(),
                    owner_is_gone=is_gone,
                )
                datasets.note_failed(c, run=run, errors=0, error=sentence)
                enqueue(c, run=run, body=refused_body(dataset, error))
                runs.finish(c, run=run, state="failed", error=sentence)
                leases.release(c, run=run)
        except (Busy, LostLease) as held:
            log.info("not told as failed, because %s", held.sentence)
            return False
    return True
