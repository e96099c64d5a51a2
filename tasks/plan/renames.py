"""Recordings that were renamed and nothing else: their store is copied within the target instead of being made again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from contract.codes import WhyDue
from tasks.plan.planned import CopyOf, PlannedAction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from db.recordings import RecordingState
    from tasks.plan.planned import Plan, PlannedRecording

__all__ = ["copyable", "with_renames"]


def copyable(
    made: Plan, states: Iterable[RecordingState], *, versions: Mapping[str, str], lost: Collection[str]
) -> tuple[RecordingState, ...]:
    """Recordings that are gone from the source and whose stores a renamed recording could take.

    Parameters
    ----------
    versions
        Columns that rebuild a store (options, engine, biosigio as asked), with their present values.
    lost
        Store paths that the target does not hold as it should.
    """
    if not any(_is_new(one) for one in made.recordings):
        return ()
    dropped = frozenset(made.dropped)
    return tuple(
        state
        for state in states
        if state.path in dropped
        and state.served is not None
        and state.served.source == state.source
        and state.zarr not in lost
        and all(getattr(state.served, column) == value for column, value in versions.items())
    )


def with_renames(made: Plan, gone: Iterable[RecordingState], inputs: Mapping[int, Iterable[tuple[str, str]]]) -> Plan:
    """The plan, in which new recordings with the very inputs of one that is gone name its store.

    Parameters
    ----------
    gone
        What ``copyable`` gave.
    inputs
        (path, content id) of their inputs, by database id.
    """
    left: defaultdict[tuple[tuple[str, str], ...], list[RecordingState]] = defaultdict(list)
    for state in gone:
        left[_signature(inputs[state.id])].append(state)
    planned = []
    for one in made.recordings:
        origins = left.get(_signature(one.inputs)) if _is_new(one) else None
        if origins:
            origin = origins.pop(0)
            one = replace(one, copy_of=CopyOf(recording_id=origin.id, path=origin.path, zarr=origin.zarr))  # noqa: PLW2901 - the same recording, told more
        planned.append(one)
    return replace(made, recordings=tuple(planned))


def _is_new(one: PlannedRecording) -> bool:
    return one.action is PlannedAction.CONVERT and one.why is WhyDue.NEW


def _signature(inputs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What the inputs are, without the entities in their names: suffix and ending of each, and its content."""
    return tuple(sorted((path.rpartition("/")[2].rpartition("_")[2], content_id) for path, content_id in inputs))
