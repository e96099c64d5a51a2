"""What one Dask worker process has for its conversions: settings, a database engine, the child pool, leases, scratch.

Made on first use, or at the worker's start when it is loaded as a preload (``--preload tasks.convert.worker_room``), so that the
first recording need not wait for the fork server.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from contract.errors import LostLease, Refused
from db import drains, recordings
from infra.cluster import child_environment, worker_identity
from infra.database import engine
from infra.home import private_folder
from infra.settings import Settings, inherited_environment, load_settings
from tasks.convert.child import ChildPool
from tasks.convert.leases import HeldAttempt, LeaseKeeper
from tasks.convert.scratch import WorkerScratch
from tasks.sources import open_source
from tasks.sources.protocol import Source, SourceAddress

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["STAGES", "WorkerRoom", "dask_setup", "dask_teardown", "stage_key", "worker_room"]

_LOG = logging.getLogger("zarrmill.worker")

STAGES: Final = ("fetch", "convert", "upload")
_TEND_EVERY_S: Final = 1.0
_RELEASED_WITHIN_S: Final = 10.0  # a child is dead within 0.1 s, and then its edge is written


def stage_key(stage: str, attempt_id: UUID | str) -> str:
    """The Dask key of one stage of one attempt."""
    return f"{stage}-{attempt_id}"


class WorkerRoom:
    """Everything that the stages of all attempts of one worker process share."""

    def __init__(self, settings: Settings, dask_worker: Any = None) -> None:
        if settings.database_url is None:
            raise Refused("a worker needs ZARRMILL_DATABASE_URL, the one that the command uses")
        self.settings = settings
        self.scratch = WorkerScratch(private_folder(settings.scratch))
        self.engine: Engine = engine(settings.database_url.get_secret_value(), pool_size=1)
        self.pool = ChildPool(child_environment(inherited_environment()))
        self.leases = LeaseKeeper(
            self.engine, is_wanted=self._is_wanted, let_go=self._let_go, in_line=self._waiting_for_a_slot
        )
        self._dask_worker = dask_worker
        self._sources: dict[SourceAddress, Source] = {}
        self._sources_lock = threading.Lock()
        self._closed = threading.Event()
        self._leaving = threading.Event()
        self.scratch.tend(lambda _attempt_id: True)  # the room that a killed predecessor took is needed now
        threading.Thread(target=self._tend, name="zarrmill-tend", daemon=True).start()

    def source(self, address: SourceAddress) -> Source:
        """The source at an address, opened once: opening asks git or a bucket, using it asks for contents alone."""
        with self._sources_lock:
            if address not in self._sources:
                self._sources[address] = open_source(address, self.settings)
            return self._sources[address]

    def end_attempt(self, attempt_id: UUID) -> None:
        """Stop renewing an attempt and remove its scratch folder."""
        self.leases.drop(attempt_id)
        self.scratch.remove(attempt_id)

    @property
    def is_leaving(self) -> bool:
        """Whether this process has been asked to end and begins nothing more."""
        return self._leaving.is_set()

    def leave(self) -> None:
        """End in order: nothing begins any more, what runs may finish for the grace, then it is let go, uncounted.

        Returns when nothing is held, or a little after the grace.
        """
        grace_s, name = self.settings.stop_grace_s, worker_identity().name
        # Every flow must see it before one of its attempts is refused here, or it would send the next one.
        told = self.leases.count > 0 and self._tell(
            lambda c: drains.ask(c, worker=name, grace_s=grace_s, why="the worker was asked to end")
        )
        self._leaving.set()
        self.leases.stop(unbegun_only=True)
        if not self._wait_until_free(grace_s):
            self.leases.stop()
            self._wait_until_free(_RELEASED_WITHIN_S)
        if told:
            self._tell(lambda c: drains.undo(c, worker=name))

    def _wait_until_free(self, timeout_s: float) -> bool:
        give_up = time.monotonic() + timeout_s
        while self.leases.count and time.monotonic() < give_up:
            time.sleep(0.05)
        return self.leases.count == 0

    def _tell(self, statement: Callable[[Connection], object]) -> bool:
        try:
            with self.engine.begin() as c:
                statement(c)
        except SQLAlchemyError as error:
            _LOG.warning("flows could not be told that this worker leaves: %s", type(error).__name__)
            return False
        return True

    def is_cancelled(self, key: str) -> bool:
        """Whether Dask has forgotten the task ``key`` that runs here, as it does when its client is gone."""
        if self._dask_worker is None:
            return False
        task = self._dask_worker.state.tasks.get(key)
        return task is None or task.state in {"cancelled", "released", "forgotten"}

    def close(self) -> None:
        """Kill the children and give everything back."""
        self._closed.set()
        self.leases.close()
        self.pool.close()
        self.engine.dispose()
        self.scratch.close()

    def _is_wanted(self, attempt_id: UUID) -> bool:
        if self._dask_worker is None:
            return True
        known = self._dask_worker.state.tasks
        return any(stage_key(stage, attempt_id) in known for stage in STAGES)

    def _waiting_for_a_slot(self) -> list[UUID]:
        """Attempts whose conversion has come to this worker and has not begun, whatever it waits for."""
        if self._dask_worker is None:
            return []
        prefix = stage_key("convert", "")
        tasks = list(self._dask_worker.state.tasks.items())  # the worker's own loop changes it meanwhile
        return [
            UUID(str(key).removeprefix(prefix))
            for key, task in tasks
            if str(key).startswith(prefix) and task.state in {"constrained", "ready", "waiting"}
        ]

    def _let_go(self, held: HeldAttempt) -> None:
        """End an attempt that rests between two stages and that nobody will go on with."""
        _LOG.warning("nobody goes on with attempt %s; it is released", held.attempt_id)
        self.end_attempt(held.attempt_id)
        try:
            with self.engine.begin() as c:
                recordings.release(
                    c,
                    attempt_id=held.attempt_id,
                    run_number=held.run_number,
                    why="the command that began it is gone",
                )
        except (LostLease, SQLAlchemyError) as error:
            _LOG.info("attempt %s was not released: %s", held.attempt_id, type(error).__name__)

    def _tend(self) -> None:
        """Look after what nobody goes on with, apart from the renewals, which wait for Postgres."""
        while not self._closed.wait(_TEND_EVERY_S):
            self.leases.look_after_resting()
            try:
                self.scratch.tend(lambda attempt_id: self.leases.get(attempt_id) is not None)
            except OSError as error:
                _LOG.warning("the scratch folder could not be looked through: %s", error)


_room: WorkerRoom | None = None
_room_lock = threading.Lock()


def worker_room(dask_worker: Any = None) -> WorkerRoom:
    """The room of this process. Raises Refused when its settings are wrong."""
    global _room  # noqa: PLW0603 - one per process is what it is: connections and children cannot be shared otherwise
    with _room_lock:
        if _room is None:
            _room = WorkerRoom(load_settings(), dask_worker)
        return _room


def dask_setup(worker: Any) -> None:
    """Make the room when the worker starts, and warm it up beside its start. Called in the main thread."""
    room = worker_room(worker)
    _leave_when_asked(room, worker)
    threading.Thread(target=_warm_up, args=(room,), name="zarrmill-warm-up", daemon=True).start()


def dask_teardown(_worker: Any) -> None:
    """Give everything back when the worker ends in order."""
    global _room
    with _room_lock:
        room, _room = _room, None
    if room is not None:
        room.close()


def _leave_when_asked(room: WorkerRoom, worker: Any) -> None:
    """Answer the first SIGTERM or SIGINT by leaving in order; those after it say nothing new. SIGKILL is not ours to answer."""
    asked = threading.Event()

    def leave() -> None:
        room.leave()
        worker.loop.add_callback(worker.close, nanny=True, reason="the worker was asked to end")

    def heard(_number: int, _frame: FrameType | None) -> None:
        if not asked.is_set():
            asked.set()
            threading.Thread(target=leave, name="zarrmill-leave", daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, heard)


def _warm_up(room: WorkerRoom) -> None:
    try:
        threads = room.pool.warm_up()
    except OSError as error:
        _LOG.error("conversions cannot start: %s", error)
        return
    if threads != 1:
        _LOG.error("the fork server has %d threads; a fork of it may hang", threads)
