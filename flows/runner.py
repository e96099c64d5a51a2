"""The runner: starts what is due, each dataset as a process of its own, and holds nothing that a restart would lose.

What is to be done stands in Postgres, what is done there too; Prefect is asked for due flow runs and told how they ended. So
a runner, a Prefect server, or both may be killed at any moment: what converts goes on, and the next turn finds the rest.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import DBAPIError

from contract.redact import error_line
from db import datasets, killed, leases, requests
from flows.deployments import CONVERSION, deployments, interval_s
from flows.inbox import DueFlow, Inbox
from flows.ownership import is_gone
from flows.run_request import child_name
from flows.watch import tell_of_database
from infra.children import PUBLISHES_S, Children
from infra.home import Home
from infra.standing import standing_files

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from db.requests import Request
    from flows.stop import StopSignal
    from infra.settings import Settings

__all__ = ["Runner"]

log = logging.getLogger("zarrmill.flows.runner")

_TURN_S: Final = 2.0
_FIRST_DELAY_S: Final = 5.0
_LONGEST_DELAY_S: Final = 900.0
_DATASETS: Final = "dataset-"
_VERIFY_EVERY_S: Final = 60.0
_DATABASE_AWAY_S: Final = 120.0
"""A restart of Postgres takes seconds."""


class Runner:
    """One runner of one home."""

    def __init__(self, settings: Settings, engine: Engine, *, datasets_at_a_time: int, stop: StopSignal) -> None:
        self._settings = settings
        self._engine = engine
        self._datasets_at_a_time = datasets_at_a_time
        self._stop = stop
        home = Home(settings.home)
        self._children = Children(home)
        self._beat = standing_files(home).runner_beat
        url = settings.prefect_api_url
        self._inbox = None if url is None else Inbox(settings, engine, url)
        self._tries: dict[
            int, tuple[int, float]
        ] = {}  # by request: how often it came back untouched, and until when it waits
        self._began: dict[str, float] = {}  # by scheduled flow: when it last began, as far as this runner knows
        self._intervals = {one.flow_name: min(map(interval_s, one.crons)) for one in deployments() if one.crons}
        self._started_at = time.monotonic()
        self._database_away_at: float | None = None
        self._database_told = False

    def run(self) -> None:
        """Take turns until asked to stop; then let what converts finish or let go, and publish."""
        log.info("the runner begins: at most %d datasets at a time", self._datasets_at_a_time)
        while self._stop.state == "go":
            try:
                self._turn()
                self._beat.write_text(self._word())
                self._database_answers()
            except DBAPIError as error:
                log.warning("Postgres does not answer: %s", error_line(error))
                self._database_is_away()
            self._stop.wait(_TURN_S)
        log.info("finishing what converts")
        patience_s = 5.0 if self._stop.state == "now" else self._settings.stop_grace_s + PUBLISHES_S
        for name, was_killed in self._children.end(patience_s).items():
            if was_killed:
                log.warning("%s did not finish in time and was killed; it is tried again later", name)

    def _database_is_away(self) -> None:
        """Tell of it, once: an alarm that cannot be written where the others are."""
        now = time.monotonic()
        self._database_away_at = self._database_away_at or now
        if not self._database_told and now - self._database_away_at > _DATABASE_AWAY_S:
            self._database_told = True
            tell_of_database(self._settings, over=False)

    def _database_answers(self) -> None:
        if self._database_told:
            tell_of_database(self._settings, over=True)
        self._database_away_at, self._database_told = None, False

    def _word(self) -> str:
        """What is wrong with the runner, for those who look at its beat; nothing when nothing is."""
        if self._inbox is None or self._inbox.away_since is None:
            return ""
        return "Prefect does not answer it"

    def _turn(self) -> None:
        self._reap()
        running = self._children.running()
        for due in [] if self._inbox is None else self._inbox.turn(running):
            self._start_scheduled(due)
        self._start_without_prefect(running)
        self._start_verification(self._children.running())
        self._start_datasets(self._children.running())

    def _reap(self) -> None:
        """See which children have ended. A request that one of them left behind waits again."""
        for name, code in self._children.ended().items():
            log.info("%s ended with exit code %d", name, code)
            if not name.startswith(_DATASETS) or code >= 0:
                continue
            pk = int(name.rpartition("-")[2])
            with self._engine.begin() as c:
                dataset = datasets.by_pk(c, pk=pk)
                owner = None if dataset is None else leases.holder(c, dataset=dataset)
                # another process, or a command, may have taken the dataset over since
                if owner is not None and is_gone(owner) and killed.end_lease(c, dataset_pk=pk, of=owner):
                    log.warning("%s was killed; its request waits again", name)

    def _start_datasets(self, running: set[str]) -> None:
        converting = {name for name in running if name.startswith(_DATASETS)}
        free = self._datasets_at_a_time - len(converting)
        if free <= 0:
            return
        with self._engine.connect() as c:
            due = requests.next_due(c, limit=free + len(converting) + len(self._tries) + 1)
        now = time.monotonic()
        self._tries = {pk: tried for pk, tried in self._tries.items() if any(one.pk == pk for one in due)}
        for one in due:
            name = child_name(one)
            if free <= 0:
                return
            if name in converting or self._waits(one, now):
                continue
            pid = self._children.start(name, "flows.run_request", str(one.pk))
            log.info(
                "request %d for %s (%s, asked by %s) is process %d", one.pk, one.dataset_id, one.mode, one.asked_by, pid
            )
            free -= 1

    def _waits(self, request: Request, now: float) -> bool:
        """Whether a request that came back untouched waits a little; each time twice as long."""
        tries, until = self._tries.get(request.pk, (0, 0.0))
        if now < until:
            return True
        self._tries[request.pk] = (tries + 1, now + min(_FIRST_DELAY_S * 2**tries, _LONGEST_DELAY_S))
        return False

    def _start_scheduled(self, due: DueFlow) -> None:
        self._began[due.name] = time.monotonic()
        pid = self._children.start(due.name, "flows.run_scheduled", due.name, str(due.flow_run_id))
        log.info("%s is process %d", due.name, pid)

    def _start_verification(self, running: set[str]) -> None:
        """Let the sweep begin before its time when somebody asked for a verification."""
        name = "verify_sweep"
        if name in running or time.monotonic() - self._began.get(name, float("-inf")) < _VERIFY_EVERY_S:
            return
        with self._engine.connect() as c:
            asked = requests.next_due(c, work="verify", limit=1)
        if asked:
            self._began[name] = time.monotonic()
            self._children.start(name, "flows.run_scheduled", name)
            log.info("%s is started, because somebody asked for it", name)

    def _start_without_prefect(self, running: set[str]) -> None:
        """Do what the schedule asks while Prefect cannot: it is away, or there is none."""
        if self._inbox is not None and self._inbox.away_since is None:
            return
        now = time.monotonic()
        for name, every_s in self._intervals.items():
            if name == CONVERSION or name in running or now - self._began.get(name, self._started_at) < every_s:
                continue
            self._began[name] = now
            self._children.start(name, "flows.run_scheduled", name)
            log.info("%s is started without Prefect", name)
