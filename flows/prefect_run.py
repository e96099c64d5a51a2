"""The Prefect side of a run: one flow run a dataset, one task run a stage. Prefect's states are advice; the truth is Postgres.

A task run for each recording would cost about 200 ms of the flow and a dozen rows of Prefect's database each.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from prefect import flow, tags, task
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterEndTime
from prefect.client.schemas.objects import State
from prefect.exceptions import TerminationSignal
from prefect.flow_engine import run_flow
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings
from prefect.states import Cancelled, Completed
from pydantic import Field

from contract.errors import Refused
from flows.prefect_adopted import adopt
from flows.prefect_left import crash_left, dataset_tag
from flows.prefect_report import leave_artifact, note_flow_run
from flows.request import Mode
from flows.stop import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flows.request import RunSummary
    from flows.session import Session

__all__ = ["Work", "forget_old_flow_runs", "reconvert_dataset", "run_as_flow"]

log = logging.getLogger("zarrmill.flows.prefect")

_POLL_EVERY_S = 2.0
_FORGOTTEN_AT_ONCE = 50  # each costs a request; a run adds one, so this keeps up
_TALKERS = ("prefect", "prefect.flow_runs", "prefect.task_runs", "prefect.flows", "prefect.tasks")
"""Prefect sets the level of each when it is imported. What they tell of a run, and of its errors, the command tells better."""

DatasetName = Annotated[str, Field(pattern=r"^[a-z]{2}[0-9]{6}$", description="Two small letters and six digits.")]
CommitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w./+-]{0,199}$", description="A commit, branch or tag.")]

Work = "Callable[[Callable[[str, Callable[[], None]], None]], RunSummary]"

_direct: contextvars.ContextVar[_Direct] = contextvars.ContextVar("zarrmill_direct_run")


class _Direct:
    """A run that a command has opened, on its way into the flow's body and back out."""

    def __init__(
        self, session: Session, work: Callable[[Callable[[str, Callable[[], None]], None]], RunSummary]
    ) -> None:
        self.session = session
        self.work = work
        self.summary: RunSummary | None = None
        self.error: BaseException | None = None


@flow(name="reconvert_dataset", persist_result=False)
def reconvert_dataset(
    dataset_id: DatasetName, mode: Mode = "auto", commit: CommitName | None = None, target: str | None = None
) -> State[Any]:
    """Bring the served copy of a dataset to its source.

    Parameters
    ----------
    dataset_id
        The dataset, at the target of the command that runs this, or at the one target where it is registered.
    mode
        auto, full or retry-pending.
    commit
        State of the source that is converted.
    target
        Where it is served from, when several targets have a dataset of this id.
    """
    direct = _direct.get(None)
    if direct is None:
        raise Refused(
            "reconvert_dataset is carried out by `zarrmill runner`, or inside `zarrmill convert`; start it with either."
        )
    log.debug("flow run for %s (%s) at %s, %s", dataset_id, mode, commit, target)
    # again, because the engine has just put a SIGTERM handler of its own in place
    with listening(direct.session.stop), _cancellable(direct.session, flow_run.id):
        try:
            note_flow_run(direct.session, flow_run.id)
            direct.summary = direct.work(_as_task)
        except BaseException as error:
            direct.error = error
            if isinstance(error, Exception):
                leave_artifact(direct.session, None, error)
            raise
    summary = direct.summary
    leave_artifact(direct.session, summary, None)
    told = f"{summary.discovered} discovered = {summary.stores} stores + {summary.failures} failures + {summary.pending} pending"
    return Cancelled(message=told) if summary.stopped else Completed(message=told)


def _as_task(name: str, work: Callable[[], None]) -> None:
    """Run one stage as a task run of its own. It returns nothing, so that Prefect keeps no result."""

    @task(name=name, persist_result=False, retries=0)
    def stage() -> None:
        work()

    stage()


@contextmanager
def _cancellable(session: Session, run_id: str | None) -> Iterator[None]:
    """Ask the run to stop when its flow run is cancelled: nobody sends a signal to a flow that a command runs itself."""
    left = threading.Event()
    context = contextvars.copy_context()
    watch = threading.Thread(
        target=context.run, args=(_watch, session, run_id, left), name="zarrmill-prefect-watch", daemon=True
    )
    if run_id is not None:
        watch.start()
    try:
        yield
    finally:
        left.set()
        if watch.is_alive():
            watch.join()


def _watch(session: Session, run_id: str, left: threading.Event) -> None:
    import httpx

    with get_client(sync_client=True) as client:
        while not left.wait(_POLL_EVERY_S):
            try:
                state = client.read_flow_run(UUID(run_id)).state
            except httpx.HTTPError as error:
                log.debug("the flow run's state could not be read: %s", error)
                continue
            if state is not None and state.is_cancelling():
                log.info("the flow run was cancelled; finishing")
                session.stop.cancel()
                return


def forget_old_flow_runs(before: datetime, *, most: int = _FORGOTTEN_AT_ONCE) -> int:
    """Remove flow runs that ended before a moment from the Prefect in use, at most so many; how many were."""
    import httpx

    old = FlowRunFilter(end_time=FlowRunFilterEndTime(before_=before))
    try:
        with get_client(sync_client=True) as client:
            found = client.read_flow_runs(flow_run_filter=old, limit=most)
            for one in found:
                client.delete_flow_run(one.id)
    except httpx.HTTPError as error:
        log.warning("old flow runs were not removed: %s", type(error).__name__)
        return 0
    return len(found)


def run_as_flow(
    session: Session,
    api_url: str | None,
    work: Callable[[Callable[[str, Callable[[], None]], None]], RunSummary],
    flow_run_id: UUID | None = None,
) -> RunSummary:
    """Do ``work`` as a flow run recorded at ``api_url``; in the main thread, because signals end there.

    Prefect's record is advice: where it does not answer, or with None for its address, the work is done without one.
    ``flow_run_id`` is a flow run that Prefect made for this dataset; else a new one is.

    Raises
    ------
    ZarrmillError
        What ``work`` raises, unchanged.
    """
    if api_url is None:
        return work(_unrecorded)
    for name in _TALKERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    direct = _Direct(session, work)
    token = _direct.set(direct)
    try:
        with suppress(TerminationSignal):
            _record(session, api_url, flow_run_id)
    except Exception as error:  # noqa: BLE001 - Prefect's states are advice: no trouble with them may stop a run
        log.warning("Prefect did not record the run: %s", type(error).__name__)
        if direct.summary is None and direct.error is None:
            return work(_unrecorded)
    finally:
        _direct.reset(token)
    if direct.summary is None and (direct.error is None or isinstance(direct.error, TerminationSignal)):
        # The engine heard a SIGTERM while its own handler stood, before ours: it is a word to finish, as any other.
        if session.stop.state == "go":
            session.stop.request("SIGTERM")
        return work(_unrecorded)
    if direct.error is not None:
        raise direct.error
    assert direct.summary is not None, "a flow that ended without an error has done its work"
    return direct.summary


def _record(session: Session, api_url: str, flow_run_id: UUID | None) -> None:
    tag = dataset_tag(session.dataset)
    parameters: dict[str, Any] = {
        "dataset_id": session.dataset.dataset_id,
        "mode": session.request.mode,
        "commit": session.survey.commit,
        "target": session.dataset.target,
    }
    settings: dict[Any, Any] = {PREFECT_API_URL: api_url, PREFECT_LOGGING_TO_API_ENABLED: False}
    with temporary_settings(settings), tags(tag):
        crash_left(tag, but=flow_run_id)
        adopted = None if flow_run_id is None else adopt(flow_run_id, tag=tag)
        if adopted is None:
            reconvert_dataset(**parameters, return_state=True)
        else:
            run_flow(reconvert_dataset, flow_run=adopted, parameters=parameters, return_type="state")
        if session.settings.prefect_api_url is None:
            forget_old_flow_runs(datetime.now(UTC) - timedelta(days=session.settings.keep_history_days))


def _unrecorded(_name: str, stage: Callable[[], None]) -> None:
    stage()
