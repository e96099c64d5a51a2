"""Which files are recordings, and which belong to them."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import found, in_folder, only, paths, tree_of

from contract.codes import FailureCode
from contract.errors import Refused
from tasks.bids.discovery import discover, discover_source
from tasks.bids.other_formats import OTHER_FORMATS, OtherFormat
from tasks.formats.registry import endings, load
from tasks.sources import open_source
from tasks.sources.protocol import Absence, Problem, TreeEntry


@pytest.mark.parametrize(
    "extension", [".set", ".edf", ".bdf", ".vhdr", ".fif", ".con", ".sqd", ".kdf", ".EDF", ".Vhdr", ".fif.gz"]
)
def test_each_recording_extension_is_found_in_any_case_anywhere(extension: str) -> None:
    recording = only(f"phenotype/.odd/sub-01_task-x_eeg{extension}")
    assert recording.zarr == "phenotype/.odd/sub-01_task-x_eeg.zarr"
    assert recording.format == endings().files[extension.lower()]
    assert (recording.modality, recording.entities) == ("eeg", {"sub": "01", "task": "x"})


@pytest.mark.parametrize(
    "name",
    ["x_eeg.fdt", "x_eeg.vmrk", "x.raw", "x.csv", "x.mat", "x.gz", ".edf", "edf", "x.edf.bak", "x.json", "x_eeg.log"],
)
def test_other_files_are_no_recordings(name: str) -> None:
    assert paths(f"sub-01/eeg/{name}") == []


class TestWithoutAReader:
    def failed(self, *tree: str) -> dict[str, str]:
        """Path of every recording with a verdict -> its code."""
        return {r.path: r.failure[0].value for r in found(*tree).recordings if r.failure is not None}

    @pytest.mark.parametrize("one", OTHER_FORMATS, ids=lambda one: one.name)
    def test_every_format_is_seen_and_counted_once(self, one: OtherFormat) -> None:
        for ending in one.endings:
            for spelled in (ending, ending.upper()):
                path = f"sub-01/eeg/sub-01_task-x_eeg{spelled}"
                tree = in_folder(path, "info.xml", "deep/signal1.bin") if one.is_folder else [path]
                recording = only(*tree, "sub-01/eeg/sub-01_task-x_channels.tsv", "sub-01/eeg/sub-01_task-x_eeg.json")
                assert (recording.path, recording.format) == (path, one.name)
                assert recording.zarr == "sub-01/eeg/sub-01_task-x_eeg.zarr"
                assert (recording.modality, recording.entities) == ("eeg", {"sub": "01", "task": "x"})
                assert recording.failure == (
                    FailureCode.UNSUPPORTED_FORMAT,
                    f"there is no reader for {one.words} ({ending})",
                )
                assert sorted(recording.members) == sorted(tree)
                assert recording.sidecars.paths() == ()

    def test_they_count_in_the_folders_of_recordings_or_by_their_suffix(self) -> None:
        assert self.failed(
            "sub-01/ieeg/x.nwb", "sub-01/beh/x.nwb", "stimuli/x.snirf", "phenotype/sub-01_nirs.snirf"
        ) == {
            "phenotype/sub-01_nirs.snirf": "unsupported_format",
            "sub-01/ieeg/x.nwb": "unsupported_format",
        }

    def test_what_is_not_raw_is_not_counted(self) -> None:
        assert self.failed("derivatives/sub-01/eeg/x_eeg.nwb", "sourcedata/sub-01/eeg/x.mff/info.xml") == {}

    def test_endings_that_mean_many_things_need_the_name_of_a_recording(self) -> None:
        folder = "sub-01/eeg"
        tree = in_folder(folder, "sub-01_eeg.mat", "sub-01_layout.mat", "notes.csv", "sub-01_task-a_eeg.csv", "log.txt")
        assert set(self.failed(*tree)) == {f"{folder}/sub-01_eeg.mat", f"{folder}/sub-01_task-a_eeg.csv"}

    def test_what_belongs_to_a_recording_is_not_another_one(self) -> None:
        folder = "sub-01/eeg"
        tree = in_folder(folder, "a_eeg.edf", "a_eeg.mat", "a_eeg.csv", "a_eeg.eeg", "b_eeg.vhdr", "renamed.eeg")
        assert self.failed(*tree) == {}
        assert [r.path for r in found(*tree).recordings] == [f"{folder}/a_eeg.edf", f"{folder}/b_eeg.vhdr"]

    def test_a_copy_in_a_format_with_a_reader_has_the_store(self) -> None:
        tree = in_folder("sub-01/ieeg", "sub-01_ieeg.edf", "sub-01_ieeg.nwb")
        assert self.failed(*tree) == {"sub-01/ieeg/sub-01_ieeg.nwb": "store_path_collision"}
        tree = in_folder("sub-01/ieeg", "sub-01_ieeg.gdf", "sub-01_ieeg.nwb")
        assert set(self.failed(*tree).values()) == {"unsupported_format"}

    def test_a_folder_that_cannot_be_read_whole_does_not_keep_a_sound_file_from_its_store(self) -> None:
        tree = ["s/x_meg.ds/x.meg4", "s/x_meg.ds/b\udcff", "s/x_meg.con"]
        assert self.failed(*tree) == {"s/x_meg.ds": "store_path_collision"}

    def test_files_of_one_stem_are_one_recording(self) -> None:
        tree = in_folder("sub-01/ieeg", "a_ieeg.ns5", "a_ieeg.nev", "a_ieeg.ns3", "b_ieeg.nev")
        recordings = found(*tree).recordings
        assert [r.path.rpartition("/")[2] for r in recordings] == ["a_ieeg.nev", "b_ieeg.nev"]
        assert len(recordings[0].members) == 3

    def test_a_meg_folder_without_a_whole_recording_is_seen(self) -> None:
        folder = "sub-01/meg/sub-01_task-x_meg"
        for inside in (["config", "hs_file"], ["c,rfDC"], ["x.raw"]):
            assert self.failed(*in_folder(folder, *inside)) == {folder: "unsupported_format"}
        assert self.failed(*in_folder(folder, "config", "c,rfDC")) == {}
        assert self.failed(*in_folder(folder, "x_meg.con", "x_markers.mrk", "x.elp")) == {}
        assert self.failed(*in_folder(folder, "x.tsv", "README.md")) == {}
        assert self.failed("sub-01/meg/sub-01_task-x_eeg/x.foo", "sub-01/x_meg/x.foo") == {}

    def test_coil_positions_of_kit_are_no_recordings(self) -> None:
        tree = in_folder("sub-01/meg", "sub-01_task-x_meg.sqd", "sub-01_task-x_markers.sqd", "sub-01_markers.mrk")
        assert only(*tree).path == "sub-01/meg/sub-01_task-x_meg.sqd"


class TestEndingsThatMeanManyThings:
    def test_an_h5_is_a_recording_where_its_name_says_so(self) -> None:
        folder = "sub-01/eeg"
        tree = in_folder(
            folder, "sub-01_task-a_eeg.h5", "sub-01_task-b_EEG.H5", "stimuli.h5", "sub-01_task-a_beh.h5", "x.h5"
        )
        tree += ["stimuli/faces.h5", "derivatives/sub-01/eeg/sub-01_eeg.h5"]
        discovery = found(*tree)
        assert [(r.path, r.format, r.zarr) for r in discovery.recordings] == [
            (f"{folder}/sub-01_task-a_eeg.h5", "vneurotk", f"{folder}/sub-01_task-a_eeg.zarr"),
        ]
        assert discovery.problems == ()

    def test_it_has_its_sidecars(self) -> None:
        tree = ["sub-01_meg.h5", "channels.tsv", "sub-01_events.tsv", "sub-01_meg.json"]
        recording = only(*tree)
        assert (recording.format, recording.modality, recording.failure) == ("vneurotk", "meg", None)
        assert set(recording.sidecars.paths()) == set(tree[1:])

    @pytest.mark.parametrize("known", ["a_eeg.edf", "A_eeg.set", "a_eeg.vhdr"])
    def test_beside_a_recording_of_the_same_stem_it_is_a_part_of_that(self, known: str) -> None:
        for tree in ([known, "a_eeg.h5"], ["a_eeg.h5", known]):
            assert [r.path for r in found(*in_folder("sub-01/eeg", *tree)).recordings] == [f"sub-01/eeg/{known}"]

    def test_what_means_as_many_things_beside_it_is_a_part_of_it(self) -> None:
        assert only(*in_folder("sub-01/eeg", "a_eeg.h5", "a_eeg.mat", "a_eeg.csv")).format == "vneurotk"

    def test_a_folder_of_the_same_store_is_served_first(self) -> None:
        recordings = found("s/x_meg.ds/x.meg4", "s/x_meg.h5").recordings
        assert [(r.format, r.failure and r.failure[0]) for r in recordings] == [
            ("ctf", None),
            ("vneurotk", FailureCode.STORE_PATH_COLLISION),
        ]


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("derivatives/sub-01/x_eeg.edf", False),
        ("sub-01/sourcedata/x_eeg.edf", False),
        ("a/b/code/c/x_eeg.edf", False),
        ("code", False),
        ("mycode/x_eeg.edf", True),
        ("derivatives_old/x_eeg.edf", True),
        ("Derivatives/x_eeg.edf", True),
        ("sub-01/eeg/sub-01_task-code_eeg.edf", True),
        ("derivatives/x_meg.ds/x.meg4", False),
        ("derivatives/4d/config", False),
    ],
)
def test_exclusion_is_by_whole_segments_at_any_depth(path: str, raw: bool) -> None:
    tree = [path] if not path.endswith("config") else [path, "derivatives/4d/c,rfDC"]
    assert bool(paths(*tree)) is raw


@pytest.mark.parametrize(
    ("folder", "format_name", "store"),
    [
        ("sub-01/meg/sub-01_task-x_meg.ds", "ctf", "sub-01/meg/sub-01_task-x_meg.zarr"),
        ("sub-01/meg/sub-01_task-x_meg.DS", "ctf", "sub-01/meg/sub-01_task-x_meg.zarr"),
        ("sub-01/ieeg/sub-01_task-x_ieeg.mefd", "mef3", "sub-01/ieeg/sub-01_task-x_ieeg.zarr"),
    ],
)
def test_a_folder_with_an_extension_is_one_recording_of_all_its_files(
    folder: str, format_name: str, store: str
) -> None:
    inside = sorted(in_folder(folder, "a.meg4", "deep/er/b.segd", "code/c.tdat", "hz.ds/x"))
    recording = only(*inside, folder.rpartition("/")[0] + "/other.txt")
    assert (recording.path, recording.format, recording.zarr) == (folder, format_name, store)
    assert list(recording.members) == inside
    assert recording.size_bytes == 10 * len(inside)


def test_a_4d_folder_is_known_by_its_content() -> None:
    meg = "sub-01/meg/sub-01_task-v1.2_meg"
    recording = only(*in_folder(meg, "c,rfDC", "config", "hs_file"))
    assert (recording.path, recording.format, recording.zarr) == (meg, "bti", f"{meg}.zarr")
    assert (recording.modality, recording.entities) == ("meg", {"sub": "01", "task": "v1.2"})
    assert paths(*in_folder(meg, "c,rfDC", "config")) == [meg]


@pytest.mark.parametrize(
    "tree",
    [
        [".datalad/config"],
        ["x/config", "x/hs_file"],
        ["x/c,rfDC"],
        ["x/config", "x/deep/c,rfDC"],
        ["x/Config", "x/c,rfDC"],
        ["config", "c,rfDC"],
    ],
)
def test_config_or_data_alone_or_apart_or_at_the_top_is_no_4d_recording(tree: list[str]) -> None:
    assert paths(*tree) == []


def test_files_inside_a_folder_recording_are_no_recordings_and_that_is_said() -> None:
    discovery = found("a/x_meg.ds/x.meg4", "a/x_meg.ds/inner_eeg.edf", "a/x_meg.ds/channels.tsv")
    assert [recording.path for recording in discovery.recordings] == ["a/x_meg.ds"]
    assert discovery.recordings[0].sidecars.channels is None
    assert [problem.path for problem in discovery.problems] == ["a/x_meg.ds/inner_eeg.edf"]


def test_calibration_files_are_inputs_of_meg_and_never_recordings() -> None:
    meg = "sub-01/meg"
    tree = in_folder(meg, "sub-01_acq-crosstalk_meg.fif", "sub-01_acq-calibration_meg.dat", "sub-01_task-x_meg.fif")
    recording = only(*tree, "sub-01/eeg/sub-01_task-x_channels.tsv")
    assert recording.path == f"{meg}/sub-01_task-x_meg.fif"
    assert recording.sidecars.crosstalk == f"{meg}/sub-01_acq-crosstalk_meg.fif"
    assert recording.sidecars.calibration == f"{meg}/sub-01_acq-calibration_meg.dat"
    assert set(tree[:2]) <= set(recording.inputs())


def test_other_formats_have_no_calibration() -> None:
    tree = in_folder("sub-01/meg", "sub-01_acq-crosstalk_meg.fif", "sub-01_acq-calibration_meg.dat", "sub-01_meg.con")
    assert only(*tree).sidecars.paths() == ()
    assert only("acq-crosstalk_meg.fif", "sub-01_eeg.fif").sidecars.paths() == ()


def test_splits_are_one_recording_named_by_the_lowest_that_is_there() -> None:
    meg = "sub-01/meg"
    splits = in_folder(meg, *(f"sub-01_task-x_split-{number}_meg.fif" for number in ("01", "02", "10")))
    recording = only(*reversed(splits), f"{meg}/sub-01_task-x_events.tsv")
    assert recording.path == splits[0]
    assert recording.zarr == f"{meg}/sub-01_task-x_split-01_meg.zarr"
    assert recording.members == recording.split_members == tuple(splits)
    assert recording.size_bytes == 30
    assert recording.sidecars.events == f"{meg}/sub-01_task-x_events.tsv"
    without_head = only(*splits[1:])
    assert (without_head.path, without_head.members) == (splits[1], tuple(splits[1:]))


def test_split_numbers_are_compared_as_numbers_and_gaps_and_repeats_are_said() -> None:
    discovery = found("x_split-2_meg.fif", "x_split-10_meg.fif", "x_split-02_meg.fif")
    (recording,) = discovery.recordings
    assert recording.members == ("x_split-02_meg.fif", "x_split-2_meg.fif", "x_split-10_meg.fif")
    assert [problem.sentence for problem in discovery.problems] == [
        "split 3 of this recording is missing",
        "two files of this recording claim the same split number",
    ]


def test_only_fif_splits_and_an_unsplit_neighbour_is_its_own_recording() -> None:
    assert len(paths("x_split-01_eeg.edf", "x_split-02_eeg.edf", "x_split-1a_meg.fif")) == 3
    assert len(paths("x_meg.fif", "x_split-01_meg.fif")) == 2


@pytest.mark.parametrize(
    ("primary", "beside", "companions"),
    [
        ("x_eeg.set", ["x_eeg.fdt", "x_eeg.eeg", "y_eeg.fdt"], ["x_eeg.fdt"]),
        ("x_eeg.vhdr", ["x_eeg.eeg", "x_eeg.vmrk", "x_eeg.fdt"], ["x_eeg.eeg", "x_eeg.vmrk"]),
        ("x_eeg.vhdr", ["x_eeg.dat", "x_eeg.VMRK"], ["x_eeg.VMRK", "x_eeg.dat"]),
        ("x_eeg.vhdr", ["X_EEG.eeg", "x_EEG.vmrk", "x_eeg.vmrk"], ["X_EEG.eeg", "x_eeg.vmrk"]),
        ("x_eeg.edf", ["x_eeg.eeg", "x_eeg.fdt"], []),
    ],
)
def test_companions_have_the_stem_of_their_primary(primary: str, beside: list[str], companions: list[str]) -> None:
    recording = only(*in_folder("s", primary, *beside), "t/x_eeg.fdt", "t/x_eeg.eeg")
    assert list(recording.companions) == in_folder("s", *companions)
    assert recording.size_bytes == 10 * (1 + len(companions))


def test_an_unknown_size_is_unknown_and_not_zero() -> None:
    tree = {"x_eeg.set": TreeEntry(7, "a"), "x_eeg.fdt": TreeEntry(None, "b")}
    (recording,) = discover(tree).recordings
    assert (recording.size_bytes, recording.size_known) == (7, False)


def test_every_format_has_its_place_in_the_order() -> None:
    known = endings()
    assert set(known.precedence) == set(load()) >= {*known.files.values(), *known.folders.values(), "bti"}
    assert len(set(known.precedence.values())) == len(known.precedence)
    order = sorted(known.precedence, key=known.precedence.__getitem__)
    assert order[:9] == ["brainvision", "edf", "bdf", "eeglab", "fif", "ctf", "bti", "kit", "mef3"]


def test_what_the_source_left_out_is_told_with_the_rest() -> None:
    discovery = discover(tree_of("dataset_description.json"), [Problem("sub-01/meg/x.ds", "is a symbolic link")])
    assert discovery.problems == (Problem("sub-01/meg/x.ds", "is a symbolic link"),)
    assert discovery.matters() == {"dataset_description.json"}


def test_absent_content_does_not_hide_a_recording() -> None:
    tree = tree_of("x_eeg.edf", absent={"x_eeg.edf": Absence.NOT_FETCHED})
    assert [recording.path for recording in discover(tree).recordings] == ["x_eeg.edf"]


def test_a_recording_crosses_process_borders() -> None:
    recording = only("sub-01_task-x_eeg.vhdr", "sub-01_task-x_eeg.eeg", "task-x_channels.tsv")
    assert pickle.loads(pickle.dumps(recording)) == recording


_names = st.sampled_from(
    [
        "x_eeg",
        "x_meg",
        "x_split-01_meg",
        "x_split-02_meg",
        "sub-1_eeg",
        "channels",
        "config",
        "c,rfDC",
        "code",
        "derivatives",
    ]
)
_files = st.builds(str.__add__, _names, st.sampled_from([*endings().files, ".eeg", ".tsv", ".dat", ".ds", ".mefd", ""]))
_trees = st.lists(st.lists(_files, min_size=1, max_size=4).map("/".join), max_size=12, unique=True)


@given(_trees, st.randoms())
def test_discovery_does_not_depend_on_order_and_counts_each_file_once(tree: list[str], random) -> None:
    discovery = found(*tree)
    shuffled = list(tree)
    random.shuffle(shuffled)
    assert found(*shuffled) == discovery
    recordings = discovery.recordings
    assert [recording.path for recording in recordings] == sorted({recording.path for recording in recordings})
    members = [member for recording in recordings for member in recording.members]
    assert len(members) == len(set(members))
    assert set(members) <= set(tree)
    serving = [recording.zarr for recording in recordings if recording.failure is None]
    assert len(serving) == len(set(serving))
    assert not any(other.startswith(f"{zarr}/") for zarr in serving for other in serving)
    counted_or_told = {*members, *(problem.path for problem in discovery.problems)}
    for path in tree:
        raw = not {"code", "derivatives"} & set(path.split("/"))
        if raw and any(path.endswith(extension) for extension in endings().files.keys() - endings().vague):
            assert path in counted_or_told


@pytest.mark.parametrize("flat", [False, True])
def test_the_work_of_discovery_grows_with_the_files_and_not_with_recordings_times_files(flat: bool) -> None:
    def lookups_per_recording(subjects: int) -> float:
        tree = [
            f"{'' if flat else f'sub-{subject}/eeg/'}sub-{subject}_task-rest_run-{run}_{ending}"
            for subject in range(subjects)
            for run in range(5)
            for ending in ("eeg.edf", "channels.tsv", "events.tsv", "eeg.json")
        ]
        discovery = found(*tree, "task-rest_events.json", "channels.tsv")
        assert len(discovery.recordings) == subjects * 5
        return discovery.lookups / len(discovery.recordings)

    few, many = lookups_per_recording(4), lookups_per_recording(200)
    assert few == many <= 10


def test_a_very_deep_tree_is_no_obstacle() -> None:
    deep = "/".join(["a"] * 2_000)
    assert only(f"{deep}/x_eeg.edf", "channels.tsv").sidecars.channels == "channels.tsv"


def test_a_source_without_description_and_recordings_is_refused(tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(Refused, match="does not look like a BIDS dataset"):
        discover_source(open_source(str(tmp_path)))
    (tmp_path / "dataset_description.json").write_text("{}")
    assert discover_source(open_source(str(tmp_path))).recordings == ()
