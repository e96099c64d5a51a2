"""What has to be looked after whether or not anything runs: the dead, the undelivered, the left over, the old."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from contract.errors import LostLease, ZarrmillError
from contract.redact import error_line
from db import datasets, killed, requests, retention, tallies
from flows.catalogs import publish_catalogs
from flows.ownership import is_gone
from flows.prefect_adopted import asking
from flows.prefect_left import crash_left, dataset_tag
from flows.run_report import leave_owed_reports, remove_old_reports
from flows.watch import look_around, tell_untold
from infra.storage import open_target
from tasks.callback import deliver_due, enqueue, refused_body
from tasks.convert.scratch import is_left_behind

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

    from db.killed import DeadLease
    from infra.settings import Settings
    from tasks.callback import Deliveries

__all__ = ["Kept", "keep_up"]

log = logging.getLogger("zarrmill.flows.upkeep")

KILLED: Final = "The run was killed before it could say how it ended; what was served before is served still."
_ELSEWHERE_S: Final = 600.0
"""A lease of another machine is over for certain so long after it ran out: a laptop that slept renews its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What one pass did."""

    leases_ended: int
    requests_back: int
    words_sent: int
    accepted: int
    refused: int
    scratch_removed: int
    reports: int
    trimmed: int
    alarms_open: int
    alarms_told: int

    @property
    def sentence(self) -> str:
        """For the flow run."""
        return (
            f"{self.leases_ended} leases of killed runs ended, {self.requests_back} requests wait again, {self.words_sent} runs told "
            f"as failed; callbacks: {self.accepted} accepted, {self.refused} refused; {self.reports} reports of runs written; "
            f"{self.scratch_removed} scratch folders and {self.trimmed} old rows removed; {self.alarms_open} alarms open, {self.alarms_told} told"
        )


def keep_up(settings: Settings, engine: Engine) -> Kept:
    """One pass. Trouble with one thing never keeps the others from being done."""
    ended = _end_dead_leases(engine, settings)
    with engine.begin() as c:
        back = requests.recover(c)
    with engine.begin() as c:
        tallies.fold(c)
    words = _send_owed_words(settings, engine)
    delivered: Deliveries = deliver_due(engine, settings)
    kept = Kept(
        leases_ended=ended,
        requests_back=back,
        words_sent=words,
        accepted=delivered.accepted,
        refused=delivered.refused,
        scratch_removed=_remove_left_scratch(settings.scratch),
        reports=leave_owed_reports(settings, engine),
        trimmed=_trim(settings, engine),
        alarms_open=look_around(settings, engine),
        alarms_told=tell_untold(settings, engine),
    )
    log.info("%s", kept.sentence)
    return kept


def _end_dead_leases(engine: Engine, settings: Settings) -> int:
    """End the leases of killed runs, and their flow runs in Prefect."""
    with engine.connect() as c:
        dead = [one for one in killed.dead_leases(c) if _is_over(one)]
    ended = 0
    for one in dead:
        with engine.begin() as c:
            over = killed.end_lease(c, dataset_pk=one.dataset_pk)
            dataset = datasets.by_pk(c, pk=one.dataset_pk)
        ended += over
        if over and dataset is not None:
            log.info("the run of %s that held it was killed; its lease is ended", dataset.dataset_id)
            if settings.prefect_api_url is not None:
                with asking(settings.prefect_api_url):
                    crash_left(dataset_tag(dataset))
    return ended


def _is_over(dead: DeadLease) -> bool:
    return is_gone(dead.owner) or dead.since_s > _ELSEWHERE_S


def _send_owed_words(settings: Settings, engine: Engine) -> int:
    """Say for killed runs that nobody follows that they failed; how many."""
    with engine.connect() as c:
        owing = killed.owing(c)
    sent, targets = 0, set()
    for run in owing:
        try:
            with engine.begin() as c:
                dataset = datasets.by_pk(c, pk=run.dataset_pk)
                if dataset is not None and killed.note_killed(c, run=run, error=KILLED):
                    sent += enqueue(c, run=run, body=refused_body(dataset, ZarrmillError(KILLED)))
                    targets.add(dataset.target)
        except LostLease as error:
            log.info("a word on run %d was not needed: %s", run.number, error.sentence)
    for target in targets:
        try:
            publish_catalogs(settings, engine, target=target)
        except ZarrmillError as error:
            log.warning("%s", error.sentence)
    return sent


def _remove_left_scratch(scratch: Path) -> int:
    """Remove scratch of workers that are gone, in case none follows them here."""
    removed = 0
    try:
        folders = [folder for folder in scratch.iterdir() if folder.is_dir() and is_left_behind(folder)]
    except OSError as error:
        log.info("scratch was not looked at: %s", error_line(error))
        return 0
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        removed += not folder.exists()
    return removed


def _trim(settings: Settings, engine: Engine) -> int:
    """Remove old history: of the service, and of each dataset once a day."""
    keep_days = settings.keep_history_days
    with engine.connect() as c:
        due = [dataset for pk in retention.due_for_trimming(c) if (dataset := datasets.by_pk(c, pk=pk)) is not None]
    for dataset in due:
        try:
            remove_old_reports(engine, open_target(dataset.target, settings), dataset, keep_days=keep_days)
        except ZarrmillError as error:
            log.warning("old reports of %s were not removed: %s", dataset.dataset_id, error.sentence)
    with engine.begin() as c:
        removed = retention.trim_service(c, keep_days=keep_days)
        for dataset in due:
            trimmed = retention.trim(c, dataset=dataset, keep_days=keep_days)
            removed += trimmed.attempts + trimmed.callbacks + trimmed.runs
    return removed
