from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from db.recordings import RecordingState, ServedVersions
from tasks.bids.discovery import discover
from tasks.plan.fingerprint import source_fingerprint
from tasks.plan.planned import Plan
from tasks.plan.renames import copyable, with_renames
from tasks.plan.worklist import plan
from tasks.sources.protocol import TreeEntry

NOW = datetime(2026, 3, 1, tzinfo=UTC)
VERSIONS = {"options": "o1", "engine": "3"}


def tree_of(*subjects: str, content: str = "a") -> dict[str, TreeEntry]:
    found = {"participants.tsv": TreeEntry(5, "sha256:p")}
    for subject in subjects:
        stem = f"sub-{subject}/eeg/sub-{subject}_task-rest"
        found[f"{stem}_eeg.edf"] = TreeEntry(100, f"sha256:signal-{content}")
        found[f"{stem}_channels.tsv"] = TreeEntry(10, f"sha256:channels-{content}")
    return found


def planned(tree: dict[str, TreeEntry], states: list[RecordingState]) -> Plan:
    return plan(discover(tree).recordings, tree, states, now=NOW, options="o1", engine="3", biosigio="1")


def known(
    tree: dict[str, TreeEntry], **more: object
) -> tuple[list[RecordingState], dict[int, tuple[tuple[str, str], ...]]]:
    """Every recording of the tree, served and current, and its inputs."""
    states, inputs = [], {}
    for number, one in enumerate(discover(tree).recordings, 1):
        pairs = tuple((path, tree[path].content_id) for path in one.inputs())
        source = source_fingerprint(dict(pairs))
        state = RecordingState(
            id=number,
            path=one.path,
            zarr=one.zarr,
            discovered=True,
            source=source,
            served=ServedVersions(source=source, options="o1", engine="3", biosigio="1"),
            due="none",
            why=None,
            reason=None,
            verdict=None,
            attempts=0,
            last_error=None,
            last_attempt_at=None,
            next_attempt_at=None,
        )
        states.append(replace(state, **more))  # type: ignore[arg-type] # tests name what differs
        inputs[number] = pairs
    return states, inputs


def copies(made: Plan) -> dict[str, str | None]:
    return {one.recording.path: one.copy_of.path if one.copy_of else None for one in made.recordings}


def path_of(subject: str) -> str:
    return f"sub-{subject}/eeg/sub-{subject}_task-rest_eeg.edf"


def test_a_recording_that_was_renamed_names_the_store_it_had() -> None:
    states, inputs = known(tree_of("01"))
    made = planned(tree_of("02"), states)
    gone = copyable(made, states, versions=VERSIONS, lost=())
    assert copies(with_renames(made, gone, inputs)) == {path_of("02"): path_of("01")}


@pytest.mark.parametrize("tree", [tree_of("02", content="b"), tree_of("01", "02"), {}])
def test_other_content_and_a_copy_beside_the_original_are_new(tree: dict[str, TreeEntry]) -> None:
    states, inputs = known(tree_of("01"))
    made = planned(tree, states)
    found = with_renames(made, copyable(made, states, versions=VERSIONS, lost=()), inputs)
    assert set(copies(found).values()) <= {None}


def test_one_store_is_taken_once() -> None:
    states, inputs = known(tree_of("01"))
    made = planned(tree_of("02", "03"), states)
    found = with_renames(made, copyable(made, states, versions=VERSIONS, lost=()), inputs)
    assert sorted(copies(found).values(), key=str) == [None, path_of("01")]


def test_a_sidecar_that_changed_with_the_name_is_another_recording() -> None:
    states, inputs = known(tree_of("01"))
    tree = tree_of("02")
    tree[path_of("02").replace("eeg.edf", "channels.tsv")] = TreeEntry(11, "sha256:edited")
    made = planned(tree, states)
    assert copies(with_renames(made, copyable(made, states, versions=VERSIONS, lost=()), inputs)) == {
        path_of("02"): None
    }


@pytest.mark.parametrize(
    "more",
    [
        {"served": None},
        {"source": "0" * 64},
        {"served": ServedVersions(source="x", options="old", engine="3", biosigio="1")},
    ],
)
def test_a_store_that_would_not_be_carried_is_not_copied(more: dict[str, object]) -> None:
    states, _inputs = known(tree_of("01"), **more)
    assert copyable(planned(tree_of("02"), states), states, versions=VERSIONS, lost=()) == ()


def test_a_store_that_is_lost_is_not_copied() -> None:
    states, _inputs = known(tree_of("01"))
    assert copyable(planned(tree_of("02"), states), states, versions=VERSIONS, lost={states[0].zarr}) == ()
