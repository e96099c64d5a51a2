"""Names that are odd, cannot be published, or give two recordings one store."""

from __future__ import annotations

import pytest
from trees import found, only, paths

from contract.codes import FailureCode


@pytest.mark.parametrize(
    "name", ["sub-é_eeg.edf", "sub-01_task-雪 x_eeg.edf", "a,b;c'\"&%20#?_eeg.edf", "\u0301_eeg.edf", "._x_eeg.edf"]
)
def test_odd_names_are_kept_as_they_are(name: str) -> None:
    assert paths(f"sub-ü/{name}") == [f"sub-ü/{name}"]


@pytest.mark.parametrize("name", ["x\udce9_eeg.edf", "x\n_eeg.edf", "x\\_eeg.edf", "x\x00_eeg.edf", "x\x9b_eeg.edf"])
def test_a_name_that_cannot_be_published_is_a_problem_and_never_lost(name: str) -> None:
    discovery = found(f"sub-01/{name}", "sub-01/ok_eeg.edf")
    assert [recording.path for recording in discovery.recordings] == ["sub-01/ok_eeg.edf"]
    (problem,) = discovery.problems
    assert "is not counted" in problem.sentence
    assert problem.path.isprintable()
    problem.path.encode()


def test_a_folder_recording_with_a_file_that_cannot_be_named_is_never_converted_in_part() -> None:
    recording = only("x_meg.ds/x.meg4", "x_meg.ds/b\udcff")
    assert recording.failure is not None
    assert recording.failure[0] is FailureCode.FILE_READ_ERROR
    assert recording.members == ("x_meg.ds/x.meg4",)
    assert [problem.path for problem in found("x\udcff_meg.ds/x.meg4").problems] == ["x\\udcff_meg.ds"]


@pytest.mark.parametrize(
    ("tree", "served", "refused"),
    [
        (["x_eeg.set", "x_eeg.edf"], "x_eeg.edf", ["x_eeg.set"]),
        (["x_eeg.set", "x_eeg.edf", "x_eeg.vhdr"], "x_eeg.vhdr", ["x_eeg.edf", "x_eeg.set"]),
        (["x_meg.ds/a.meg4", "x_meg.fif"], "x_meg.fif", ["x_meg.ds"]),
        (["x_meg/c,rfDC", "x_meg/config", "x_meg.con"], "x_meg", ["x_meg.con"]),
        (["x_eeg.EDF", "x_eeg.edf"], "x_eeg.EDF", ["x_eeg.edf"]),
        (["x_meg.fif", "x_meg.fif.gz"], "x_meg.fif", ["x_meg.fif.gz"]),
        (
            ["x_split-01_meg.fif", "x_split-01_meg.fif.gz", "x_split-02_meg.fif"],
            "x_split-01_meg.fif",
            ["x_split-01_meg.fif.gz"],
        ),
    ],
)
def test_of_recordings_with_one_store_path_one_is_served_and_the_others_name_it(
    tree: list[str], served: str, refused: list[str]
) -> None:
    for order in (tree, tree[::-1]):
        recordings = found(*order).recordings
        assert [recording.path for recording in recordings if recording.failure is None] == [served]
        losers = [recording for recording in recordings if recording.failure is not None]
        assert [loser.path for loser in losers] == refused
        for loser in losers:
            assert loser.failure == (FailureCode.STORE_PATH_COLLISION, f"{served} claims the same store")
            assert len({recording.zarr for recording in recordings}) == 1


def test_names_that_differ_in_case_or_folder_do_not_collide() -> None:
    assert all(recording.failure is None for recording in found("X_eeg.set", "x_eeg.edf", "s/x_eeg.bdf").recordings)


def test_a_store_inside_a_store_or_below_a_document_is_a_collision() -> None:
    around, inside = found("a.zarr/b/x_eeg.edf", "a.set").recordings
    assert inside.path == "a.zarr/b/x_eeg.edf"
    assert inside.failure == (FailureCode.STORE_PATH_COLLISION, "the store of a.set lies around this one's")
    assert around.failure is None
    below = only("index.json/x_eeg.edf")
    assert below.failure == (FailureCode.STORE_PATH_COLLISION, "index.json is the name of a published document")
