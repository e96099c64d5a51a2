from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import found, only

from tasks.bids.entities import parse_name
from tasks.bids.recording import Ambiguity

EEG = "sub-01/ses-a/eeg"
RECORDING = f"{EEG}/sub-01_ses-a_task-rest_run-1_eeg.edf"


@pytest.mark.parametrize("kind", ["channels.tsv", "events.tsv"])
@pytest.mark.parametrize(
    ("tree", "winner"),
    [
        (["{}"], "{}"),
        (["task-rest_{}"], "task-rest_{}"),
        (["{}", "task-rest_{}"], "task-rest_{}"),
        (["task-rest_{}", "sub-01/sub-01_{}"], "sub-01/sub-01_{}"),
        (["task-rest_run-1_{}", f"{EEG}/{{}}"], f"{EEG}/{{}}"),
        (["sub-01/sub-01_task-rest_{}", "sub-01/sub-01_{}"], "sub-01/sub-01_task-rest_{}"),
        (
            [f"{EEG}/sub-01_ses-a_task-rest_{{}}", f"{EEG}/sub-01_ses-a_task-rest_run-1_{{}}"],
            f"{EEG}/sub-01_ses-a_task-rest_run-1_{{}}",
        ),
        (["task-rest_run-1_sub-01_{}"], "task-rest_run-1_sub-01_{}"),
        (["task-other_{}", "sub-02_{}", "task-rest_acq-x_{}", "task-rest_run-01_{}"], None),
        (["sub-02/{}", "sub-01/ses-b/{}", f"{EEG}/deeper/{{}}", "derivatives/{}"], None),
        (["task-rest_epo_{}", "notes{}", "task-rest_{}.gz"], None),
        (["task-rest_x{}"], None),
    ],
)
def test_the_deepest_then_the_most_specific_table_applies(kind: str, tree: list[str], winner: str | None) -> None:
    discovery = found(RECORDING, *(path.format(kind) for path in tree))
    (recording,) = discovery.recordings
    got = recording.sidecars.channels if kind == "channels.tsv" else recording.sidecars.events
    assert got == (winner and winner.format(kind))
    assert discovery.ambiguities == ()


def test_a_tie_is_decided_by_name_and_reported() -> None:
    tie = ["sub-01/sub-01_task-rest_channels.tsv", "sub-01/sub-01_run-1_channels.tsv"]
    discovery = found(RECORDING, *tie, "channels.tsv")
    assert discovery.recordings[0].sidecars.channels == tie[1]
    assert discovery.ambiguities == (Ambiguity(RECORDING, tie[1], (tie[0],)),)


def test_a_part_that_is_no_entity_must_be_in_the_recordings_name_too() -> None:
    epo = f"{EEG}/sub-01_ses-a_task-rest_epo_eeg.set"
    discovery = found(RECORDING, epo, f"{EEG}/sub-01_task-rest_epo_channels.tsv")
    assert [recording.sidecars.channels for recording in discovery.recordings] == [
        f"{EEG}/sub-01_task-rest_epo_channels.tsv",
        None,
    ]


def test_json_chains_go_from_the_root_to_the_recording() -> None:
    chain = ["eeg.json", "task-rest_eeg.json", "sub-01/sub-01_eeg.json", f"{EEG}/sub-01_ses-a_task-rest_run-1_eeg.json"]
    events = ["events.json", "task-rest_events.json", "sub-01/ses-a/sub-01_ses-a_events.json"]
    others = ["meg.json", "ieeg.json", "task-other_eeg.json", "task-rest_run-2_events.json", "sub-02/eeg.json"]
    recording = only(RECORDING, *reversed(chain), *events, *others)
    assert recording.sidecars.signal_json == tuple(chain)
    assert recording.sidecars.events_json == tuple(events)
    assert set(recording.inputs()) == {RECORDING, *chain, *events}


def test_equals_in_one_level_of_a_json_chain_are_reported() -> None:
    discovery = found(RECORDING, "task-rest_eeg.json", "run-1_eeg.json", "eeg.json")
    assert discovery.recordings[0].sidecars.signal_json == ("eeg.json", "run-1_eeg.json", "task-rest_eeg.json")
    assert discovery.ambiguities == (Ambiguity(RECORDING, "task-rest_eeg.json", ("run-1_eeg.json",)),)


@pytest.mark.parametrize(
    ("tree", "electrodes", "coordsystem"),
    [
        (["electrodes.tsv", "coordsystem.json"], "electrodes.tsv", "coordsystem.json"),
        (
            ["electrodes.tsv", "space-A_electrodes.tsv", "space-A_coordsystem.json"],
            "electrodes.tsv",
            "space-A_coordsystem.json",
        ),
        (
            ["sub-01_space-A_electrodes.tsv", "sub-01_space-B_electrodes.tsv", "sub-01_space-B_coordsystem.json"],
            "sub-01_space-B_electrodes.tsv",
            "sub-01_space-B_coordsystem.json",
        ),
        (["space-A_electrodes.tsv", "coordsystem.json"], "space-A_electrodes.tsv", "coordsystem.json"),
        (["space-A_electrodes.tsv", "space-B_coordsystem.json"], "space-A_electrodes.tsv", None),
        (["sub-01/space-A_electrodes.tsv", "electrodes.tsv"], "sub-01/space-A_electrodes.tsv", None),
        (
            ["sub-01/space-A_electrodes.tsv", "space-A_coordsystem.json"],
            "sub-01/space-A_electrodes.tsv",
            "space-A_coordsystem.json",
        ),
        (["task-other_electrodes.tsv", "sub-02/electrodes.tsv"], None, None),
    ],
)
def test_electrodes_may_name_a_space_and_keep_their_coordinate_system(
    tree: list[str], electrodes: str | None, coordsystem: str | None
) -> None:
    discovery = found(RECORDING, *tree)
    sidecars = discovery.recordings[0].sidecars
    assert (sidecars.electrodes, sidecars.coordsystem) == (electrodes, coordsystem)
    assert discovery.ambiguities == ()


def test_of_two_described_spaces_the_first_is_taken_and_reported() -> None:
    both = [f"space-{space}_{kind}" for space in "BA" for kind in ("electrodes.tsv", "coordsystem.json")]
    discovery = found(RECORDING, *both)
    sidecars = discovery.recordings[0].sidecars
    assert (sidecars.electrodes, sidecars.coordsystem) == ("space-A_electrodes.tsv", "space-A_coordsystem.json")
    assert discovery.ambiguities == (Ambiguity(RECORDING, "space-A_electrodes.tsv", ("space-B_electrodes.tsv",)),)


def test_electrodes_in_two_spaces_at_once_get_no_coordinate_system_and_that_is_reported() -> None:
    spaces = ("space-left_coordsystem.json", "space-right_coordsystem.json")
    discovery = found(RECORDING, "electrodes.tsv", *spaces)
    assert discovery.recordings[0].sidecars.coordsystem is None
    assert discovery.ambiguities == (Ambiguity(RECORDING, None, spaces),)


def test_the_calibration_pair_is_inherited_with_its_own_acq() -> None:
    tree = ["sub-01/sub-01_acq-calibration_meg.dat", "acq-crosstalk_meg.fif", "sub-02_acq-calibration_meg.dat"]
    sidecars = only("sub-01/meg/sub-01_acq-fast_task-x_meg.fif", *tree).sidecars
    assert (sidecars.calibration, sidecars.crosstalk) == (tree[0], tree[1])


def test_folder_recordings_inherit_from_the_folder_they_lie_in() -> None:
    tree = [
        "s/x_task-a_meg.ds/x.meg4",
        "s/x_task-a_events.tsv",
        "s/x_task-a_meg.json",
        "s/x_task-a_meg.ds/task-a_events.tsv",
    ]
    sidecars = only(*tree).sidecars
    assert (sidecars.events, sidecars.signal_json) == (tree[1], (tree[2],))


_parts = st.sets(st.sampled_from(["sub-1", "ses-1", "task-a", "task-b", "run-1", "run-2", "epo"]), max_size=4).map(
    sorted
)
_folders = st.sampled_from(["", "sub-1", "sub-1/eeg", "sub-2"])


def _named(parts: list[str], ending: str) -> str:
    return "_".join([*parts, ending])


@given(_folders, _parts, st.sets(st.tuples(_folders, _parts.map(tuple)), max_size=8))
def test_the_index_finds_what_a_look_at_every_file_finds(
    folder: str, parts: list[str], tables: set[tuple[str, tuple[str, ...]]]
) -> None:
    recording = f"{folder}/{_named(parts, 'eeg.edf')}".lstrip("/")
    candidates = {
        f"{where}/{_named(list(names), 'channels.tsv')}".lstrip("/"): (where, names) for where, names in tables
    }
    own = set(parse_name(_named(parts, "eeg.edf")).parts)

    def applies(where: str, names: tuple[str, ...]) -> bool:
        return (folder == where or not where or folder.startswith(f"{where}/")) and set(names) <= own

    fitting = [(len(where), len(names), path) for path, (where, names) in candidates.items() if applies(where, names)]
    best = max(((depth, count) for depth, count, _ in fitting), default=None)
    expected = min((path for depth, count, path in fitting if (depth, count) == best), default=None)
    assert only(recording, *candidates).sidecars.channels == expected
