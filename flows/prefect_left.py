"""Flow runs of commands that were killed: nobody but the next run of the dataset can tell Prefect that they are over."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Final

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Crashed

if TYPE_CHECKING:
    from uuid import UUID

    from db.datasets import Dataset

__all__ = ["crash_left", "dataset_tag"]

log = logging.getLogger("zarrmill.flows.prefect")

_AT_WORK: Final = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
_WHY: Final = "The command that did this run was killed."


def dataset_tag(dataset: Dataset) -> str:
    """The tag of every flow run of a dataset at its target: others may serve a dataset of the same id elsewhere."""
    at = hashlib.sha256(dataset.target.encode()).hexdigest()[:12]
    return f"{dataset.dataset_id}@{at}"


def crash_left(tag: str, *, but: UUID | None = None) -> None:
    """Set flow runs with this tag that still stand as running, and their task runs, to Crashed; all ``but`` one.

    For the holder of the dataset, before its own flow run begins: no other run can then be at work. Trouble is only logged.
    """
    of_dataset = FlowRunFilter(
        tags=FlowRunFilterTags(all_=[tag]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_AT_WORK)),
    )
    at_work = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_AT_WORK)))
    try:
        with get_client(sync_client=True) as client:
            for left in client.read_flow_runs(flow_run_filter=of_dataset):
                if left.id == but:
                    continue
                this = FlowRunFilter(id=FlowRunFilterId(any_=[left.id]))
                for stage in client.read_task_runs(flow_run_filter=this, task_run_filter=at_work):
                    client.set_task_run_state(stage.id, Crashed(message=_WHY), force=True)
                client.set_flow_run_state(left.id, Crashed(message=_WHY), force=True)
                log.info("the flow run %s of a command that was killed is set to Crashed", left.name)
    except Exception as error:  # noqa: BLE001 - Prefect's states are advice: no trouble with them may stop a run
        log.warning("flow runs of killed commands could not be ended in Prefect: %s", type(error).__name__)
